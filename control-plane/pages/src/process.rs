// SPDX-License-Identifier: Apache-2.0
//! What Prometheus' client libraries tell of their process (Prometheus' documentation, "Writing client libraries",
//! section "Process metrics").

use std::fmt;

use procfs::process::LimitValue;
use procfs::{ProcResult, process};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Read when it is asked for.
#[derive(Debug)]
pub(crate) struct Process;

#[derive(Debug)]
struct Figures {
    cpu_seconds: f64,
    open_fds: f64,
    max_fds: f64,
    virtual_bytes: f64,
    resident_bytes: f64,
    start_seconds: Option<f64>,
}

impl Figures {
    /// `boot` is when the machine started, in Unix seconds. /proc/stat says it, which a service with
    /// `ProcSubset=pid` does not see.
    fn read(boot: Option<u64>) -> ProcResult<Self> {
        let this = process::Process::myself()?;
        let stat = this.stat()?;
        let seconds = |ticks: u64| ticks as f64 / procfs::ticks_per_second() as f64;
        Ok(Self {
            cpu_seconds: seconds(stat.utime + stat.stime),
            open_fds: this.fd_count()? as f64,
            max_fds: match this.limits()?.max_open_files.soft_limit {
                LimitValue::Value(most) => most as f64,
                LimitValue::Unlimited => f64::INFINITY,
            },
            virtual_bytes: stat.vsize as f64,
            resident_bytes: (stat.rss * procfs::page_size()) as f64,
            start_seconds: boot.map(|boot| boot as f64 + seconds(stat.starttime)),
        })
    }
}

impl Collector for Process {
    /// Nothing where the kernel does not say it.
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        match Figures::read(procfs::boot_time_secs().ok()) {
            Ok(figures) => figures.encode(encoder),
            Err(_) => Ok(()),
        }
    }
}

impl Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let cpu = ConstCounter::new(self.cpu_seconds);
        let help = "Processor time, of user and system";
        let kind = cpu.metric_type();
        cpu.encode(encoder.encode_descriptor("process_cpu_seconds", help, None, kind)?)?;
        for (name, help, value) in [
            ("open_fds", "Open file descriptors", Some(self.open_fds)),
            (
                "max_fds",
                "File descriptors that may be open",
                Some(self.max_fds),
            ),
            (
                "virtual_memory_bytes",
                "Virtual memory",
                Some(self.virtual_bytes),
            ),
            (
                "resident_memory_bytes",
                "Resident memory",
                Some(self.resident_bytes),
            ),
            (
                "start_time_seconds",
                "Unix time of the start",
                self.start_seconds,
            ),
        ] {
            let Some(value) = value else {
                continue;
            };
            let gauge = ConstGauge::new(value);
            let (name, kind) = (format!("process_{name}"), gauge.metric_type());
            gauge.encode(encoder.encode_descriptor(&name, help, None, kind)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    /// As in a sandbox that shows no more of /proc than processes.
    #[derive(Debug)]
    struct WithoutBootTime;

    impl Collector for WithoutBootTime {
        fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
            Figures::read(None).unwrap().encode(encoder)
        }
    }

    fn page(collector: impl Collector) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(collector));
        let mut page = String::new();
        encode(&mut page, &registry).unwrap();
        page
    }

    /// What has samples; help and types are lines that begin with `#`.
    fn names(page: &str) -> Vec<&str> {
        let samples = page.lines().filter_map(|line| line.split_once(' '));
        let names = samples.map(|(name, _)| name);
        names.filter(|name| *name != "#").collect()
    }

    #[test]
    fn a_boot_time_that_is_hidden_costs_one_figure() {
        let (all, without) = (page(Process), page(WithoutBootTime));
        let (mut all, without) = (names(&all), names(&without));
        assert_eq!(all.pop(), Some("process_start_time_seconds"));
        assert!(all.contains(&"process_open_fds"), "{all:?}");
        assert_eq!(all, without);
    }
}
