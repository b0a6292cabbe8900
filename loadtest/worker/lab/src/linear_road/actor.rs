// SPDX-License-Identifier: Apache-2.0
//! The actors of the workflow, and what they send to each other.
//!
//! ```text
//!          ┌─> AccidentDetection ───────────────────────┐
//! Source ──┼─> CarSpeeds ─> SegmentStatistics ──────────┼─> TollCalculation ─┬─> TollNotification
//!          └────────────────────────────────────────────┘                    └─> AccountBalance
//! ```
//!
//! The rules are those of Linear Road (Arasu et al., VLDB 2004), from memory; [`rules`] has them. Detection and
//! statistics send what they know when a minute of the traffic is over. TollCalculation keeps a report until it has both
//! of the minute before, so that a toll does not depend on the order in which actors are served.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use weir_executor::scheduler::Graph;

use super::rules::{self, Place, Segment, Speeds, Stopped};
use super::traffic::{EXIT_LANE, Report};

pub(super) const ACTORS: usize = 7;
pub(super) const SOURCE: usize = 0;
pub(super) const ACCIDENT_DETECTION: usize = 1;
pub(super) const CAR_SPEEDS: usize = 2;
pub(super) const SEGMENT_STATISTICS: usize = 3;
pub(super) const TOLL_CALCULATION: usize = 4;
pub(super) const TOLL_NOTIFICATION: usize = 5;
pub(super) const ACCOUNT_BALANCE: usize = 6;
/// Where results go.
const OUT: usize = ACTORS;

/// Who sends to whom.
pub(super) fn graph() -> Graph {
    let mut edges = vec![Vec::new(); ACTORS];
    edges[SOURCE] = vec![ACCIDENT_DETECTION, CAR_SPEEDS, TOLL_CALCULATION];
    edges[ACCIDENT_DETECTION] = vec![TOLL_CALCULATION];
    edges[CAR_SPEEDS] = vec![SEGMENT_STATISTICS];
    edges[SEGMENT_STATISTICS] = vec![TOLL_CALCULATION];
    edges[TOLL_CALCULATION] = vec![TOLL_NOTIFICATION, ACCOUNT_BALANCE];
    Graph::new(edges)
}

/// Whether an actor sends to another, or to where results go.
pub(super) fn sends(actor: usize, to: usize) -> bool {
    graph().edges(actor).contains(&to)
}

/// What a car is told that has come into another segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Toll {
    /// The number of the report.
    pub(super) report: usize,
    pub(super) car: u32,
    pub(super) segment: usize,
    /// Thousandths of a mile an hour.
    pub(super) speed: u64,
    pub(super) toll: u64,
    /// There is an accident ahead.
    pub(super) accident: bool,
}

/// The answer to a driver who has asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Balance {
    pub(super) report: usize,
    pub(super) car: u32,
    pub(super) balance: u64,
}

#[derive(Debug, Clone)]
pub(super) enum Event {
    Report(Report),
    /// Segments with an accident at the end of a minute.
    Accidents(usize, BTreeSet<usize>),
    /// Speeds and cars of each segment in a minute.
    Speeds(usize, BTreeMap<usize, Segment>),
    /// The latest average velocity and the cars of each segment after a minute.
    Statistics(usize, BTreeMap<usize, Segment>),
    Toll(Toll),
    AsksBalance(Report),
    /// A result: a car has been told.
    Notified(Toll),
    /// A result.
    Balance(Balance),
}

/// One actor and what it remembers.
#[derive(Debug)]
pub(super) enum Actor {
    Source,
    AccidentDetection(Minutes, Stopped),
    CarSpeeds(Minutes, Speeds),
    SegmentStatistics(VecDeque<BTreeMap<usize, Segment>>),
    TollCalculation(Box<Tolls>),
    TollNotification,
    AccountBalance(HashMap<u32, Account>),
}

/// All of them, in the order of the graph.
pub(super) fn all() -> Vec<Actor> {
    vec![
        Actor::Source,
        Actor::AccidentDetection(Minutes::default(), Stopped::default()),
        Actor::CarSpeeds(Minutes::default(), Speeds::default()),
        Actor::SegmentStatistics(VecDeque::new()),
        Actor::TollCalculation(Box::default()),
        Actor::TollNotification,
        Actor::AccountBalance(HashMap::new()),
    ]
}

