// SPDX-License-Identifier: Apache-2.0
//! Figures 1 to 3 and 9 to 20 of the document, of SIMULATED runs, on one page.
//!
//! Its plots A have p95 and load over time, its plots B memcached's cores and load, and both say when jobs start, pause
//! and go on. Here these stand under each other along one time.

use weir_report::{
    Axis, Figure, Kind, Lane, Lanes, Plot, Report, Series, Stack, Stretch, Style, VerticalMark,
};

use super::history::{History, Interval, JobHistory};
use super::load;
use super::params::Params;
use super::part3::{self, Written};
use super::part4::{self, Seeds, Way};
use super::published::JOBS;

/// The document has three runs of each.
const RUNS: u64 = 3;
/// Intervals of the load, with the number of the first figure.
const INTERVALS: [(f64, u64); 2] = [(10.0, 9), (6.0, 15)];
/// Above the highest value, so that its line is seen.
const ROOM: f64 = 1.1;
const CAPTION: &str = "Strokes are start and end. Where pauses are too short to be drawn, a bar is as high as the share of time in \
                       which the job ran.";

/// `command` is what the page says that it was written by.
#[must_use]
pub fn page(params: &Params, command: &str) -> Report {
    let mut report = Report::new(
        "Document 004 over time, SIMULATED",
        "Figures 1 to 3 and 9 to 20: memcached and six batch jobs, runs 1 to 3",
    );
    report.command(command);
    report.heading("Part 3: the static plan");
    for seed in 1..=RUNS {
        let run = Written::document().play_by_chance(params, seed);
        let drawn = Drawn {
            history: &run.history,
            length_s: run.total_s,
            objective_s: part3::OBJECTIVE.as_secs_f64(),
        };
        let figures = vec![Figure::Plot(drawn.tail()), Figure::Lanes(drawn.jobs())];
        let title = format!("Figure {seed}: run {seed} of the static plan (SIMULATED)");
        report.stack(&stack(title, figures));
    }
    for (interval_s, first) in INTERVALS {
        report.heading(&format!("Part 4: blocks, a new load every {interval_s} s"));
        for seed in 1..=RUNS {
            let seeds = Seeds::document(seed);
            let run = part4::run(Way::Document, params, interval_s, seeds);
            let drawn = Drawn {
                history: &run.history,
                length_s: load::SECONDS,
                objective_s: part4::OBJECTIVE.as_secs_f64(),
            };
            let figures = vec![
                Figure::Plot(drawn.tail()),
                Figure::Plot(drawn.load()),
                Figure::Plot(drawn.cores()),
                Figure::Lanes(drawn.jobs()),
            ];
            let a = first + 2 * (seed - 1);
            let title = format!(
                "Figures {a} and {}: plots {seed}A and {seed}B (SIMULATED)",
                a + 1
            );
            report.stack(&stack(title, figures));
        }
    }
    report
}

fn stack(title: String, figures: Vec<Figure>) -> Stack {
    Stack {
        title,
        figures,
        ..Stack::default()
    }
}

fn series(name: &str, points: Vec<(f64, f64)>, style: Style) -> Series {
    Series {
        name: name.to_owned(),
        points,
        style,
    }
}

/// A run, as it is drawn.
struct Drawn<'a> {
    history: &'a History,
    length_s: f64,
    objective_s: f64,
}

