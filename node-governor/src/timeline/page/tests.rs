// SPDX-License-Identifier: Apache-2.0
use std::fs;

use super::super::FILE;
use super::*;

fn page(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FILE), text).unwrap();
    html(folder.path()).unwrap()
}

fn start(jobs: &[&str]) -> String {
    let job = |name: &&str| format!(r#"{{"name":"{name}","queue":"long","threads":2}}"#);
    let jobs: Vec<String> = jobs.iter().map(job).collect();
    format!(
        r#"{{"at":1795000000000,"start":{{"cores":"0-3","target_ms":1.5,"jobs":[{}]}},"service":{{"cores":"0","why":"calm"}}}}"#,
        jobs.join(",")
    ) + "\n"
}

#[test]
fn a_page_says_when_each_job_ran_and_how_it_ended() {
    let text = start(&["vips", "dedup"])
        + r#"{"at":1795000000500,"jobs":{"vips":{"state":"waiting"},"dedup":{"state":"waiting"}}}
{"at":1795000001000,"jobs":{"vips":{"state":"running","cores":"2-3"},"dedup":{"state":"running","cores":"1"}}}
{"at":1795000002000,"sample":{"cpu":0.8,"tail_ms":2.5}}
{"at":1795000003000,"service":{"cores":"0-1","why":"busy"},"jobs":{"dedup":{"state":"paused"}},"sample":{"tail_ms":1.0}}
{"at":1795000005000,"jobs":{"vips":{"state":"failed","code":139,"trouble":"signal 11 & more"}}}
broken
{"at":1795000009000,"service":{"cores":"0","why":"calm"},"jobs":{"dedup":{"state":"finished","code":0}},"end":true}
"#;
    let page = page(&text);
    for shown in [
        "2026-11-18 11:06:40 to 2026-11-18 11:06:49 UTC · machine with cores 0-3",
        "All 2 jobs have ended, the last after 9.0 s. Failed: vips.",
        "over its target in 50.0\u{a0}% of 2 samples",
        "cores changed 2 times and jobs were paused once",
        "left out: 1.",
        "on core 1</li>",
        "on cores 2-3</li>",
        "paused</li>",
        "✕ exit 139",
        "✓ 9.0 s",
        "vips: signal 11 &amp; more",
        "1 core 3.0 s (33.3 %), 2 cores 6.0 s (66.7 %)",
        "busy 1, calm 1",
    ] {
        assert!(page.contains(shown), "{shown}\n{page}");
    }
    assert!(!page.contains("the mesh"), "it said nothing");
}

#[test]
fn hours_of_changes_in_every_tick_are_a_page_of_some_hundred_kilobytes() {
    let mut text = start(&["a", "b"]);
    for tick in 0..72_000u64 {
        let at = 1_795_000_000_000 + tick * 50;
        let (cores, state) = match tick % 2 {
            0 => ("0", r#"{"state":"running","cores":"1"}"#),
            _ => ("0-1", r#"{"state":"paused"}"#),
        };
        text += &format!(
            "{{\"at\":{at},\"service\":{{\"cores\":\"{cores}\",\"why\":\"busy\"}},\"jobs\":{{\"a\":{state}}},\
             \"sample\":{{\"cpu\":0.5,\"tail_ms\":{}}}}}\n",
            tick % 7
        );
    }
    let page = page(&text);
    assert!(page.len() < 300_000, "{}", page.len());
    assert!(page.contains("time / min"));
}

#[test]
fn little_is_a_page_too() {
    for text in [
        String::new(),
        "nonsense\n".to_owned(),
        start(&[]),
        start(&["alone"]),
    ] {
        let page = page(&text);
        assert!(page.contains("</html>") && !page.contains("NaN"), "{page}");
    }
}

#[test]
fn many_sets_of_cores_share_the_colours_that_there_are() {
    let mut text = start(&["wide"]);
    for core in 0..20 {
        let at = 1_795_000_000_000u64 + 1000 * core;
        text += &format!(
            r#"{{"at":{at},"jobs":{{"wide":{{"state":"running","cores":"{core}-30"}}}}}}"#
        );
        text.push('\n');
    }
    let page = page(&text);
    assert_eq!(page.matches("on cores ").count(), 2 * SETS, "{page}");
    assert!(page.contains("on other cores"));
    assert!(page.contains("0-30, 1-30, 2-30, …"), "{page}");
}
