// SPDX-License-Identifier: Apache-2.0
//! The rounds: every way of every case in turn, so that what else the machine does hits all alike.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use anyhow::{Context, Result};
use weir_report::quantile;
use weir_stage::interrupt;

use crate::bench::load::{Pace, Pool, Work};
use crate::bench::reasons::Reasons;
use crate::bench::request::case::{Case, Group, Rate, SATURATING};
use crate::bench::request::figures::{Figures, Meter};
use crate::bench::request::plan::Plan;
use crate::bench::request::stage::Stage;
use crate::bench::request::way::Way;
use crate::variant::in_turn;

/// The median of so many is taken for saturation.
const CALIBRATIONS: usize = 5;

#[derive(Default)]
pub(super) struct Results {
    /// By the case's place in its group and the way: a figure a round.
    pub(super) figures: BTreeMap<(usize, Way), Vec<Figures>>,
    /// Requests a second of the open loop.
    pub(super) rate: f64,
    /// Of Weir's choices in the same.
    pub(super) reasons: BTreeMap<(usize, Way), Reasons>,
    /// In the same. All of them were answered 200, by a host that they may have come to.
    pub(super) requests: u64,
}

pub(super) fn run(stage: &mut Stage, group: &Group, plan: &Plan) -> Result<Results> {
    let mut runner = Runner {
        stage,
        group,
        plan,
        works: BTreeMap::new(),
        results: Results::default(),
    };
    runner.calibrate()?;
    for round in 0..plan.rounds {
        for (number, case) in group.cases.iter().enumerate() {
            eprintln!(
                "request: {}: {}, round {} of {}",
                group.name,
                case.title,
                round + 1,
                plan.rounds
            );
            for way in in_turn(round, group.ways) {
                runner
                    .slice(number, case, *way)
                    .with_context(|| format!("{}: {}", case.title, way.name()))?;
            }
        }
    }
    for ((number, way), reasons) in &runner.results.reasons {
        let context = || format!("{}: {}", group.cases[*number].title, way.name());
        reasons.check_balance().with_context(context)?;
    }
    Ok(runner.results)
}

struct Runner<'a> {
    stage: &'a mut Stage,
    group: &'a Group,
    plan: &'a Plan,
    works: BTreeMap<(usize, Way), Rc<Work>>,
    results: Results,
}

impl Runner<'_> {
    /// Half of what the group's reference way usually does at most becomes the rate of the open loop.
    fn calibrate(&mut self) -> Result<()> {
        let saturating = |case: &Case| case.rate == Rate::Closed && case.protocol == SATURATING;
        let number = self.group.cases.iter().position(saturating);
        let number = number.context("no case saturates")?;
        let way = self.group.half_of;
        let target = self.stage.sidecar(way)?.envoy.listener;
        let work = self.work(number, way)?;
        let mut pool = Pool::connect(target, SATURATING, work)?;
        pool.send(Pace::Closed, self.plan.warm_up)?;
        let mut rates = Vec::with_capacity(CALIBRATIONS);
        for _ in 0..CALIBRATIONS {
            let answers = pool.send(Pace::Closed, self.plan.slice)?;
            rates.push(answers.per_second());
        }
        let usual = quantile(&rates, 0.5).context("nothing was sent")?;
        self.results.rate = (usual / 2.0 / 50.0).round().max(1.0) * 50.0;
        Ok(())
    }

    fn slice(&mut self, number: usize, case: &Case, way: Way) -> Result<()> {
        interrupt::check()?;
        let sidecar = self.stage.sidecar(way)?;
        let target: SocketAddr = sidecar.envoy.listener;
        let pace = match case.rate {
            Rate::Closed => Pace::Closed,
            Rate::HalfOfSaturation => Pace::Open(self.results.rate),
        };
        let mut pool = Pool::connect(target, case.protocol, self.work(number, way)?)?;
        pool.send(pace, self.plan.warm_up)?;
        let control = self.stage.control.process;
        let earlier = Reasons::read(sidecar.envoy.admin)?;
        let meter = Meter::start(&sidecar, control)?;
        let time = self.plan.slice.mul_f64(case.length);
        let answers = pool.send(pace, time)?;
        let figures = meter.figures(&answers)?;
        self.stage.check()?;
        let reasons = sidecar.checked(way, &earlier, &answers)?;
        let at = (number, way);
        self.results.requests += answers.count;
        self.results.reasons.entry(at).or_default().add(&reasons);
        self.results.figures.entry(at).or_default().push(figures);
        Ok(())
    }

    fn work(&mut self, number: usize, way: Way) -> Result<Rc<Work>> {
        if let Some(work) = self.works.get(&(number, way)) {
            return Ok(Rc::clone(work));
        }
        let case = &self.group.cases[number];
        let work = case.work(way, &self.stage.hosts, self.group.keys)?;
        self.works.insert((number, way), Rc::clone(&work));
        Ok(work)
    }
}
