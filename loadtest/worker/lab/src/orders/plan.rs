// SPDX-License-Identifier: Apache-2.0
//! The orders and quanta of document 003's table 2, and that of document 001.

use std::time::Duration;

use weir_executor::Order;
use weir_executor::scheduler::QuantumSettings;

/// Which of document 003's figures a run belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figure {
    RoundRobin,
    Quantum,
    Others,
}

/// One run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) figure: Figure,
    order: Named,
    /// Where document 003 has it thrash, jobs a second; `None` where it does not say.
    pub(crate) reported: Option<f64>,
}

#[derive(Debug)]
enum Named {
    RoundRobin(u64),
    Quantum(u64),
    RateBased,
    ThreadPerJob,
    Priority,
}

impl Plan {
    /// No thread for each: who waits keeps its core.
    pub(crate) fn is_one_after_another(&self) -> bool {
        !matches!(self.order, Named::ThreadPerJob)
    }

    pub(crate) fn order(&self) -> Order {
        match self.order {
            Named::RoundRobin(us) => Order::RoundRobin {
                quantum: Duration::from_micros(us),
            },
            Named::Quantum(us) => Order::Quantum(QuantumSettings {
                basic: Duration::from_micros(us),
                ..QuantumSettings::default()
            }),
            Named::RateBased => Order::RateBased,
            Named::ThreadPerJob => Order::ThreadPerJob,
            Named::Priority => Order::Priority,
        }
    }
}

const fn round_robin(name: &'static str, us: u64) -> Plan {
    Plan {
        name,
        figure: Figure::RoundRobin,
        order: Named::RoundRobin(us),
        reported: Some(160.0),
    }
}

const fn quantum(name: &'static str, us: u64) -> Plan {
    Plan {
        name,
        figure: Figure::Quantum,
        order: Named::Quantum(us),
        reported: Some(160.0),
    }
}

const fn other(name: &'static str, order: Named, reported: Option<f64>) -> Plan {
    Plan {
        name,
        figure: Figure::Others,
        order,
        reported,
    }
}

pub(crate) const PLANS: [Plan; 12] = [
    round_robin("RR-q5000", 5_000),
    round_robin("RR-q10000", 10_000),
    round_robin("RR-q20000", 20_000),
    round_robin("RR-q40000", 40_000),
    quantum("QBS-q500", 500),
    quantum("QBS-q1000", 1_000),
    quantum("QBS-q5000", 5_000),
    quantum("QBS-q10000", 10_000),
    quantum("QBS-q20000", 20_000),
    other("RB", Named::RateBased, Some(160.0)),
    other("thread-per-job", Named::ThreadPerJob, Some(120.0)),
    other("priority", Named::Priority, None),
];

/// Shown beside each other, as in document 003's figure 33: its best quanta, and the rest.
pub(crate) const BEST: [&str; 5] = ["RR-q40000", "QBS-q500", "RB", "thread-per-job", "priority"];