impl Actor {
    /// Takes in an event, and sends others: each with the number of the actor that shall get it.
    pub(super) fn fire(&mut self, event: Event, sent: &mut Vec<(usize, Event)>) {
        match (self, event) {
            (Self::Source, Event::Report(report)) => {
                let to = [ACCIDENT_DETECTION, CAR_SPEEDS, TOLL_CALCULATION];
                sent.extend(to.map(|to| (to, Event::Report(report))));
            }
            (Self::AccidentDetection(minutes, stopped), Event::Report(report)) => {
                for over in minutes.over(report.minute) {
                    let accidents = Event::Accidents(over, stopped.accidents());
                    sent.push((TOLL_CALCULATION, accidents));
                }
                stopped.report(report.car, Place::of(&report));
            }
            (Self::CarSpeeds(minutes, speeds), Event::Report(report)) => {
                for over in minutes.over(report.minute) {
                    let segments = std::mem::take(speeds).segments();
                    sent.push((SEGMENT_STATISTICS, Event::Speeds(over, segments)));
                }
                speeds.report(&report);
            }
            (Self::SegmentStatistics(window), Event::Speeds(minute, segments)) => {
                window.push_back(segments);
                if window.len() > rules::WINDOW {
                    window.pop_front();
                }
                let statistics = rules::latest(window.iter());
                sent.push((TOLL_CALCULATION, Event::Statistics(minute, statistics)));
            }
            (Self::TollCalculation(tolls), event) => tolls.take(event, sent),
            (Self::TollNotification, Event::Toll(toll)) => sent.push((OUT, Event::Notified(toll))),
            (Self::AccountBalance(accounts), Event::Toll(toll)) => {
                accounts.entry(toll.car).or_default().enter(toll.toll);
            }
            (Self::AccountBalance(accounts), Event::AsksBalance(report)) => {
                let balance = Balance {
                    report: report.number,
                    car: report.car,
                    balance: accounts.entry(report.car).or_default().balance,
                };
                sent.push((OUT, Event::Balance(balance)));
            }
            (actor, event) => unreachable!("{actor:?} is not sent {event:?}"),
        }
    }
}

/// What a car owes. The toll of a segment is charged when the car has come into the next.
#[derive(Debug, Default)]
pub(super) struct Account {
    balance: u64,
    told: u64,
}

impl Account {
    fn enter(&mut self, toll: u64) {
        self.balance += std::mem::replace(&mut self.told, toll);
    }
}

/// Notes which minutes are over.
#[derive(Debug, Default)]
pub(super) struct Minutes(usize);

impl Minutes {
    fn over(&mut self, minute: usize) -> std::ops::Range<usize> {
        let first = self.0;
        self.0 = minute.max(first);
        first..minute
    }
}

/// Joins reports with what is known of the minute before.
#[derive(Debug, Default)]
pub(super) struct Tolls {
    kept: VecDeque<Report>,
    accidents: BTreeMap<usize, BTreeSet<usize>>,
    statistics: BTreeMap<usize, BTreeMap<usize, Segment>>,
    segment_of: HashMap<u32, usize>,
}

impl Tolls {
    fn take(&mut self, event: Event, sent: &mut Vec<(usize, Event)>) {
        match event {
            Event::Report(report) => self.kept.push_back(report),
            Event::Accidents(minute, segments) => {
                self.accidents.insert(minute, segments);
            }
            Event::Statistics(minute, segments) => {
                self.statistics.insert(minute, segments);
            }
            event => unreachable!("TollCalculation is not sent {event:?}"),
        }
        while let Some(report) = self.kept.front().copied().filter(|r| self.knows(r.minute)) {
            self.kept.pop_front();
            self.judge(&report, sent);
        }
    }

    fn knows(&self, minute: usize) -> bool {
        let before = minute.checked_sub(1);
        before.is_none_or(|b| self.accidents.contains_key(&b) && self.statistics.contains_key(&b))
    }

    fn judge(&mut self, report: &Report, sent: &mut Vec<(usize, Event)>) {
        let segment = report.segment();
        let before = self.segment_of.insert(report.car, segment);
        if before != Some(segment) && report.lane != EXIT_LANE {
            let known = report.minute.checked_sub(1);
            let none = BTreeSet::new();
            let accidents = known.and_then(|minute| self.accidents.get(&minute));
            let statistics = known.and_then(|minute| self.statistics.get(&minute));
            let now = statistics.and_then(|all| all.get(&segment)).copied();
            let toll = rules::toll(report, now, accidents.unwrap_or(&none));
            sent.extend([TOLL_NOTIFICATION, ACCOUNT_BALANCE].map(|to| (to, Event::Toll(toll))));
        }
        if report.asks_balance {
            sent.push((ACCOUNT_BALANCE, Event::AsksBalance(*report)));
        }
        // Reports come in order, so that nobody asks for earlier minutes.
        let needed = report.minute.saturating_sub(1);
        self.accidents.retain(|minute, _| *minute >= needed);
        self.statistics.retain(|minute, _| *minute >= needed);
    }
}
