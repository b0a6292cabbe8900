// SPDX-License-Identifier: Apache-2.0
//! Who has which cores, as written.

use std::collections::BTreeMap;

use serde_saphyr::Spanned;
use weir_settings::{Text, section};

section! {
    /// Exactly one of them.
    Service { cgroup: Option<Text>, pid_file: Option<Text>, pid: Option<Text> }
}
section! {
    /// Exactly one of them.
    CorePolicy {
        blocks: Option<Spanned<Blocks>>, latency_slack: Option<Spanned<LatencySlack>>,
        static_plan: Option<Spanned<StaticPlan>>,
    }
}
section! {
    /// `blocks`
    Blocks {
        reserved: Option<Text>, small: Option<Text>, large: Option<Text>,
        large_above: Option<Text>, small_below: Option<Text>, calm: Option<Text>,
        start: Option<Text>, patience: Option<Text>,
    }
}
section! {
    /// `latency_slack`
    LatencySlack {
        least: Option<Text>, elastic: Option<Text>, batch: Option<Text>, target: Option<Text>,
        tight: Option<Text>, loose: Option<Text>, settle: Option<Text>, calm: Option<Text>,
        trend: Option<Text>, frequency_steps: Option<Text>, patience: Option<Text>,
    }
}
section! {
    /// `static_plan`
    StaticPlan {
        service: Option<Text>, node: Option<Text>, nodes: Option<Vec<Spanned<PlanNode>>>,
        steps: Vec<Spanned<Step>>,
    }
}
section! {
    /// A node of a plan.
    PlanNode { name: Option<Text>, cores: Option<Text>, service: Option<Text> }
}
section! {
    /// Where and when a job of a plan runs.
    Step { job: Option<Text>, node: Option<Text>, cores: Option<Text>, after: Vec<Text> }
}
section! {
    /// A batch job: a command or a cgroup.
    Job {
        name: Option<Text>, queue: Option<Text>, threads: Option<Text>,
        command: Option<Spanned<Vec<Text>>>, cgroup: Option<Text>, directory: Option<Text>,
        environment: Option<Spanned<BTreeMap<String, Text>>>, user: Option<Text>,
        takes: Option<Text>,
    }
}
section! {
    /// What all jobs share.
    Batch {
        cgroup: Option<Text>, logs: Option<Text>, on_stop: Option<Text>, grace: Option<Text>,
        user: Option<Text>,
    }
}
