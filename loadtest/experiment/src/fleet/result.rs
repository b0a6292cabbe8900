// SPDX-License-Identifier: Apache-2.0
//! What was seen, beside what was hoped for.

use std::fmt;

use serde::Serialize;

use crate::fleet::crowd::State;
use crate::fleet::plan::Plan;

/// Of issue 9, for 1,000 sidecars and 200 hosts.
const CORES: f64 = 1.0;
const MEGABYTES: f64 = 500.0;
const BACK_SECONDS: f64 = 5.0;

/// All of a measurement.
#[derive(Debug, Serialize)]
pub struct Told {
    pub(crate) plan: Plan,
    pub(crate) machine: String,
    /// From the start of the sidecars until the last had a whole table.
    pub(crate) first_s: f64,
    pub(crate) steady: Steady,
    pub(crate) cut: Return,
    pub(crate) restart: Return,
    pub(crate) end: State,
}

/// While nothing but figures changes.
#[derive(Debug, Serialize)]
pub(crate) struct Steady {
    pub(crate) control_cores: f64,
    pub(crate) sidecars_cores: f64,
    pub(crate) hosts_cores: f64,
    /// Of all cores, by everybody on the machine.
    pub(crate) busy: Option<f64>,
    /// Bytes.
    pub(crate) resident: u64,
    /// Of each sidecar.
    pub(crate) tables_per_second: f64,
    pub(crate) shards_per_second: f64,
    pub(crate) bytes_per_second: f64,
    /// Of all together.
    pub(crate) reports_per_second: f64,
    /// Streams.
    pub(crate) lost: u64,
    /// Resources.
    pub(crate) refused: u64,
    /// Tables of whoever got the fewest.
    pub(crate) fewest: u64,
}

/// After all connections have ended at once.
#[derive(Debug, Serialize)]
pub(crate) struct Return {
    /// Until the last sidecar had a whole table again.
    pub(crate) fresh_s: f64,
    /// CPU of weir-control until then.
    pub(crate) cpu_s: f64,
    /// Until weir-control took no more of a core than before.
    pub(crate) quiet_s: f64,
    /// Bytes, since weir-control's start.
    pub(crate) peak: u64,
}

impl Told {
    /// By name, with what was hoped for.
    fn figures(&self) -> [(&'static str, f64, Option<f64>); 16] {
        let Self {
            steady,
            cut,
            restart,
            ..
        } = self;
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let peak = megabytes(cut.peak.max(restart.peak));
        let resident = megabytes(steady.resident);
        let restarted = "killed and started: all have a whole table, s";
        [
            ("weir-control, cores", steady.control_cores, Some(CORES)),
            ("weir-control, resident MB", resident, Some(MEGABYTES)),
            ("weir-control, resident MB at most", peak, Some(MEGABYTES)),
            (
                "cut: all have a whole table, s",
                cut.fresh_s,
                Some(BACK_SECONDS),
            ),
            ("cut: CPU until then, s", cut.cpu_s, None),
            ("cut: CPU as before, s", cut.quiet_s, Some(BACK_SECONDS)),
            (restarted, restart.fresh_s, Some(BACK_SECONDS)),
            (
                "killed and started: CPU as before, s",
                restart.quiet_s,
                None,
            ),
            ("first tables at all, s", self.first_s, None),
            (
                "tables a second and sidecar",
                steady.tables_per_second,
                None,
            ),
            (
                "cache messages a second and sidecar",
                steady.shards_per_second,
                None,
            ),
            (
                "kB a second and sidecar",
                steady.bytes_per_second / 1e3,
                None,
            ),
            ("reports a second", steady.reports_per_second, None),
            ("sidecars' process, cores", steady.sidecars_cores, None),
            ("hosts' process, cores", steady.hosts_cores, None),
            ("streams lost", steady.lost as f64, None),
        ]
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, machine, .. } = self;
        writeln!(
            f,
            "{} EMULATED sidecars, {} EMULATED hosts ({} keys each), {} s on {machine}",
            plan.sidecars, plan.hosts, plan.keys, plan.seconds
        )?;
        if let Some(busy) = self.steady.busy {
            writeln!(
                f,
                "the machine was {:.0} % busy, with everybody on it",
                busy * 100.0
            )?;
        }
        for (what, seen, most) in self.figures() {
            write!(f, "{what:<48}{seen:>10.2}")?;
            match most {
                Some(most) if seen <= most => writeln!(f, "   target ≤ {most}: met")?,
                Some(most) => writeln!(f, "   target ≤ {most}: MISSED")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}
