// SPDX-License-Identifier: Apache-2.0
//! From the answers to one round of queries to the figures of each host. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weir_promql::{Answer, Series};

use super::figure::Figure;
use super::names::{Named, Names};
use super::series::{self, Read};
use crate::figures::Figures;
use crate::poll::PollError;

/// One a figure that was asked for.
pub type Answers = BTreeMap<Figure, Result<Answer, PollError>>;

/// What a round says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    /// Every host, by address.
    pub hosts: BTreeMap<String, Told>,
    /// What is wrong with answers as a whole, each once.
    pub complaints: Vec<String>,
    /// Series of hosts that are not in this cluster.
    pub unknown_series: u64,
}

/// What a round says of one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// Absent where not all of its load is known, or not how old it is: half of it would be worse than what was
    /// known before.
    pub load: Option<Load>,
    /// One sentence a figure that is missing or refused.
    pub complaints: Vec<String>,
}

/// Figures that count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// As told.
    pub figures: Figures,
    /// Whether the host wants no new requests; absent where that is not known.
    pub draining: Option<bool>,
    /// Since Prometheus read them.
    pub age: Duration,
}

/// Takes in a round of answers. `label` names the host of a series.
pub fn gather<'a>(
    answers: &Answers,
    label: &str,
    names: &Names<'a>,
    hosts: impl IntoIterator<Item = &'a str>,
) -> Round {
    let mut round = Round::default();
    let mut complaints = BTreeSet::new();
    let mut of_host: BTreeMap<(&str, Figure), Vec<&Series>> = BTreeMap::new();
    for (name, [first, second]) in names.shared() {
        complaints.insert(format!(
            "{label}={name:?} names two hosts, {first} and {second}"
        ));
    }
    for (figure, answer) in answers {
        let mut complain = |reason: &dyn std::fmt::Display| {
            complaints.insert(format!("{}: {reason}", figure.as_str()));
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                complain(error);
                continue;
            }
        };
        answer.warnings.iter().for_each(|warning| complain(warning));
        if answer.series.is_empty() && !figure.is_rare() {
            complain(&"no series");
        }
        for series in &answer.series {
            let Some(name) = series.labels.get(label) else {
                complain(&format!("a series without the label {label:?}"));
                continue;
            };
            match names.get(name) {
                Some(Named::Host(host)) => of_host.entry((host, *figure)).or_default().push(series),
                Some(Named::Shared(_)) => {}
                None => round.unknown_series += 1,
            }
        }
    }
    round.complaints = complaints.into_iter().collect();
    for host in hosts {
        let series = |figure| of_host.get(&(host, figure)).map_or(&[][..], Vec::as_slice);
        round.hosts.insert(host.to_owned(), told(answers, series));
    }
    round
}

/// `series`: those of one host, by figure.
fn told<'a>(answers: &Answers, series: impl Fn(Figure) -> &'a [&'a Series]) -> Told {
    let mut complaints = Vec::new();
    // Whether it may be left out: it was told, or nobody asked.
    let mut whole = |figure: Figure| -> (Option<Read>, bool) {
        let answer = match answers.get(&figure) {
            None => return (None, true),
            // Told once, of the cluster.
            Some(Err(_)) => return (None, false),
            Some(Ok(answer)) => answer,
        };
        match series::read(figure, series(figure)) {
            Ok(Some(read)) => (Some(read), true),
            Ok(None) => {
                if !figure.may_lack() && !answer.series.is_empty() {
                    complaints.push(format!("{}: no series", figure.as_str()));
                }
                (None, figure.is_rare())
            }
            Err(reason) => {
                complaints.push(format!("{}: {reason}", figure.as_str()));
                (None, false)
            }
        }
    };
    let (in_progress, running) = whole(Figure::InProgress);
    let (queued, waiting) = whole(Figure::Queued);
    let (age, aged) = whole(Figure::Age);
    let (queuing_delay, _) = whole(Figure::QueuingDelay);
    let (busy_cores, _) = whole(Figure::BusyCores);
    let (work, _) = whole(Figure::Work);
    let (draining, known) = whole(Figure::Draining);
    let load = Load {
        figures: Figures {
            in_progress: in_progress.map(|read| read.count()),
            queued: queued.map(|read| read.counts()),
            queuing_delay: queuing_delay.map(|read| read.duration()),
            delay_is_late: false,
            busy_cores: busy_cores.map(|read| read.count()),
            work: work.map(|read| read.micros()),
        },
        draining: (known && answers.contains_key(&Figure::Draining))
            .then(|| draining.is_some_and(|read| read.count() > 0)),
        age: age.map_or(Duration::ZERO, |read| read.duration()),
    };
    Told {
        load: (running && waiting && aged).then_some(load),
        complaints,
    }
}

#[cfg(test)]
mod tests;
