// SPDX-License-Identifier: Apache-2.0
//! The `standalone` section as written: shape only. [`Written::check`] turns it into a `Config`.

use serde::Deserialize;
use serde_json::{Map, Value};
use weir_settings::{Entry, Shape, section};

/// Where the section is.
pub(super) const SECTION: &str = "standalone";

section! {
    /// The `standalone` section.
    #[derive(Clone)]
    Written {
        filter: Filter,
        /// Name of weir-control's cluster in the sidecars' bootstrap
        control_cluster: Option<String>,
        /// Listeners of the sidecars. At least one
        listeners: Vec<Listener>,
        /// Envoy's policy for requests without a usable choice
        fallback: Option<String>,
        /// Protocol of the hosts
        protocol: Option<String>,
        /// Time to connect to a host. Hosts are near, and a dead one costs this much before the next in the list is
        /// tried
        connect_timeout: Option<String>,
        /// Most requests, connections and retries of one sidecar to one cluster. The default is no limit in effect:
        /// admission is Weir's
        max_requests: Option<u32>,
    }
}
section! {
    /// `standalone.filter`.
    #[derive(Clone)]
    Filter {
        /// Required, unless there is `native`: path of `weir_filter.wasm`; beside the configuration file if relative
        wasm: Option<String>,
        /// In place of `wasm`: absolute path of `libweir_native.so` on each sidecar's machine. A new build needs a new
        /// path
        native: Option<String>,
        /// Of `wasm`. `inline`: sent to the sidecars. `path`: each sidecar has the file
        delivery: Option<String>,
        /// Plugin configuration, merged over the generated one; `null` removes a field
        config: Plugin,
    }
}
section! {
    /// One of `standalone.listeners`.
    #[derive(Clone)]
    Listener {
        /// Required. Unique; also the name of its routes and of its statistics
        name: Option<String>,
        /// Required: `ip:port`
        address: Option<String>,
        /// Required: a name of `clusters`
        cluster: Option<String>,
        /// Served hosts (`:authority`)
        domains: Option<Vec<String>>,
        /// Time for a whole answer, retries included; `0s` is no limit
        timeout: Option<String>,
        /// Time for a request to arrive in full and leave the filters
        request_timeout: Option<String>,
        /// File for access logs in JSON, such as `/dev/stdout`; `weirctl capture` reads them. Absent: none
        access_log: Option<String>,
    }
}

/// Fields of the filter's own.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Plugin(pub Map<String, Value>);

impl Shape for Plugin {
    fn entries(name: &str, meaning: &str, into: &mut Vec<Entry>) {
        String::entries(name, meaning, into);
    }
}