impl Drawn<'_> {
    fn time(&self) -> Axis {
        Axis::linear("time / s").range(0.0, self.length_s)
    }

    /// By interval; the last one holds until the end.
    fn points(&self, of: impl Fn(&Interval) -> f64) -> Vec<(f64, f64)> {
        let intervals = &self.history.intervals;
        let mut points: Vec<(f64, f64)> = intervals.iter().map(|one| (one.at_s, of(one))).collect();
        points.extend(intervals.last().map(|last| (self.length_s, of(last))));
        points
    }

    fn tail(&self) -> Plot {
        let intervals = &self.history.intervals;
        let highest = intervals
            .iter()
            .map(|one| one.p95_s)
            .fold(self.objective_s, f64::max);
        let target_ms = self.objective_s * 1e3;
        let target = vec![(0.0, target_ms), (self.length_s, target_ms)];
        let over = intervals.iter().filter(|one| one.p95_s > self.objective_s);
        let over: Vec<(f64, f64)> = over.map(|one| (one.at_s, one.p95_s * 1e3)).collect();
        let mut lines = vec![
            series("p95", self.points(|one| one.p95_s * 1e3), Style::Step),
            series("objective", target, Style::Line),
        ];
        lines.extend((!over.is_empty()).then(|| series("violations", over, Style::Points)));
        let started = self.history.jobs.iter().zip(JOBS);
        let started = started.filter_map(|(job, name)| Some((job.started_s()?, name)));
        let mark = |(x, name): (f64, &str)| VerticalMark {
            x,
            label: name.to_owned(),
        };
        Plot {
            title: "p95 of memcached, and when each job started".to_owned(),
            x: self.time(),
            y: Axis::linear("p95 / ms").range(0.0, ROOM * highest * 1e3),
            series: lines,
            marks: started.map(mark).collect(),
            ..Plot::default()
        }
    }

    fn load(&self) -> Plot {
        let rates = self.points(|one| one.rate / 1e3);
        Plot {
            title: "Load".to_owned(),
            x: self.time(),
            y: Axis::linear("thousands of requests a second")
                .range(0.0, ROOM * load::MOST as f64 / 1e3),
            series: vec![series("load", rates, Style::Step)],
            ..Plot::default()
        }
    }

    fn cores(&self) -> Plot {
        let cores = self.history.cores.iter();
        let mut points: Vec<(f64, f64)> = cores.map(|(at, cores)| (*at, *cores as f64)).collect();
        points.extend(points.last().map(|last| (self.length_s, last.1)));
        Plot {
            title: "Cores of memcached".to_owned(),
            x: self.time(),
            y: Axis::linear("cores").range(0.0, ROOM * 2.0),
            series: vec![series("cores", points, Style::Step)],
            ..Plot::default()
        }
    }

    fn jobs(&self) -> Lanes {
        let mut places: Vec<&str> = Vec::new();
        let all = || self.history.jobs.iter().flat_map(|job| &job.stretches);
        for place in all().filter_map(|one| one.place.as_deref()) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places.sort_unstable();
        let paused = all().any(|one| one.place.is_none());
        let kind = |place: &&str| Kind {
            name: (*place).to_owned(),
            thin: false,
        };
        let mut kinds: Vec<Kind> = places.iter().map(kind).collect();
        kinds.push(Kind {
            name: "paused".to_owned(),
            thin: true,
        });
        let rows = self.history.jobs.iter().zip(JOBS);
        Lanes {
            title: "Where each job ran".to_owned(),
            x: self.time(),
            kinds,
            rows: rows.map(|(job, name)| lane(job, name, &places)).collect(),
            caption: match paused {
                true => CAPTION.to_owned(),
                false => String::new(),
            },
        }
    }
}

fn lane(job: &JobHistory, name: &str, places: &[&str]) -> Lane {
    let paused = places.len();
    let stretch = |one: &super::history::Stretch| Stretch {
        from: one.from_s,
        to: one.to_s,
        kind: one
            .place
            .as_deref()
            .and_then(|place| places.iter().position(|one| *one == place))
            .unwrap_or(paused),
    };
    let note = match job.pauses() {
        (0, _) => String::new(),
        (times, seconds) => format!("{times} pauses, {seconds:.0} s"),
    };
    Lane {
        label: name.to_owned(),
        stretches: job.stretches.iter().map(stretch).collect(),
        marks: [job.started_s(), job.ended_s()]
            .into_iter()
            .flatten()
            .collect(),
        note,
        ..Lane::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_figure_for_each_of_the_documents() {
        let html = page(&Params::default(), "weir-sim document-004").html();
        for figure in [
            "Figure 1:",
            "Figure 3:",
            "Figures 9 and 10:",
            "Figures 13 and 14:",
            "Figures 15 and 16:",
            "Figures 19 and 20:",
        ] {
            assert_eq!(html.matches(figure).count(), 1, "{figure}");
        }
        for job in JOBS {
            // A mark with a title, and a lane, in each of nine runs.
            assert_eq!(html.matches(&format!(">{job}</span>")).count(), 18, "{job}");
        }
        assert_eq!(html.matches("Cores of memcached").count(), 12);
        assert!(
            !html.contains("class=\"left-out\""),
            "points without a place"
        );
    }
}
