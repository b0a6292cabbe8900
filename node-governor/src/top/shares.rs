// SPDX-License-Identifier: Apache-2.0
//! The service's cores and the jobs, in lines of at most 80.

use std::fmt::Write as _;

use crate::admin::{JobView, SharesView};

/// Longer names are cut.
const NAME: usize = 14;
/// Of a list of cores.
const CORES: usize = 9;

/// At most `lines`; the jobs that do something first where not all have room.
pub(super) fn table(view: &SharesView, tail_ms: Option<f64>, lines: usize) -> String {
    let mut text = service(view, tail_ms);
    // Into a string nothing fails.
    let _ = writeln!(text, "{}", mesh(view));
    if view.jobs.is_empty() {
        return text;
    }
    let _ = writeln!(text, "{}", overall(view));
    let _ = writeln!(
        text,
        "{:<NAME$} {:<8} {:<CORES$} {:>3} {:>7} {:>7} {:>7} {:>5}  ended",
        "job", "state", "cores", "thr", "ran", "paused", "CPU", "done"
    );
    let room = lines.saturating_sub(text.lines().count());
    let mut jobs: Vec<&JobView> = view.jobs.iter().collect();
    let shown = match jobs.len() {
        all if all <= room => all,
        _ => room.saturating_sub(1),
    };
    if shown < jobs.len() {
        jobs.sort_by_key(|job| rank(&job.state));
    }
    for job in &jobs[..shown] {
        let _ = writeln!(text, "{}", row(job));
    }
    if shown < jobs.len() {
        let _ = writeln!(text, "+{} more", jobs.len() - shown);
    }
    text
}

fn rank(state: &str) -> usize {
    let order = ["running", "paused", "failed", "waiting"];
    order
        .iter()
        .position(|known| *known == state)
        .unwrap_or(order.len())
}

fn service(view: &SharesView, tail_ms: Option<f64>) -> String {
    let cores = match view.count {
        0 => "elsewhere".to_owned(),
        1 => format!("core {}", view.cores),
        count => format!("{count} cores {}", cut(&view.cores, 14)),
    };
    let cpu = view.cpu.map_or("-".to_owned(), |cpu| format!("{cpu:.2}"));
    let tail = tail_ms.map_or("-".to_owned(), |ms| format!("{ms:.1} ms"));
    let target = view
        .target_ms
        .map_or(String::new(), |ms| format!(" of {ms} ms"));
    let why = view.why.replace('_', " ");
    format!(
        "service  {cores} ({why})  CPU {cpu}  tail {tail}{target}\n         moved {} times  {} failed writes\n",
        view.moves, view.write_errors
    )
}

fn mesh(view: &SharesView) -> String {
    let Some(refuses) = view.refuses else {
        let pressed = if view.pressed { ", pressed before" } else { "" };
        return format!("mesh     says nothing{pressed}");
    };
    let mut text = "mesh     ".to_owned();
    text.push_str(match (refuses, view.pressed) {
        (true, _) => "refuses requests",
        (false, true) => "pressed",
        (false, false) => "calm",
    });
    // Into a string nothing fails.
    if let Some(ms) = view.delay_ms {
        let _ = write!(text, "  requests wait {ms:.1} ms");
    }
    if let Some(cores) = view.capacity_cores {
        let _ = write!(text, "  capacity {cores:.2} cores");
    }
    text
}

fn overall(view: &SharesView) -> String {
    let mut text = format!("jobs     {} of {} ended", view.ended, view.jobs.len());
    // Into a string nothing fails.
    if view.failed > 0 {
        let _ = write!(text, ", {} failed", view.failed);
    }
    if let Some(share) = view.share {
        let _ = write!(text, "  {:.0} % of the work done", share * 100.0);
    }
    text
}

fn row(job: &JobView) -> String {
    let name = cut(&job.name, NAME);
    let cores = cut(&job.cores, CORES);
    let mut line = format!(
        "{name:<NAME$} {:<8} {cores:<CORES$} {:>3} {:>7} {:>7}",
        job.state,
        job.threads,
        time(job.ran_s),
        time(job.paused_s),
    );
    let code = job.code.map_or(String::new(), |code| code.to_string());
    // Into a string nothing fails.
    let _ = match &job.trouble {
        // What went wrong is worth more room than how much it did.
        Some(trouble) => write!(line, "  {code} {trouble}"),
        None => {
            let cpu = job.cpu_s.map_or("-".to_owned(), time);
            let share = job
                .share
                .map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0));
            write!(line, " {cpu:>7} {share:>5}  {code}")
        }
    };
    cut(line.trim_end(), 80)
}

