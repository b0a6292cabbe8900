// SPDX-License-Identifier: Apache-2.0
use std::fs;

use proptest::prelude::*;

use super::*;
use crate::jobs::State;

/// A run of one governor and a bit of another's.
const LINES: &str = r#"{"at":10000,"start":{"cores":"0-3","target_ms":1.5,"jobs":[{"name":"dedup","queue":"short","threads":1}]},"service":{"cores":"0","why":"calm"},"jobs":{"dedup":{"state":"waiting"}}}
{"at":11000,"jobs":{"dedup":{"state":"running","cores":"1"}},"sample":{"cpu":0.5,"tail_ms":0.8}}
{"at":14000,"service":{"cores":"0-1","why":"busy","pressed":true},"jobs":{"dedup":{"state":"paused"}}}
{"at":16000,"service":{"cores":"0","why":"calm"},"jobs":{"dedup":{"state":"running","cores":"1"}}}
{"at":17000,"jobs":{"dedup":{"state":"running","cores":"2-3"}}}
{"at":19000,"jobs":{"dedup":{"state":"failed","code":3,"trouble":"no space"}}}
{"at":20000,"end":true}
"#;

fn history(text: &str) -> History {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FILE), text).unwrap();
    History::read(folder.path()).unwrap()
}

fn stretch(from: f64, to: f64, set: Option<u32>) -> Stretch {
    Stretch { from, to, set }
}

#[test]
fn a_run_is_put_together_from_what_changed() {
    let history = history(LINES);
    let job = &history.jobs[0];
    assert_eq!(
        job.stretches,
        [
            stretch(1.0, 4.0, Some(0)),
            stretch(4.0, 6.0, None),
            stretch(6.0, 7.0, Some(0)),
            stretch(7.0, 9.0, Some(1)),
        ]
    );
    assert_eq!((job.started, job.ended), (Some(1.0), Some(9.0)));
    assert_eq!((job.ran, job.paused, job.pauses), (6.0, 2.0, 1));
    assert_eq!((job.state, job.code), (Some(State::Failed), Some(3)));
    assert_eq!(history.sets, ["1", "2-3"]);
    assert_eq!(
        history.cores,
        [(0.0, 1.0), (4.0, 2.0), (6.0, 1.0), (10.0, 1.0)]
    );
    assert_eq!(history.pressed, [(4.0, 6.0)]);
    let moves: Vec<(&str, u64)> = history.moves.iter().map(|(k, v)| (&**k, *v)).collect();
    assert_eq!(moves, [("busy", 1), ("calm", 1)]);
    assert_eq!((history.starts, history.bad, history.length), (1, 0, 10.0));
}

#[test]
fn what_nobody_saw_is_not_made_up() {
    let killed = LINES.replace("{\"at\":20000,\"end\":true}\n", "");
    let killed = killed.replace("\"failed\",\"code\":3", "\"running\",\"cores\":\"1\"");
    let again = LINES.lines().next().unwrap();
    let again = again
        .replace("10000", "30000")
        .replace("waiting\"", "running\",\"cores\":\"1\"");
    let history = history(&format!("{killed}{again}\n"));
    let job = &history.jobs[0];
    // The last line before is of second 9; what was open then is closed then.
    assert_eq!(job.stretches.last(), Some(&stretch(20.0, 20.0, Some(0))));
    assert_eq!(job.ran, 6.0);
    assert_eq!(job.started, Some(1.0), "it has gone on");
    let gap = history.cores.iter().find(|(_, count)| count.is_nan());
    assert_eq!(gap.map(|(at, _)| *at), Some(20.0));
    assert_eq!(history.starts, 2);
}

#[test]
fn a_job_that_was_forgotten_begins_anew() {
    let more = r#"{"at":21000,"jobs":{"dedup":{"state":"waiting"}}}
{"at":22000,"jobs":{"dedup":{"state":"running","cores":"1"}}}
{"at":23000,"jobs":{"dedup":{"state":"finished","code":0}}}
"#;
    let history = history(&(LINES.to_owned() + more));
    let job = &history.jobs[0];
    assert_eq!((job.started, job.ended), (Some(12.0), Some(13.0)));
    assert_eq!((job.ran, job.pauses, job.code), (1.0, 0, Some(0)));
    assert_eq!(job.stretches.len(), 5, "what it did before is drawn still");
}

#[test]
fn the_old_file_comes_first_and_bad_lines_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = LINES.split_at(LINES.find("{\"at\":16000").unwrap());
    fs::write(folder.path().join(OLD_FILE), old).unwrap();
    let bad = "nonsense\n\n{\"at\":15000,\"jobs\":{\"dedup\":{\"state\":\"asleep\"}}}\n\
        {\"at\":15000,\"jobs\":{\"nobody\":{\"state\":\"running\"}}}\n\
        {\"at\":15000,\"service\":{\"cores\":\"many\",\"why\":\"\"}}\n\u{0}\n";
    let torn = "{\"at\":20500,\"serv";
    fs::write(folder.path().join(FILE), format!("{bad}{new}{torn}")).unwrap();
    let both = History::read(folder.path()).unwrap();
    assert_eq!(both.bad, 5);
    let whole = history(LINES);
    assert_eq!(both.jobs[0].stretches, whole.jobs[0].stretches);
    assert_eq!(both.cores, whole.cores);
}

#[test]
fn a_folder_without_a_timeline_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let error = History::read(folder.path()).unwrap_err();
    assert!(error.to_string().contains("timeline.jsonl"), "{error}");
}

proptest! {
    #[test]
    fn times_never_go_back_whatever_the_lines_say(
        lines in prop::collection::vec((any::<u64>(), 0..7usize), 0..40),
    ) {
        let each: Vec<&str> = LINES.lines().collect();
        let text: Vec<String> = lines
            .iter()
            .map(|(at, index)| {
                let rest = each[*index].split_once(',').unwrap().1;
                format!("{{\"at\":{at},{rest}\n")
            })
            .collect();
        let history = history(&text.concat());
        for job in &history.jobs {
            prop_assert!(job.stretches.iter().all(|stretch| stretch.from <= stretch.to));
            prop_assert!(job.stretches.windows(2).all(|pair| pair[0].to <= pair[1].from));
        }
        prop_assert!(history.cores.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }
}
