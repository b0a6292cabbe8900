// SPDX-License-Identifier: Apache-2.0
//! One of everything, with made-up numbers: `cargo run -p weir-report --example sample -- sample.html`.

use weir_report::{
    Axis, BarRow, Bars, Figure, Heat, HeatRow, Kind, Lane, Lanes, Panels, Plot, Report, Series,
    Stretch, Strip, Strips, Style, Table, VerticalMark, WriteError, cdf,
};

const ORDERS: [&str; 5] = [
    "priority",
    "round robin",
    "quantum",
    "rate-based",
    "thread per job",
];

fn main() -> Result<(), WriteError> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "sample.html".to_owned());
    let mut report = Report::new(
        "Executor order under a rising rate",
        "Five orders of the same joblets on four cores, ten minutes each, seed 1.",
    );
    report.note(
        "MADE UP: every number on this page comes from a formula. It shows what a report can hold.",
    );
    report.text("Above 36 requests a second the orders part: those that let important joblets pass keep their waits short, the others make everybody wait alike.\n\nThe same seed gives the same page.");
    report.command("cargo run --package weir-report --example sample -- sample.html");
    report.heading("Waits");
    report.table(&waits());
    report.plot(&distribution());
    report.bars(&by_priority());
    report.heading("Over time");
    report.plot(&queue());
    report.plot(&hosts());
    report.panels(&Panels {
        title: "Queue of each host".to_owned(),
        figures: [0, 3].map(|order| Figure::Strips(strips(order))).to_vec(),
        caption: "Even shades are an even load.".to_owned(),
    });
    report.lanes(&lanes());
    report.heading("Places");
    report.heat(&places());
    report.fold("How this was made", |report| {
        report.facts(&[("seed", "1"), ("cores", "4")]);
        report.list(&["It is made up.".to_owned(), "All of it.".to_owned()]);
    });
    report.heading("Per request");
    report.plot(&scatter());
    report.plot(&Plot {
        title: "Refused requests".to_owned(),
        caption: "No request was refused.".to_owned(),
        ..Plot::default()
    });
    report.write(path)
}

/// Numbers between 0 and 1 without a pattern that one would see.
fn noise(seed: u64, n: u64) -> f64 {
    let mut z = (seed << 32 ^ n)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Exponential waits in milliseconds.
fn waits_of(order: usize) -> Vec<f64> {
    let mean = [20.0, 60.0, 45.0, 75.0, 110.0][order];
    (0..20_000)
        .map(|n| 0.5 - mean * (1.0 - noise(order as u64, n)).ln())
        .collect()
}

fn waits() -> Table {
    let row = |n: usize| {
        let mut sorted = waits_of(n);
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            format!(
                "{:.1}",
                sorted[(share * (sorted.len() - 1) as f64) as usize]
            )
        };
        vec![
            ORDERS[n].to_owned(),
            sorted.len().to_string(),
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999),
            at(1.0),
            if n == 0 {
                "–".to_owned()
            } else {
                "0.4 %".to_owned()
            },
        ]
    };
    let header = [
        "order",
        "requests",
        "p50 / ms",
        "p90 / ms",
        "p99 / ms",
        "p99.9 / ms",
        "max / ms",
        "over deadline",
    ];
    Table {
        header: header.map(str::to_owned).to_vec(),
        rows: (0..ORDERS.len()).map(row).collect(),
    }
}

fn distribution() -> Plot {
    let series = |(n, name): (usize, &&str)| Series {
        name: (*name).to_owned(),
        points: cdf(&waits_of(n)),
        style: Style::Step,
    };
    Plot {
        title: "Wait for a core, all requests".to_owned(),
        x: Axis::log("wait / ms"),
        y: Axis::linear("share of requests").range(0.0, 1.0),
        series: ORDERS.iter().enumerate().map(series).collect(),
        marks: vec![VerticalMark {
            x: 500.0,
            label: "deadline".to_owned(),
        }],
        caption: "Further left is better. The wait axis is logarithmic.".to_owned(),
    }
}

fn by_priority() -> Bars {
    let row = |label: &str, values: [f64; 3]| BarRow {
        label: label.to_owned(),
        values: values.to_vec(),
    };
    Bars {
        title: "Wait by priority".to_owned(),
        label: "p99 wait / ms".to_owned(),
        series: ["high", "medium", "low"].map(str::to_owned).to_vec(),
        rows: vec![
            row("priority", [9.2, 41.0, 318.0]),
            row("round robin", [139.0, 140.0, 141.5]),
            row("thread per job, no limit", [212.0, 215.0, f64::NAN]),
        ],
        caption: "Thread per job finished no job of low priority in time.".to_owned(),
    }
}

