// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;
use crate::config::Poll;

mod engine;

fn names() -> Scrape {
    Scrape {
        poll: Poll {
            interval: std::time::Duration::from_secs(1),
            timeout: std::time::Duration::from_secs(1),
            path: "/metrics".into(),
            max_bytes: 1 << 20,
            tls: None,
        },
        in_progress: "p".into(),
        adds_queued: false,
        queued: "q".into(),
        floors_queued: false,
        queued_priority_label: "priority".into(),
        queuing_delay: Some("d".into()),
        delay_is_late: false,
        reading: "r".into(),
        writing: "wr".into(),
        busy_cores: "b".into(),
        work: "w".into(),
        cores: "c".into(),
        draining: "leaving".into(),
    }
}

const GOOD: &str = "# HELP p jobs\n# TYPE p gauge\np 5\nq{priority=\"0\"} 1\nq{x=\"a,}=\\\"\",priority=\"16\"} 2 1700000000000\n\
                    d_bucket{le=\"+Inf\"} 4\nd_sum 2.5\nd_count 4\n";

#[test]
fn a_page_gives_every_figure() {
    let page = read(GOOD, &names());
    assert_eq!(page.complaints, Vec::<String>::new());
    assert_eq!(page.in_progress, Some(5));
    let mut queued = vec![0; 17];
    (queued[0], queued[16]) = (1, 2);
    assert_eq!(page.queued, Some(queued));
    assert_eq!(
        page.delay,
        Some(Totals {
            seconds: 2.5,
            jobs: 4.0
        })
    );
}

#[test]
fn the_time_in_which_prompts_are_read_may_be_missing_but_not_be_wrong() {
    assert_eq!(read(GOOD, &names()).reading, None);
    let page = |more: &str| read(&format!("{GOOD}{more}"), &names());
    let told = page("r_sum 3.5\nr_count 7\n");
    let totals = Totals {
        seconds: 3.5,
        jobs: 7.0,
    };
    assert_eq!((told.reading, told.complaints.len()), (Some(totals), 0));
    assert_eq!(told.writing, None);
    let told = page("wr_sum 3.5\nwr_count 7\n");
    assert_eq!((told.writing, told.reading), (Some(totals), None));
    let wrong = page("r_sum -1\nr_count 7\n");
    assert_eq!(wrong.reading, None);
    assert_eq!(wrong.complaints, ["r_sum: -1 is not a count"]);
}

#[test]
fn of_an_engine_that_tells_running_and_queued_jobs_apart_both_are_in_progress() {
    let names = Scrape {
        adds_queued: true,
        ..names()
    };
    // One for each of two models.
    let page = read(
        "p{m=\"1\"} 5\np{m=\"2\"} 2\nq{m=\"1\"} 3\nq{m=\"2\"} 0\nd_sum 1\nd_count 1\n",
        &names,
    );
    assert_eq!(page.complaints, Vec::<String>::new());
    assert_eq!((page.in_progress, page.queued), (Some(10), Some(vec![3])));
    // SGLang, where it schedules by priority.
    let sums =
        "p{priority=\"\"} 7\np{priority=\"-5\"} 7\nq{priority=\"\"} 3\nq{priority=\"-5\"} 3\n";
    let page = read(&format!("{sums}d_sum 1\nd_count 1\n"), &names);
    assert_eq!(page.complaints, Vec::<String>::new());
    assert_eq!((page.in_progress, page.queued), (Some(10), Some(vec![3])));
    let page = read("p 5\nd_sum 1\nd_count 1\n", &names);
    assert_eq!(page.complaints, ["q: not on the page"]);
    assert_eq!(page.in_progress, None, "only some of them are known");
}

#[test]
fn of_a_metric_with_labels_only_the_samples_that_have_them_count() {
    let names = Scrape {
        in_progress: "p{kind=\"all\",of=\"a \\\"b\\\"\"}".into(),
        queued: "p{kind=\"waits\"}".into(),
        queuing_delay: Some("d{kind=\"all\"}".into()),
        ..names()
    };
    let page = "p{of=\"a \\\"b\\\"\",kind=\"all\",model=\"1\"} 4\np{kind=\"all\"} 100\np{kind=\"waits\"} 3\np{kind=\"other\"} -1\n\
                d_sum{kind=\"all\"} 2\nd_count{kind=\"all\"} 1\nd_sum{kind=\"some\"} 7\nd_count 5\n";
    let read = |page: &str| super::read(page, &names);
    let told = read(page);
    assert_eq!(told.complaints, Vec::<String>::new());
    assert_eq!((told.in_progress, told.queued), (Some(4), Some(vec![3])));
    let (seconds, jobs) = (2.0, 1.0);
    assert_eq!(told.delay, Some(Totals { seconds, jobs }));
    let told = read(&page.replace("waits", "rests"));
    let missing = "p{kind=\"waits\"}: not on the page";
    assert_eq!(
        (told.complaints, told.queued),
        (vec![missing.to_owned()], None)
    );
}

