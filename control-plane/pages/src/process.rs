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
    start_seconds: f64,
}

impl Figures {
    fn read() -> ProcResult<Self> {
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
            start_seconds: procfs::boot_time_secs()? as f64 + seconds(stat.starttime),
        })
    }
}

impl Collector for Process {
    /// Nothing where the kernel does not say it.
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Ok(figures) = Figures::read() else {
            return Ok(());
        };
        let cpu = ConstCounter::new(figures.cpu_seconds);
        let help = "Processor time, of user and system";
        let kind = cpu.metric_type();
        cpu.encode(encoder.encode_descriptor("process_cpu_seconds", help, None, kind)?)?;
        for (name, help, value) in [
            ("open_fds", "Open file descriptors", figures.open_fds),
            (
                "max_fds",
                "File descriptors that may be open",
                figures.max_fds,
            ),
            (
                "virtual_memory_bytes",
                "Virtual memory",
                figures.virtual_bytes,
            ),
            (
                "resident_memory_bytes",
                "Resident memory",
                figures.resident_bytes,
            ),
            (
                "start_time_seconds",
                "Unix time of the start",
                figures.start_seconds,
            ),
        ] {
            let gauge = ConstGauge::new(value);
            let (name, kind) = (format!("process_{name}"), gauge.metric_type());
            gauge.encode(encoder.encode_descriptor(&name, help, None, kind)?)?;
        }
        Ok(())
    }
}
