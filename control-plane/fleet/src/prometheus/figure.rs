// SPDX-License-Identifier: Apache-2.0
//! What is asked of Prometheus.

/// One of a host's figures, each with a query of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Figure {
    /// Jobs running or queued.
    InProgress,
    /// Jobs queued, by class.
    Queued,
    /// Mean wait in the queue, in seconds.
    QueuingDelay,
    /// Cores in use.
    BusyCores,
    /// Core seconds that waiting jobs need, by class.
    Work,
    /// Not 0 while the host wants no new requests.
    Draining,
    /// Of the others: the seconds since Prometheus read them.
    Age,
}

impl Figure {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::InProgress,
        Self::Queued,
        Self::QueuingDelay,
        Self::BusyCores,
        Self::Work,
        Self::Draining,
        Self::Age,
    ];

    /// Its name in the configuration, the log and `/tables`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Queued => "queued",
            Self::QueuingDelay => "queuing_delay",
            Self::BusyCores => "busy_cores",
            Self::Work => "work",
            Self::Draining => "draining",
            Self::Age => "age",
        }
    }

    /// Whether a host has a series for each class.
    pub fn is_by_class(self) -> bool {
        matches!(self, Self::Queued | Self::Work)
    }

    /// Whether few hosts tell it, and nobody misses it.
    pub fn is_rare(self) -> bool {
        matches!(self, Self::BusyCores | Self::Work | Self::Draining)
    }

    /// Whether a host may be without it while others tell it: one that is busy and whose jobs take long has none
    /// of the last seconds, now and then.
    pub fn may_lack(self) -> bool {
        self.is_rare() || self == Self::QueuingDelay
    }

    /// The query where none is written, of hosts that name their metrics as Weir's do.
    ///
    /// The wait is that of the last five seconds, which is as long as figures count
    /// ([`weir_policy::Policy::stale_after`]'s default); an idle host has none.
    pub fn default_query(self, label: &str) -> String {
        match self {
            Self::InProgress => "weir_host_in_progress".to_owned(),
            Self::Queued => "weir_host_queued".to_owned(),
            Self::QueuingDelay => {
                let rate = |total: &str| {
                    format!("sum by ({label}) (rate(weir_host_queuing_delay_seconds_{total}[5s]))")
                };
                format!(
                    "{} / ({} > 0) or sum by ({label}) (weir_host_in_progress) == 0",
                    rate("sum"),
                    rate("count")
                )
            }
            Self::BusyCores => "weir_host_busy_cores".to_owned(),
            Self::Work => "weir_host_work_seconds".to_owned(),
            Self::Draining => "weir_host_draining".to_owned(),
            Self::Age => "time() - timestamp(weir_host_in_progress)".to_owned(),
        }
    }
}