/// With what is left out told.
fn cut(text: &str, most: usize) -> String {
    let text: Vec<char> = super::plain(text).chars().collect();
    if text.len() <= most {
        return text.into_iter().collect();
    }
    let kept = text.into_iter().take(most.saturating_sub(1));
    kept.chain(['~']).collect()
}

/// `12.3s`, `75m12s`, `30h05m`: at most seven characters for less than a year.
fn time(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0..1000 => format!("{seconds:.1}s"),
        1000..36_000 => format!("{}m{:02}s", whole / 60, whole % 60),
        _ => format!("{}h{:02}m", whole / 3600, whole / 60 % 60),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::top) fn view(jobs: usize) -> SharesView {
        let job = |index: usize| JobView {
            name: format!("a-job-with-a-long-name-{index}"),
            state: ["finished", "running", "paused", "failed"][index % 4].into(),
            cores: ["", "2-3,5,7,9-11,13-63", "", ""][index % 4].into(),
            threads: 128,
            ran_s: 123_456_789.0,
            paused_s: 999.94,
            cpu_s: Some(4512.0),
            share: Some(1.0),
            code: (index % 4 == 3).then_some(137),
            trouble: (index % 4 == 3).then(|| "killed\nby a signal that nobody knows".into()),
            ..JobView::default()
        };
        SharesView {
            cores: "0-1,3-5,7-9,11-13,15-17".into(),
            count: 14,
            why: "reverted".into(),
            moves: 123_456_789,
            cpu: Some(13.25),
            target_ms: Some(1.5),
            pressed: true,
            refuses: Some(true),
            delay_ms: Some(12_345.6),
            capacity_cores: Some(128.0),
            ended: jobs,
            failed: jobs,
            share: Some(0.634),
            jobs: (0..jobs).map(job).collect(),
            ..SharesView::default()
        }
    }

    #[test]
    fn a_job_is_a_line() {
        let job = JobView {
            name: "canneal".into(),
            state: "running".into(),
            cores: "2-3".into(),
            threads: 2,
            ran_s: 123.44,
            paused_s: 4.5,
            cpu_s: Some(240.06),
            share: Some(0.71),
            ..JobView::default()
        };
        assert_eq!(
            row(&job),
            "canneal        running  2-3         2  123.4s    4.5s  240.1s  71 %"
        );
        let failed = JobView {
            state: "failed".into(),
            cores: String::new(),
            share: None,
            cpu_s: None,
            code: Some(1),
            trouble: Some("cannot be started: no such file".into()),
            ..job
        };
        assert_eq!(
            row(&failed),
            "canneal        failed               2  123.4s    4.5s  1 cannot be started: no ~"
        );
    }

    #[test]
    fn the_service_and_the_mesh_are_said_in_words() {
        let calm = SharesView {
            cores: "0".into(),
            count: 1,
            why: "no_jobs".into(),
            ..SharesView::default()
        };
        assert_eq!(
            table(&calm, None, 20),
            "service  core 0 (no jobs)  CPU -  tail -\n         moved 0 times  0 failed writes\nmesh     says nothing\n"
        );
        let text = table(&view(2), Some(1.234), 20);
        assert!(
            text.starts_with(
                "service  14 cores 0-1,3-5,7-9,1~ (reverted)  CPU 13.25  tail 1.2 ms of 1.5 ms\n"
            ),
            "{text}"
        );
        assert!(text.contains(
            "\nmesh     refuses requests  requests wait 12345.6 ms  capacity 128.00 cores\n"
        ));
        assert!(text.contains("\njobs     2 of 2 ended, 2 failed  63 % of the work done\n"));
    }

    #[test]
    fn times_have_seven_characters() {
        let times = [0.04, 999.9, 1000.0, 35_999.0, 36_000.0, 3.1e6].map(time);
        assert_eq!(
            times,
            ["0.0s", "999.9s", "16m40s", "599m59s", "10h00m", "861h06m"]
        );
    }

    #[test]
    fn jobs_that_run_are_shown_first_where_there_is_no_room_for_all() {
        let text = table(&view(40), Some(1.0), 12);
        assert_eq!(text.lines().count(), 12, "{text}");
        assert_eq!(text.matches(" running ").count(), 6, "{text}");
        assert!(text.ends_with("+34 more\n"), "{text}");
    }
}
