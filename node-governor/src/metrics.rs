// SPDX-License-Identifier: Apache-2.0
//! The book as Prometheus reads it. Units are seconds, hertz and joules, as node_exporter's.

mod energy;
mod shares;

use std::fmt;
use std::time::UNIX_EPOCH;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::book::{Book, CoreBook, Shared};

/// In front of every name.
pub const PREFIX: &str = "weir_governor";

/// Everything, under [`PREFIX`] but for `process_*`.
pub fn registry(book: Shared) -> Registry {
    let mut registry = Registry::default();
    weir_pages::register(&mut registry, PREFIX, env!("CARGO_PKG_VERSION"));
    let ours = registry.sub_registry_with_prefix(PREFIX);
    ours.register_collector(Box::new(Page(book)));
    registry
}

/// Reads the book when it is asked.
#[derive(Debug)]
struct Page(Shared);

type Labels = Vec<(&'static str, String)>;

/// One family.
struct Family<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl Family<'_, '_> {
    fn write(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        series: impl IntoIterator<Item = (Labels, f64)>,
    ) -> fmt::Result {
        #[cfg(test)]
        reference::asked(name);
        let mut series = series.into_iter().peekable();
        if series.peek().is_none() {
            return Ok(());
        }
        let mut family = self.0.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in series {
            let metric = Value(kind, value);
            // A name without labels stands for itself.
            if labels.is_empty() {
                return metric.encode(family);
            }
            metric.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn counters(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (Labels, f64)>,
    ) -> fmt::Result {
        self.write(name, help, MetricType::Counter, series)
    }

    fn gauges(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (Labels, f64)>,
    ) -> fmt::Result {
        self.write(name, help, MetricType::Gauge, series)
    }

    fn gauge(&mut self, name: &str, help: &str, value: Option<f64>) -> fmt::Result {
        self.gauges(name, help, value.map(|value| (Vec::new(), value)))
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.counters(name, help, [(Vec::new(), value as f64)])
    }
}

#[derive(Debug)]
struct Value(MetricType, f64);

impl EncodeMetric for Value {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        match self.0 {
            MetricType::Counter => encoder.encode_counter::<NoLabelSet, f64, u64>(&self.1, None),
            _ => encoder.encode_gauge(&self.1),
        }
    }

    fn metric_type(&self) -> MetricType {
        self.0
    }
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let book = self.0.read();
        let mut family = Family(&mut encoder);
        cores(&mut family, &book)?;
        events(&mut family, &book)?;
        loops(&mut family, &book)?;
        if let Some(book) = &book.shares {
            shares::write(&mut family, book)?;
        }
        let joules = book.zones.iter().map(|zone| {
            let (name, index) = zone.name.rsplit_once('-').unwrap_or((&zone.name, "0"));
            let labels = vec![
                ("zone", name.to_owned()),
                ("index", index.to_owned()),
                ("path", zone.path.clone()),
            ];
            (labels, zone.joules)
        });
        family.counters(
            "rapl_joules",
            "Energy that powercap counted since the start; zones contain one another, so never sum them",
            joules,
        )?;
        energy::write(&mut family, &book.energy)
    }
}

fn of(core: &CoreBook) -> Labels {
    vec![("core", core.number.to_string())]
}

fn cores(family: &mut Family<'_, '_>, book: &Book) -> fmt::Result {
    let each = |value: fn(&CoreBook) -> f64| {
        let cores = book.cores.iter();
        cores.map(move |core| (of(core), value(core)))
    };
    let hertz = |khz: u32| f64::from(khz) * 1000.0;
    family.counters(
        "residency_seconds",
        "Time that a core was on a rung of the policy's ladder, at a frequency",
        book.cores.iter().flat_map(|core| {
            core.residency.iter().map(move |spent| {
                let mut labels = of(core);
                labels.push(("rung", spent.rung.to_string()));
                labels.push(("hertz", hertz(spent.khz.0).to_string()));
                (labels, spent.time.as_secs_f64())
            })
        }),
    )?;
    family.gauges(
        "frequency_hertz",
        "Frequency that was written last; none while a core is left alone",
        book.cores
            .iter()
            .filter_map(|core| Some((of(core), hertz(core.status.khz?.0)))),
    )?;
    family.gauges(
        "core_governed",
        "1 while plans are followed, 0 while the core is left alone",
        each(|core| f64::from(core.status.governed && core.status.online)),
    )?;
    family.gauges(
        "core_online",
        "1 while the core is online",
        each(|core| f64::from(core.status.online)),
    )?;
    family.gauges(
        "busy_ratio",
        "Share of time not idle",
        each(|core| core.busy),
    )?;
    family.counters(
        "transitions",
        "Changes of the rung",
        each(|core| core.transitions as f64),
    )?;
    family.counters(
        "frequency_writes",
        "Frequencies written",
        each(|core| core.status.writes as f64),
    )?;
    family.counters(
        "write_errors",
        "Writes that failed",
        each(|core| core.status.write_errors as f64),
    )?;
    family.counters(
        "foreign_writes",
        "Times that another program's value stood in place of ours",
        each(|core| core.status.foreign_writes as f64),
    )
}

fn events(family: &mut Family<'_, '_>, book: &Book) -> fmt::Result {
    let counts = &book.events;
    family.counter("events", "Events of hot functions read", counts.events)?;
    family.counter("events_lost", "Events that were overwritten", counts.lost)?;
    let lanes = Some(f64::from(counts.lanes));
    family.gauge("lanes", "Lanes with an owner", lanes)?;
    family.counter(
        "lanes_freed",
        "Lanes taken back from dead threads",
        counts.dead,
    )?;
    let label = |name: &'static str, value: &str| vec![(name, value.to_owned())];
    let kinds = [("future", counts.future), ("jumped", counts.jumped)];
    family.counters(
        "lies",
        "Impossible statements of producers: times to come, numbers of events never written",
        kinds.map(|(kind, count)| (label("kind", kind), count as f64)),
    )?;
    let reasons = [
        ("core", counts.outside),
        ("namespace", counts.namespace),
        ("cgroup", counts.cgroup),
    ];
    family.counters(
        "threads_ignored",
        "Threads with hot functions that are not governed for: on other cores, in another pid namespace, or in another cgroup",
        reasons.map(|(reason, count)| (label("reason", reason), count as f64)),
    )?;
    family.counter(
        "unreadable_ticks",
        "Ticks in which the file of events could not be read",
        counts.unreadable,
    )?;
    family.counter(
        "uprobe_events_without_lane",
        "Events that eBPF saw and had no lane for",
        counts.no_lane,
    )
}

fn loops(family: &mut Family<'_, '_>, book: &Book) -> fmt::Result {
    family.counter("ticks", "Decisions", book.ticks)?;
    family.counter(
        "ticks_late",
        "Decisions that began more than a tenth of the time between two too late",
        book.late,
    )?;
    let ticked = book
        .ticked
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    family.gauge(
        "last_tick_timestamp_seconds",
        "Unix time of the last decision; none before the first",
        ticked.map(|since| since.as_secs_f64()),
    )?;
    family.gauge(
        "tail_seconds",
        "The service's latency as it is measured; none while nothing is",
        book.tail.map(|tail| tail.latency.as_secs_f64()),
    )?;
    family.gauge(
        "mesh_connected",
        "1 while the stream to weir-control is open, 0 else; none where `mesh` is not configured",
        book.mesh_connected
            .map(|connected| f64::from(u8::from(connected))),
    )
}

#[cfg(test)]
mod reference;

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::book::{Residency, ZoneBook};
    use crate::frequency::Khz;

    #[test]
    fn the_page_has_base_units_and_no_sums() {
        let zone = |name: &str, joules| ZoneBook {
            name: name.into(),
            path: format!("/sys/class/powercap/{name}"),
            joules,
        };
        let core = CoreBook {
            number: 3,
            residency: vec![Residency {
                rung: 1,
                khz: Khz(2_000_000),
                time: Duration::from_millis(1500),
            }],
            ..CoreBook::default()
        };
        let book = Book {
            cores: vec![core],
            zones: vec![zone("package-1", 2.5), zone("core", 1.0)],
            ticked: Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1500)),
            mesh_connected: Some(false),
            ..Book::default()
        };
        let mut page = String::new();
        let registry = registry(Shared::new(book));
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        for line in [
            "weir_governor_residency_seconds_total{core=\"3\",rung=\"1\",hertz=\"2000000000\"} 1.5",
            "weir_governor_rapl_joules_total{zone=\"package\",index=\"1\",path=\"/sys/class/powercap/package-1\"} 2.5",
            "weir_governor_rapl_joules_total{zone=\"core\",index=\"0\",path=\"/sys/class/powercap/core\"} 1.0",
            "weir_governor_core_online{core=\"3\"} 0.0",
            "weir_governor_lies_total{kind=\"future\"} 0.0",
            "weir_governor_ticks_total 0.0",
            "weir_governor_last_tick_timestamp_seconds 1.5",
            "weir_governor_mesh_connected 0.0",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
        assert!(!page.contains("tail_seconds"), "nothing is measured");
    }
}
