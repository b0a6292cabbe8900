// SPDX-License-Identifier: Apache-2.0
//! `weir-memcached-load`: loads memcached with keys and asks for them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::Parser;
use serde::Serialize;
use weir_memcached_load::drive::{Load, Way};
use weir_memcached_load::keys::Keys;
use weir_memcached_load::page;
use weir_memcached_load::preload::preload;
use weir_memcached_load::schedule::Steps;
use weir_memcached_load::table;
use weir_memcached_load::target::Target;
use weir_memcached_load::total::Total;
use weir_replay::units::{duration, duration_above_0, micros, positive};

/// Asks memcached open-loop, at a rate that steps, and tells latency by interval.
#[derive(Debug, Parser)]
#[command(name = "weir-memcached-load", version)]
struct Args {
    /// Where memcached listens
    #[arg(value_name = "HOST:PORT")]
    address: String,
    /// Also ask another machine's memcached
    #[arg(long)]
    remote: bool,

    /// Store the keys and end
    #[arg(long, conflicts_with = "no_load")]
    load_only: bool,
    /// Do not store the keys: they are there
    #[arg(long)]
    no_load: bool,
    /// How many keys there are (mutilate's default)
    #[arg(long, default_value_t = 10_000)]
    keys: u32,
    /// Bytes of each value (mutilate's default)
    #[arg(long, default_value_t = 200)]
    value_bytes: usize,

    /// How long to ask
    #[arg(long, default_value = "60s", value_parser = duration)]
    duration: Duration,
    /// A new rate is drawn so often; figures are told for each
    #[arg(long, default_value = "10s", value_parser = duration)]
    interval: Duration,
    /// Requests a second: the least that is drawn (document 004's)
    #[arg(long, default_value_t = 5_000.0)]
    min: f64,
    /// Requests a second: the most that is drawn (document 004's)
    #[arg(long, default_value_t = 100_000.0)]
    max: f64,
    /// Requests a second, always
    #[arg(long, conflicts_with_all = ["min", "max"])]
    qps: Option<f64>,
    /// Times every rate: fits them to the machine
    #[arg(long, default_value = "1", value_parser = positive)]
    scale: f64,
    /// Of rates, arrivals and keys
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Keys of each request
    #[arg(long, default_value_t = 1)]
    keys_per_get: u32,
    /// Connections, asked in turn
    #[arg(long, default_value_t = 16)]
    connections: u32,
    /// Requests that may wait for their answers; those due beyond are dropped and counted
    #[arg(long, default_value_t = 4_096)]
    in_flight: u32,
    /// How long to wait for answers after the last request
    #[arg(long, default_value = "2s", value_parser = duration)]
    patience: Duration,

    /// The limit of an interval's p95 (document 004's, part 4)
    #[arg(long, default_value = "1.5ms", value_parser = duration_above_0)]
    slo: Duration,
    /// Also write each interval, and at the end the run, as a line of JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// While it runs, show latencies as a Prometheus histogram on this address of loopback
    #[arg(long, value_name = "IP:PORT")]
    metrics: Option<SocketAddr>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Line<'a> {
    /// The first line: when this was, in milliseconds since 1970, to lay it beside other logs.
    Started {
        unix_ms: u128,
        seed: u64,
    },
    Interval(&'a weir_memcached_load::interval::Figures),
    Total(&'a weir_memcached_load::total::Summary),
}

fn main() -> Result<()> {
    let args = Args::parse();
    let target = Target::new(&args.address, args.remote)?;
    let rates = args.qps.map_or((args.min, args.max), |qps| (qps, qps));
    let rates = (rates.0 * args.scale, rates.1 * args.scale);
    let steps = Steps::new(args.interval, args.duration, rates, args.seed)?;
    let keys = Keys::new(args.keys, args.value_bytes)?;
    let way = Way {
        connections: args.connections,
        keys_per_get: args.keys_per_get,
        in_flight: args.in_flight,
        patience: args.patience,
    };
    way.check()?;
    let mut json = args.json.as_deref().map(create).transpose()?;
    if !args.no_load {
        preload(target, &keys)?;
    }
    if args.load_only {
        return Ok(());
    }
    let mut line = |line: &Line<'_>| match &mut json {
        Some(file) => write_line(file, line),
        None => Ok(()),
    };
    let load = Load::connect(target, &steps, &keys, way)?;
    if let Some(address) = args.metrics {
        let bound = page::serve(address, load.seen())?;
        println!(
            "latencies are on http://{bound}/metrics as {}",
            page::METRIC
        );
    }
    line(&Line::Started {
        unix_ms: SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis(),
        seed: args.seed,
    })?;
    let limit_us = micros(args.slo);
    let mut total = Total::default();
    println!("{}", table::HEAD);
    let driven = load.run(|interval| {
        let figures = interval.figures(limit_us);
        total.add(interval, &figures);
        println!("{}", table::row(&figures));
        line(&Line::Interval(&figures))
    });
    let summary = total.summary(limit_us);
    println!("{}", table::summary(&summary));
    line(&Line::Total(&summary))?;
    driven
}

fn create(path: &std::path::Path) -> Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
    Ok(BufWriter::new(file))
}

/// At once, so that others can follow.
fn write_line(file: &mut impl Write, line: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *file, line)?;
    writeln!(file).and_then(|()| file.flush())?;
    Ok(())
}
