// SPDX-License-Identifier: Apache-2.0
//! The experiments of document 002, chapter 4: which runs each has.

use weir_governor::frequency::Khz;

use super::super::cell::{Cell, Costs};
use super::super::{Allowed, Governor, Load, MAX, MIN, Terms};
use super::facts::{MIDDLE, hurry_up, kernel, unchanging};

/// Runs side by side.
#[derive(Debug)]
pub struct Experiment {
    /// Of the text.
    pub section: &'static str,
    /// What is varied.
    pub title: &'static str,
    /// What the text says of it.
    pub said: &'static str,
    /// Load, name and run; energy is compared with the first of each load.
    pub rows: Vec<(String, String, Cell)>,
}

const LOW: Terms = Terms::Low;
const MIXED: Terms = Terms::Mixed;
const HIGH: Terms = Terms::High;

fn load_name(load: Load) -> String {
    match load.clients / 4 {
        1 => load.terms.name().to_owned(),
        times => format!("{} {times}×", load.terms.name()),
    }
}

fn row(name: impl Into<String>, cell: Cell) -> (String, String, Cell) {
    (load_name(cell.load), name.into(), cell)
}

fn ondemand(load: Load) -> (String, String, Cell) {
    row("ondemand", kernel(Governor::ondemand(), load))
}

fn three_state(threshold_ms: u64, period_ms: u64, load: Load) -> (String, String, Cell) {
    let name = format!("three_state {threshold_ms}/{period_ms}");
    row(name, hurry_up(threshold_ms, period_ms, load))
}

/// All of them, in the order of the text.
#[must_use]
pub fn experiments() -> Vec<Experiment> {
    vec![
        frequencies(),
        baseline(),
        first_version(),
        states(),
        overhead(),
        idle_states(),
        thresholds(),
        awakeness(),
        results(),
        without_c6(),
    ]
}

fn frequencies() -> Experiment {
    let cell = |terms, khz: Khz| {
        let cell = kernel(Governor::Fixed(khz), Load::alone(terms)).lasting(5);
        (format!("{}, alone", terms.name()), khz.to_string(), cell)
    };
    let steps = [
        2_600_000, 2_300_000, 2_000_000, 1_700_000, 1_400_000, 1_000_000,
    ]
    .map(Khz);
    let of = |terms| steps.map(move |khz| cell(terms, khz));
    Experiment {
        section: "3.1",
        title: "Fixed frequencies, 5,000 queries one after the other (figures 3.1 to 3.4)",
        said: "1.0 GHz takes nearly three times as long as 2.6 and more energy; heavy queries take over four times the \
               energy of light ones at 2.6 GHz; light ones take least at 2.0.",
        rows: [LOW, MIXED, HIGH].into_iter().flat_map(of).collect(),
    }
}

fn baseline() -> Experiment {
    let of = |terms| {
        let load = Load::base(terms, 1);
        [
            ondemand(load),
            row("performance", kernel(Governor::performance(), load)),
            row("powersave", kernel(Governor::powersave(), load)),
        ]
    };
    Experiment {
        section: "4.2",
        title: "Governors of the kernel (figure 4.2)",
        said: "powersave misses the deadline for high and is at it for low, where it takes more energy than performance; \
               performance takes more than ondemand; both meet the deadline.",
        rows: [LOW, HIGH].into_iter().flat_map(of).collect(),
    }
}

fn first_version() -> Experiment {
    let of = |terms| {
        let load = Load::base(terms, 1);
        [ondemand(load), three_state(350, 10, load)]
    };
    Experiment {
        section: "4.3",
        title: "First version, 350 ms and 10 ms (figures 4.3 and 4.4)",
        said: "Up to 6 % less energy, mainly for high; both meet the deadline. Both are mostly at 1.0 GHz when idle; \
               under load ondemand is mostly at 2.6.",
        rows: [LOW, MIXED, HIGH].into_iter().flat_map(of).collect(),
    }
}

fn states() -> Experiment {
    let of = |terms| {
        let load = Load::base(terms, 1);
        let two = |khz: Khz| {
            let cell = Cell::new(Governor::two_state(khz, 10), Costs::Document, load).lasting(10);
            row(format!("two_state {khz}"), cell)
        };
        let three = row("three_state 350/10", hurry_up(350, 10, load).lasting(10));
        [three, two(MIDDLE), two(MAX)]
    };
    Experiment {
        section: "4.4",
        title: "Two and three states (figure 4.5)",
        said: "Two states with 2.0 GHz take least and miss the deadline by about 10 %; with 2.6 GHz they meet it and take \
               7 % more than three states.",
        rows: [LOW, HIGH].into_iter().flat_map(of).collect(),
    }
}

