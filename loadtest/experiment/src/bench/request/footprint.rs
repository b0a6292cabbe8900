// SPDX-License-Identifier: Apache-2.0
//! What a sidecar takes before any request is measured: how long until it answers, and its memory by what it knows.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use weir_report::{Spread, Table};
use weir_stage::interrupt;

use crate::bench::load::{Pace, Pool, Protocol, Work};
use crate::bench::request::case::{Group, shot};
use crate::bench::request::stage::{Sidecar, Starter};
use crate::bench::request::way::Way;
use crate::bench::section::{Bound, NO_SPREAD, Section, Target};
use crate::bench::setting::Setting;
use crate::variant::in_turn;

const WAYS: [Way; 5] = [
    Way::Plain,
    Way::NoOp,
    Way::NativeNoOp,
    Way::Weir,
    Way::Native,
];
const KEYS: [usize; 2] = [10_000, 1_000_000];
const WORKERS: usize = 2;
/// Of the keys so many are asked for, at even distances.
const ASKED: usize = 1_000;
/// A try takes so long.
const TRY: Duration = Duration::from_millis(300);
/// `estimate` sends so large a share elsewhere at the most where nothing waits.
const ELSEWHERE: f64 = 0.01;
/// From the start to right answers only.
const SETTLED: Duration = Duration::from_secs(60);
/// Until memory is read: what was needed only to begin is given back by then, as far as it is.
const REST: Duration = Duration::from_secs(3);
const MEBIBYTE: f64 = (1 << 20) as f64;

/// Of one start.
struct Footprint {
    /// Until the first answer, of whatever host.
    answers: Duration,
    /// Until answers were of the hosts that have the keys; nothing of ways that know none.
    knows: Option<Duration>,
    resident: f64,
}

/// By keys and way, a footprint a round.
type Footprints = BTreeMap<(usize, Way), Vec<Footprint>>;

pub(super) fn section(setting: &Setting) -> Result<Section> {
    let rounds = if setting.quick { 1 } else { 5 };
    let mut all = Footprints::new();
    for keys in KEYS {
        let folder = setting.folder.join(format!("request/footprint-{keys}"));
        measure(setting, keys, rounds, &folder, &mut all)
            .with_context(|| format!("{keys} keys: logs are in {}", folder.display()))?;
    }
    let header = [
        "way",
        "keys",
        "ms to the first answer",
        "ms to choices by the keys",
        "MiB resident",
    ];
    let rows = all
        .iter()
        .map(|((keys, way), footprints)| row(*keys, *way, footprints));
    Ok(Section {
        title: "What a sidecar takes to begin with".to_owned(),
        how: format!(
            "An Envoy with {WORKERS} workers is started anew in each of {rounds} rounds, all ways in turns, beside \
             weir-control and 14 hosts that are there already; each key is in one host's cache. Times are from the \
             start of the process: to any answer, and to when at least 99 of 100 are of the host that has the key, \
             by {ASKED} keys at even distances. Resident memory is read {} s after that.",
            REST.as_secs()
        ),
        table: Table::new(header, rows.collect::<Result<Vec<_>>>()?),
        targets: vec![native_tables(&all)?],
        ..Section::default()
    })
}

fn measure(
    setting: &Setting,
    keys: usize,
    rounds: usize,
    folder: &Path,
    all: &mut Footprints,
) -> Result<()> {
    let group = Group {
        name: "footprint",
        title: "",
        ways: &WAYS,
        cases: Vec::new(),
        workers: WORKERS,
        half_of: Way::Weir,
        hosts: 14,
        keys,
    };
    let mut starter = Starter::new(&setting.programs, &group, folder)?;
    for round in 0..rounds {
        for way in in_turn(round, WAYS) {
            interrupt::check()?;
            let (name, round) = (way.name(), round + 1);
            eprintln!("request: start of {name} with {keys} keys, round {round} of {rounds}");
            let footprint = start(&mut starter, way, keys).context(name)?;
            all.entry((keys, way)).or_default().push(footprint);
        }
    }
    Ok(())
}

/// Starts a sidecar, looks at it and ends it.
fn start(starter: &mut Starter<'_>, way: Way, keys: usize) -> Result<Footprint> {
    let shots = (0..ASKED).map(|at| shot("/", at * keys / ASKED, None, way, &starter.hosts));
    let work = Rc::new(Work::new(shots.collect::<Result<_>>()?));
    let begun = Instant::now();
    let Sidecar { envoy, .. } = starter.sidecar(way)?;
    let are_right = || {
        let mut pool = Pool::connect(envoy.listener, Protocol::Http1(1), Rc::clone(&work))?;
        let answers = pool.send(Pace::Closed, TRY)?;
        Ok::<_, anyhow::Error>(answers.elsewhere as f64 <= ELSEWHERE * answers.count as f64)
    };
    // An answer that is none is a way that does not serve yet.
    let first = || {
        let mut pool = Pool::connect(envoy.listener, Protocol::Http1(1), Rc::clone(&work))?;
        pool.send(Pace::Closed, Duration::ZERO)
    };
    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        while !is_so() {
            interrupt::check()?;
            ensure!(begun.elapsed() < SETTLED, "{what} did not come");
        }
        Ok::<_, anyhow::Error>(begun.elapsed())
    };
    let answers = until("an answer", &|| first().is_ok())?;
    let knows = way.is_weir().then(|| {
        let asked = until("the right answers", &|| are_right().unwrap_or(false))?;
        // The try that was right throughout began so long before.
        Ok::<_, anyhow::Error>(asked.saturating_sub(TRY))
    });
    let knows = knows.transpose()?;
    std::thread::sleep(REST);
    let resident = envoy.process.memory()?.resident as f64 / MEBIBYTE;
    starter.stop(way)?;
    Ok(Footprint {
        answers,
        knows,
        resident,
    })
}

fn spread(figures: impl Iterator<Item = f64>) -> Result<Spread> {
    Spread::of(&figures.collect::<Vec<_>>()).context(NO_SPREAD)
}

fn row(keys: usize, way: Way, footprints: &[Footprint]) -> Result<Vec<String>> {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let knows = footprints.iter().filter_map(|of| of.knows.map(ms));
    Ok(vec![
        way.name().to_owned(),
        keys.to_string(),
        spread(footprints.iter().map(|of| ms(of.answers)))?.to_string(),
        match way.is_weir() {
            true => spread(knows)?.to_string(),
            false => "–".to_owned(),
        },
        spread(footprints.iter().map(|of| of.resident))?.to_string(),
    ])
}

/// What a million keys add to the process, beside the module that does nothing.
fn native_tables(all: &Footprints) -> Result<Target> {
    let [_, many] = KEYS;
    let of = |way| all.get(&(many, way)).context("a way was not started");
    let pairs = of(Way::Native)?.iter().zip(of(Way::NativeNoOp)?);
    Ok(Target {
        what: format!("MiB of Weir, native, with {many} keys, beyond the no-op"),
        bound: Bound::AtMost(30.0),
        got: spread(pairs.map(|(with, without)| with.resident - without.resident))?,
    })
}
