// SPDX-License-Identifier: Apache-2.0
//! The file as written: shape only.

use serde_saphyr::Spanned;
use weir_settings::{Text, section};

section! {
    /// weir-governor.yaml.
    File {
        cores: Option<Text>, driver: Option<Text>, tick: Option<Text>,
        policy: Option<Spanned<Policy>>, functions: Vec<Spanned<Function>>, events: Events,
        tail: Tail, admin: Admin, state_directory: Option<Text>,
    }
}
section! {
    /// Exactly one of them.
    Policy {
        three_state: Option<Spanned<ThreeState>>,
    }
}
section! {
    /// `three_state`
    ThreeState {
        idle: Option<Text>, hot: Option<Text>, over: Option<Text>, threshold: Option<Text>,
    }
}
section! {
    /// A hot function.
    Function { id: Option<Text>, name: Option<Text> }
}
section! {
    /// The file that producers write to.
    Events {
        path: Option<Text>, group: Option<Text>, lanes: Option<Text>,
        events_per_lane: Option<Text>,
    }
}
section! {
    /// The service's own latency.
    Tail {
        source: Option<Text>, url: Option<Text>, metric: Option<Text>, quantile: Option<Text>,
        window: Option<Text>,
    }
}
section! {
    /// The admin page.
    Admin { listen: Option<Text>, plaintext: Option<Text> }
}
