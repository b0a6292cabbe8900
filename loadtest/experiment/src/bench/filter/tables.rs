// SPDX-License-Identifier: Apache-2.0
//! What it takes to know a fleet: fuel, time and memory of a VM.

use anyhow::{Context, Result};
use weir_harness::cost::{self, Fleet, Taken};
use weir_report::Table;
use weir_stage::interrupt;
use weir_stage::usage::Process;

use crate::bench::section::{NO_SPREAD, Section};
use weir_report::{Spread, digits};

const FLEETS: [Fleet; 2] = [
    Fleet {
        hosts: 14,
        keys: 10_000,
        // weir-control's default.
        shards: 16,
    },
    Fleet {
        hosts: 1000,
        keys: 1000,
        shards: 64,
    },
];

/// A fleet that was taken several times.
struct Measured {
    fleet: Fleet,
    taken: Taken,
    /// Milliseconds for ten thousand keys.
    times: Vec<f64>,
}

pub(super) fn section(quick: bool) -> Result<Section> {
    let rounds = if quick { 2 } else { 7 };
    let mut all = Vec::new();
    for round in 0..rounds {
        eprintln!("filter: tables, round {} of {rounds}", round + 1);
        for fleet in FLEETS {
            interrupt::check()?;
            let (taken, time) = take(fleet)?;
            all.push((fleet, taken, time));
        }
    }
    let measured = FLEETS.map(|fleet| {
        let rounds = all.iter().filter(|(of, ..)| *of == fleet);
        let times = rounds.clone().map(|(_, _, time)| *time).collect();
        let taken = rounds.map(|(_, taken, _)| *taken).next_back();
        taken.map(|taken| Measured {
            fleet,
            taken,
            times,
        })
    });
    let rows = measured.iter().flatten().map(Measured::row);
    let header = [
        "fleet",
        "fuel per 10,000 keys",
        "ms per 10,000 keys",
        "memory of a VM",
        "memory of the VM with the streams",
    ];
    Ok(Section {
        title: "Tables in the filter".to_owned(),
        how: format!(
            "Cache contents in which every host has other keys, decoded and put to use by a VM that finds them \
             in shared data; {rounds} rounds in turns. Fuel and memory (WebAssembly's linear memory, which \
             holds what was needed at the most) are exact. The time is CPU under wasmtime, which counts fuel \
             meanwhile: V8 in Envoy takes another."
        ),
        table: Table::new(header, rows.collect::<Result<Vec<_>>>()?),
        notes: vec![
            "Every VM of a proxy has its own copy: one a worker thread and one more.".to_owned(),
        ],
        ..Section::default()
    })
}

/// What the fleet took, and the milliseconds for ten thousand of its keys.
fn take(fleet: Fleet) -> Result<(Taken, f64)> {
    let process = Process::own();
    let mut spent = None;
    let taken = cost::take(fleet, |work| {
        let before = process.cpu();
        work();
        spent = Some((before, process.cpu()));
    });
    let (before, after) = spent.context("nothing was taken")?;
    let spent = after?.saturating_sub(before?);
    Ok((taken, spent.as_secs_f64() * 1e3 / fleet.ten_thousands()))
}

impl Measured {
    fn row(&self) -> Result<Vec<String>> {
        let Fleet {
            hosts,
            keys,
            shards,
        } = self.fleet;
        let fuel = self.taken.fuel as f64 / self.fleet.ten_thousands();
        let megabytes = |bytes: u64| format!("{} MB", digits(bytes as f64 / 1e6));
        Ok(vec![
            format!("{hosts} hosts with {keys} keys each, {shards} shards"),
            digits(fuel),
            Spread::of(&self.times).context(NO_SPREAD)?.to_string(),
            megabytes(self.taken.memory),
            megabytes(self.taken.owner_memory),
        ])
    }
}