fn overhead() -> Experiment {
    let of = |khz: Khz| {
        let load = Load::base(LOW, 1);
        let with = |costs| Cell::new(unchanging(khz), costs, load);
        let load_name = format!("low, {khz}");
        [
            (
                load_name.clone(),
                "nothing".to_owned(),
                kernel(Governor::Fixed(khz), load),
            ),
            (
                load_name.clone(),
                "document's agent, 10 ms".to_owned(),
                with(Costs::Document),
            ),
            (load_name, "ours, 10 ms".to_owned(), with(Costs::Ours)),
        ]
    };
    Experiment {
        section: "4.5",
        title: "What events and ticks cost, frequencies fixed (figure 4.6)",
        said: "The agent adds about 0.1 s: 10 % at 1.0 GHz and 40 % at 2.6; energy 5 % and 11 %.",
        rows: [MIN, MAX].into_iter().flat_map(of).collect(),
    }
}

fn idle_states() -> Experiment {
    let of = |terms| {
        let load = Load::base(terms, 1);
        let only = |(of, name, cell): (String, String, Cell)| {
            let cell = Cell {
                allowed: Allowed::OnlyC0,
                ..cell.lasting(10)
            };
            (of, format!("{name}, only C0"), cell)
        };
        let all = |(of, name, cell): (String, String, Cell)| (of, name, cell.lasting(10));
        [
            all(ondemand(load)),
            only(ondemand(load)),
            all(three_state(350, 10, load)),
            only(three_state(350, 10, load)),
        ]
    };
    Experiment {
        section: "4.6",
        title: "Idle states (figures 4.7 and 4.8)",
        said: "Only C0 takes more energy. With all states both are mostly in C6 for low; for high three_state is longer in \
               C0, at a lower frequency.",
        rows: [LOW, HIGH].into_iter().flat_map(of).collect(),
    }
}

fn thresholds() -> Experiment {
    let of = |terms| {
        let load = Load::base(terms, 1);
        [150, 300, 450, 600].map(move |threshold| three_state(threshold, 10, load))
    };
    Experiment {
        section: "4.7",
        title: "Threshold at an awakeness of 10 ms (figure 4.9)",
        said: "As it grows energy falls and service time rises, for high; low does not care.",
        rows: [LOW, MIXED, HIGH].into_iter().flat_map(of).collect(),
    }
}

fn awakeness() -> Experiment {
    let of = |terms| {
        let load = Load::base(terms, 1);
        [5, 10, 20, 50, 100, 200].map(move |period| three_state(300, period, load))
    };
    Experiment {
        section: "4.7, 4.5",
        title: "Awakeness at a threshold of 300 ms (figure 4.10)",
        said: "Very small and very large values cost some service time; larger ones take less energy.",
        rows: [LOW, MIXED, HIGH].into_iter().flat_map(of).collect(),
    }
}

fn results() -> Experiment {
    let of = |(terms, times)| {
        let load = Load::base(terms, times);
        [ondemand(load), three_state(450, 50, load)]
    };
    let loads = [
        (LOW, 1),
        (MIXED, 1),
        (HIGH, 1),
        (LOW, 3),
        (MIXED, 3),
        (HIGH, 3),
        (MIXED, 4),
    ];
    Experiment {
        section: "4.8",
        title: "Calibrated, 450 ms and 50 ms (figures 4.11 and 4.12)",
        said: "17 % less energy for high and about 2 % otherwise; at 3× 22 % for mixed and 28 % for low, high misses the \
               deadline; mixed at 4× is just within it.",
        rows: loads.into_iter().flat_map(of).collect(),
    }
}

fn without_c6() -> Experiment {
    let of = |terms| {
        let load = Load::base(terms, 1);
        let cell = move |khz: Khz| {
            let cell = Cell {
                allowed: Allowed::UpToC1,
                ..kernel(Governor::Fixed(khz), load).lasting(10)
            };
            row(khz.to_string(), cell)
        };
        [MIN, Khz(1_400_000), MIDDLE, Khz(2_300_000), MAX].map(cell)
    };
    Experiment {
        section: "5",
        title: "Fixed frequencies where no core sleeps deeper than C1",
        said: "Where C6 is forbidden the lowest energy is at 1.0 GHz.",
        rows: [LOW, MIXED, HIGH].into_iter().flat_map(of).collect(),
    }
}