fn queue() -> Plot {
    let series = |order: usize| Series {
        name: ORDERS[order].to_owned(),
        points: (0..60_000u64)
            .map(|n| {
                let t = n as f64 / 100.0;
                let rise = (t / 600.0).powi(2) * [40.0, 120.0, 90.0, 150.0, 220.0][order];
                let queued =
                    rise * (0.7 + 0.6 * noise(order as u64 + 9, n / 40)) + 2.0 * noise(3, n);
                (
                    t,
                    if order == 2 && (300.0..330.0).contains(&t) {
                        f64::NAN
                    } else {
                        queued.floor()
                    },
                )
            })
            .collect(),
        style: Style::Step,
    };
    let mark = |x, label: &str| VerticalMark {
        x,
        label: label.to_owned(),
    };
    Plot {
        title: "Queued joblets".to_owned(),
        x: Axis::linear("time / s"),
        y: Axis::linear("joblets in the queue"),
        series: vec![series(0), series(2), series(4)],
        marks: vec![
            mark(120.0, "24 requests/s"),
            mark(300.0, "quantum: metrics lost"),
            mark(330.0, "36 requests/s"),
            mark(560.0, "48 requests/s"),
        ],
        caption: "60 000 samples a series, thinned so that every peak stays.".to_owned(),
    }
}

fn hosts() -> Plot {
    let series = |host: usize| Series {
        name: format!("host-{:02}", host + 1),
        points: (0..=60u64)
            .map(|n| {
                (
                    n as f64 * 10.0,
                    8.0 * host as f64 + 4.0 * noise(host as u64, n) + n as f64 / 9.0,
                )
            })
            .collect(),
        style: Style::Line,
    };
    Plot {
        title: "Twelve hosts: projects in cache, with a title long enough to need a second line on a phone".to_owned(),
        x: Axis::linear("time / s"),
        y: Axis::linear("projects in cache"),
        series: (0..12).map(series).collect(),
        ..Plot::default()
    }
}

fn strips(order: usize) -> Strips {
    let strip = |host: u64| Strip {
        label: format!("host {}", host + 1),
        values: (0..60)
            .map(|n| {
                let rise = (n * (order as u64 + 1)) as f64 / 3.0;
                (rise * noise(host + 90, n / 4)).floor()
            })
            .collect(),
    };
    Strips {
        title: ORDERS[order].to_owned(),
        x: Axis::linear("time / s").range(0.0, 600.0),
        rows: (0..4).map(strip).collect(),
        steps: vec![1.0, 4.0, 16.0, 64.0],
        unit: "joblets in the queue".to_owned(),
        caption: String::new(),
    }
}

fn lanes() -> Lanes {
    let kinds = [("loads", false), ("runs", false), ("paused", true)];
    let lane = |host: u64| {
        let mut stretches = Vec::new();
        let mut from = 40.0 * noise(host, 0);
        for n in 1..40 {
            let to = (from + 30.0 * noise(host, n)).min(600.0);
            let kind = (n % 3) as usize;
            stretches.push(Stretch { from, to, kind });
            from = to;
        }
        let marks = vec![stretches[0].from, from];
        let bad = host == 2;
        let note = if bad { "✕ exit 1" } else { "✓" };
        Lane {
            label: format!("host {}", host + 1),
            stretches,
            marks,
            note: note.to_owned(),
            bad,
        }
    };
    Lanes {
        title: "What each host did".to_owned(),
        x: Axis::linear("time / s").range(0.0, 600.0),
        kinds: kinds
            .map(|(name, thin)| Kind {
                name: name.to_owned(),
                thin,
            })
            .to_vec(),
        rows: (0..4).map(lane).collect(),
        caption: "Strokes are start and end.".to_owned(),
    }
}

fn places() -> Heat {
    let row = |key: u64| {
        let parts: Vec<f64> = (0..4).map(|n| noise(key, n).powi(6)).collect();
        let all: f64 = parts.iter().sum();
        HeatRow {
            label: format!("shop {key}"),
            shares: parts.iter().map(|part| part / all).collect(),
        }
    };
    let header = ["key", "host 1", "host 2", "host 3", "host 4"];
    Heat {
        title: "Where requests went".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows: (1..7).map(row).collect(),
        caption: "Per cent of each key's requests.".to_owned(),
    }
}

fn scatter() -> Plot {
    let series = |seed: u64, name: &str| Series {
        name: name.to_owned(),
        points: (0..400)
            .map(|n| {
                let items = 10f64.powf(2.0 + 4.0 * noise(seed, n));
                (
                    items,
                    items * (0.4 + noise(seed + 50, n)) / 900.0 * seed as f64,
                )
            })
            .collect(),
        style: Style::Points,
    };
    Plot {
        title: "Run time by size of the project".to_owned(),
        x: Axis::log("items"),
        y: Axis::log("run time / ms"),
        series: vec![series(1, "in cache"), series(4, "fetched")],
        ..Plot::default()
    }
}