#[test]
fn hosts_without_a_queuing_delay_owe_none() {
    let names = Scrape {
        queuing_delay: None,
        ..names()
    };
    let page = read("p 5\nq 1\nd_sum 1\nd_count 1\n{\"d\"} 3\n", &names);
    assert_eq!((page.delay, page.complaints), (None, vec![]));
}

#[test]
fn what_few_hosts_tell_is_named_where_it_cannot_be_read_and_not_where_it_is_absent() {
    for (line, complaint) in [
        ("b many\n", "b: \"many\" is not a number"),
        ("w -1\n", "w: -1 is not a count"),
        (
            "w{priority=\"32\"} 1\n",
            "w: priority \"32\" is not in 0 to 31",
        ),
        ("leaving soon\n", "leaving: \"soon\" is not a number"),
    ] {
        let page = read(&format!("{GOOD}{line}"), &names());
        assert_eq!(page.complaints, [complaint]);
        assert_eq!((page.busy_cores, page.work), (None, None));
    }
}

#[test]
fn a_missing_metric_is_named_and_the_others_stay() {
    let page = read(&GOOD.replace("p 5\n", ""), &names());
    assert_eq!(page.complaints, ["p: not on the page"]);
    assert_eq!(
        (
            page.in_progress,
            page.queued.is_some(),
            page.delay.is_some()
        ),
        (None, true, true)
    );
    assert_eq!(read("<html>", &names()).complaints.len(), 4);
}

#[test]
fn nan_negative_and_infinite_values_are_refused_for_that_figure_alone() {
    for bad in ["NaN", "-1", "+Inf", "-Inf", "1e300", "abc", ""] {
        let page = read(&GOOD.replace("p 5", &format!("p {bad}")), &names());
        assert_eq!(page.in_progress, None, "{bad}");
        assert_eq!(page.complaints.len(), 1, "{bad}");
        assert!(page.queued.is_some() && page.delay.is_some());
        let page = read(
            &GOOD.replace("d_sum 2.5", &format!("d_sum {bad}")),
            &names(),
        );
        assert_eq!((page.delay, page.in_progress), (None, Some(5)), "{bad}");
    }
}

#[test]
fn a_host_drains_only_while_it_says_so() {
    let draining = |line: &str| read(&format!("{GOOD}\n{line}\n"), &names()).draining;
    assert_eq!(draining("leaving 1"), Some(true));
    assert_eq!(draining("leaving 0"), Some(false));
    assert_eq!(draining("leaving soon"), None);
    assert_eq!(read(GOOD, &names()).draining, None);
    assert!(
        read(GOOD, &names()).complaints.is_empty(),
        "it may be absent"
    );
}

#[test]
fn a_class_that_does_not_exist_is_refused() {
    let page = read(&GOOD.replace("\"16\"", "\"32\""), &names());
    assert_eq!(page.complaints, ["q: priority \"32\" is not in 0 to 31"]);
    assert_eq!(page.queued, None);
    assert_eq!(read("q 7", &names()).queued, Some(vec![7]));
}

#[test]
fn a_hosts_cores_are_read_within_reason_and_may_be_absent() {
    let read = |line: &str| read(&format!("{GOOD}{line}\n"), &names());
    for (line, millicores) in [
        ("", None),
        ("c 4", Some(4000)),
        ("c 0.5", Some(500)),
        ("c{socket=\"0\"} 8\nc{socket=\"1\"} 8", Some(16_000)),
        ("c 4096", Some(4_096_000)),
    ] {
        let page = read(line);
        assert_eq!(
            (page.millicores, page.complaints),
            (millicores, vec![]),
            "{line}"
        );
    }
    for (line, complaint) in [
        ("c 0", "c: 0 is not in 0.001 to 4096 cores"),
        ("c 4097", "c: 4097 is not in 0.001 to 4096 cores"),
        ("c -4", "c: -4 is not a count"),
        ("c NaN", "c: NaN is not a count"),
        ("c +Inf", "c: inf is not a count"),
        ("c all", "c: \"all\" is not a number"),
    ] {
        let page = read(line);
        assert_eq!(
            (page.millicores, page.complaints),
            (None, vec![complaint.to_owned()]),
            "{line}"
        );
        assert_eq!(page.in_progress, Some(5), "the others stay");
    }
}

proptest! {
    #[test]
    fn no_page_makes_it_panic(page in "[pqd_{}\"=,\\\\ 0-9a-z\n.-]{0,200}") {
        read(&page, &names());
    }
}
