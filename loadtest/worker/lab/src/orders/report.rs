// SPDX-License-Identifier: Apache-2.0
//! The table and the page.

use weir_report::{Axis, Plot, Report, Series, Style, Table};

use super::plan::{BEST, Figure};
use super::{Args, Results, Run};

const READING: &str = "\
Jobs of one size arrive at random, ever faster; each runs FeedSource, SharedOperators, Operators and OutputFeed, and \
none shares anything with another. The response time is from a job's arrival to its last byte. A run thrashes from the \
moment after which the mean response of a sixtieth of the run is never again below 20 times that of the median one in \
its first half. Document 003 measured a traffic workflow on another machine: its figures are shown for their order, not for their size.";

pub(super) fn markdown(args: &Args, results: &Results) -> String {
    let table = table(results);
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = vec!["---".to_owned(); table.header.len()];
    let rows: String = table.rows.iter().map(|row| line(row)).collect();
    format!(
        "{}\n\n{}{}{rows}",
        about(args, results),
        line(&table.header),
        line(&rule)
    )
}

pub(super) fn page(args: &Args, results: &Results) -> Report {
    let mut page = Report::new("Executor orders under a rising rate", about(args, results));
    page.text(READING);
    page.table(&table(results));
    page.command(&format!(
        "cargo xtask lab orders --seconds {} --rounds {} --emulated-seconds {} --top-rate {} --capacity {} --cores {} --seed {}",
        args.seconds, args.rounds, args.emulated_seconds, args.top_rate, args.capacity, args.cores, args.seed
    ));
    page.heading("Real work");
    figures(&mut page, args, &results.real, args.seconds);
    page.heading("EMULATED");
    page.note(
        "EMULATED: joblets last as long as measured ones did and burn no CPU; thread-per-job is ideal processor \
         sharing, without the cost of switching.",
    );
    figures(&mut page, args, &results.emulated, args.emulated_seconds);
    page
}

fn about(args: &Args, results: &Results) -> String {
    format!(
        "0 to {} jobs a second within {} s (real work, {} rounds) and {} s (EMULATED) on {} core(s); {}.",
        args.top_rate,
        args.seconds,
        args.rounds,
        args.emulated_seconds,
        args.cores,
        results.calibrated
    )
}

fn table(results: &Results) -> Table {
    let header = [
        "order",
        "thrashes at, real / (jobs/s)",
        "mean below half the rate, real / ms",
        "mean at 70–75 % of it, real / ms",
        "mean, real / ms",
        "not ended, real",
        "thrashes at, EMULATED / (jobs/s)",
        "mean below half the rate, EMULATED / ms",
        "mean at 70–75 % of it, EMULATED / ms",
        "mean, EMULATED / ms",
        "document 003 / (jobs/s)",
    ];
    let runs = results.real.iter().zip(&results.emulated);
    Table::new(header, runs.map(row))
}

fn row((real, emulated): (&Run, &Run)) -> Vec<String> {
    let rate = |rate: Option<f64>| rate.map_or("–".to_owned(), |rate| format!("{rate:.0}"));
    let ms = |seconds: f64| format!("{:.1}", seconds * 1e3);
    vec![
        real.plan.name.to_owned(),
        rate(real.course.thrash_rate),
        ms(real.course.mean_below_half),
        ms(real.course.mean_busy),
        ms(real.course.mean),
        real.course.cut_off.to_string(),
        rate(emulated.course.thrash_rate),
        ms(emulated.course.mean_below_half),
        ms(emulated.course.mean_busy),
        ms(emulated.course.mean),
        rate(real.plan.reported),
    ]
}

fn figures(page: &mut Report, args: &Args, runs: &[Run], seconds: u64) {
    let of = |figure: Figure| move |run: &&Run| run.plan.figure == figure;
    let best = |run: &&Run| BEST.contains(&run.plan.name);
    let (round_robin, quantum) = (of(Figure::RoundRobin), of(Figure::Quantum));
    plot(
        page,
        args,
        seconds,
        "Round robin, by quantum / µs",
        runs.iter().filter(round_robin),
    );
    plot(
        page,
        args,
        seconds,
        "QBS, by basic quantum / µs",
        runs.iter().filter(quantum),
    );
    plot(page, args, seconds, "All orders", runs.iter().filter(best));
}

fn plot<'a>(
    page: &mut Report,
    args: &Args,
    seconds: u64,
    title: &str,
    runs: impl Iterator<Item = &'a Run>,
) {
    let rate = |at: f64| args.top_rate * at / seconds as f64;
    let series = runs.map(|run| Series {
        name: run.plan.name.to_owned(),
        points: run
            .course
            .windows
            .iter()
            .map(|(at, mean)| (rate(*at), *mean))
            .collect(),
        style: Style::Line,
    });
    page.plot(&Plot {
        title: title.to_owned(),
        x: Axis::linear("arriving jobs / (1/s)").range(0.0, args.top_rate),
        y: Axis::log("mean response / s"),
        series: series.collect(),
        ..Plot::default()
    });
}
