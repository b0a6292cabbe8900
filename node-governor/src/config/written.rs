// SPDX-License-Identifier: Apache-2.0
//! The file as written: shape only.

mod shares;

use serde_saphyr::Spanned;
use weir_settings::{Text, section};

pub(super) use shares::*;

section! {
    /// weir-governor.yaml.
    File {
        cores: Option<Text>, driver: Option<Text>, tick: Option<Text>,
        policy: Option<Spanned<Policy>>, service: Option<Spanned<Service>>,
        core_policy: Option<Spanned<CorePolicy>>, jobs: Option<Spanned<Vec<Spanned<Job>>>>,
        batch: Option<Spanned<Batch>>, mesh: Option<Spanned<Mesh>>, functions: Vec<Spanned<Function>>, events: Events,
        uprobes: Vec<Spanned<Uprobe>>, tail: Tail, admin: Admin, state_directory: Option<Text>,
    }
}
section! {
    /// Exactly one of them.
    Policy {
        performance: Option<Spanned<Nothing>>, powersave: Option<Spanned<Nothing>>,
        ondemand: Option<Spanned<Ondemand>>, two_state: Option<Spanned<TwoState>>,
        three_state: Option<Spanned<ThreeState>>, multi_state: Option<Spanned<MultiState>>,
        iso_latency: Option<Spanned<IsoLatency>>, slow_to_fast: Option<Spanned<SlowToFast>>,
        adaptive: Option<Spanned<Adaptive>>,
    }
}
section! {
    /// A policy without parameters.
    Nothing {}
}
section! {
    /// `ondemand`
    Ondemand {
        sampling_period: Option<Text>, up_threshold: Option<Text>,
        sampling_down_factor: Option<Text>,
    }
}
section! {
    /// `two_state`
    TwoState { idle: Option<Text>, hot: Option<Text> }
}
section! {
    /// `three_state`
    ThreeState {
        idle: Option<Text>, hot: Option<Text>, over: Option<Text>, threshold: Option<Text>,
    }
}
section! {
    /// `multi_state`
    MultiState {
        idle: Option<Text>, ladder: Option<Vec<Spanned<Rung>>>, by_load: Option<Spanned<ByLoad>>,
    }
}
section! {
    /// A step of a ladder.
    Rung { after: Option<Text>, frequency: Option<Text> }
}
section! {
    /// How a ladder follows the load.
    ByLoad {
        light: Option<Text>, full: Option<Text>, longest_period: Option<Text>,
        average: Option<Text>,
    }
}
section! {
    /// `iso_latency`
    IsoLatency {
        target: Option<Text>, panic: Option<Text>, slack: Option<Text>, much_slack: Option<Text>,
        raise: Option<Text>, lower: Option<Text>, lower_fast: Option<Text>, average: Option<Text>,
        hold: Option<Text>, stale: Option<Text>,
    }
}
section! {
    /// `slow_to_fast`
    SlowToFast {
        target: Option<Text>, idle: Option<Text>, slow: Option<Text>, fast: Option<Text>,
        settle: Option<Text>, stale: Option<Text>,
    }
}
section! {
    /// `adaptive`
    Adaptive {
        target: Option<Text>, efficient: Option<Text>, idle: Option<Text>, memory: Option<Text>,
        quantile: Option<Text>, margin: Option<Text>, budget: Option<Text>, settle: Option<Text>,
        stale: Option<Text>, shortest_period: Option<Text>, longest_period: Option<Text>,
    }
}
section! {
    /// A hot function.
    Function { id: Option<Text>, name: Option<Text>, ladder: Option<Vec<Spanned<Rung>>> }
}
section! {
    /// The file that producers write to.
    Events {
        path: Option<Text>, group: Option<Text>, lanes: Option<Text>,
        events_per_lane: Option<Text>,
    }
}
section! {
    /// A hot function of a program that cannot tell of it.
    Uprobe {
        function: Option<Text>, binary: Option<Text>, symbol: Option<Text>, pid: Option<Text>,
        cgroup: Option<Text>, no_unwinding: Option<Text>,
    }
}
section! {
    /// The service's own latency.
    Tail {
        source: Option<Text>, url: Option<Text>, metric: Option<Text>, query: Option<Text>,
        quantile: Option<Text>, window: Option<Text>, every: Option<Text>,
    }
}
section! {
    /// weir-control, and the service's host there.
    Mesh {
        control: Option<Text>, authority: Option<Text>, certificate: Option<Text>,
        key: Option<Text>, plaintext: Option<Text>, cluster: Option<Text>, host: Option<Text>,
        delay: Option<Text>, hold: Option<Text>, stale: Option<Text>,
    }
}
section! {
    /// The admin page.
    Admin { listen: Option<Text>, plaintext: Option<Text> }
}
