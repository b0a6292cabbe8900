// SPDX-License-Identifier: Apache-2.0
//! The files as written: shape only. Values stay text with a line number, so that `check` can refuse
//! them with the whole name of the field.

use std::collections::BTreeMap;

use serde_saphyr::Spanned;
pub use weir_settings::Text;
use weir_settings::section;

section! {
    /// weir-control.yaml.
    File {
        xds: Xds, admin: Admin, publish: Publish, reports: Reports,
        discovery: Discovery, memory: Memory,
        clusters: BTreeMap<String, Spanned<Cluster>>,
        standalone: Option<Spanned<crate::standalone::Written>>,
        replicas: Option<Spanned<Replicas>>,
        authorization: Option<Spanned<Vec<Spanned<Rule>>>>,
    }
}
section! {
    /// What some identities may do.
    Rule {
        identity: Option<Text>, clusters: Vec<Text>, what: Vec<Text>, hosts: Vec<Text>,
        max_priority: Option<Text>,
    }
}
section! {
    /// Several weir-control.
    Replicas {
        consul: Option<Spanned<Agent>>, key: Option<Text>, session_ttl: Option<Text>,
        address: Option<Text>, name: Option<Text>,
        ca: Option<Text>, certificate: Option<Text>, private_key: Option<Text>,
        server_name: Option<Text>,
    }
}
section! {
    /// The Consul that has their lock.
    Agent {
        address: Option<Text>, ca: Option<Text>, certificate: Option<Text>, key: Option<Text>,
        token_file: Option<Text>, plaintext: Option<Text>,
    }
}
section! {
    /// The discovery listener.
    Xds { listen: Option<Text>, tls: Option<Spanned<Tls>>, plaintext: Option<Text> }
}
section! {
    /// Files in PEM.
    Tls { certificate: Option<Text>, key: Option<Text>, client_ca: Option<Text> }
}
section! {
    /// The admin listener.
    Admin { listen: Option<Text>, plaintext: Option<Text> }
}
section! {
    /// How often tables are built.
    Publish { interval: Option<Text>, cache_bytes_per_second: Option<Text> }
}
section! {
    /// What is kept of reports.
    Reports {
        max_proxies: Option<Text>, max_vms: Option<Text>, max_rows: Option<Text>,
        max_waiting_bytes: Option<Text>, forget_after: Option<Text>,
    }
}
section! {
    /// What discovery streams may take.
    Discovery {
        max_streams: Option<Text>, max_streams_per_proxy: Option<Text>,
        max_stream_bytes: Option<Text>, max_bytes: Option<Text>,
    }
}
section! {
    /// What counted memory may be taken.
    Memory { limit: Option<Text> }
}
section! {
    /// One cluster.
    Cluster {
        policy: Policy, dagor: Dagor, cache_shards: Option<Text>,
        hosts: Vec<Spanned<Host>>, hosts_file: Option<Text>, shrink_after: Option<Text>,
        keys: Keys, caching_plan: Option<Text>, scrape: Option<Scrape>, cache: Option<Cache>,
        consul: Option<Spanned<Consul>>,
        prometheus: Option<Spanned<Prometheus>>,
    }
}
section! {
    /// How keys are hashed.
    Keys { salt_file: Option<Text> }
}
section! {
    /// How hosts are chosen.
    Policy {
        overload: Option<Text>, selection: Option<Text>, breaker_queued_jobs: Option<Text>,
        assumed_cached: Option<Text>, stale_after: Option<Text>, ranked_hosts: Option<Text>,
        retry_after: Option<Text>, holding: Holding, hedging: Hedging,
        hot_cold_quantile: Option<Text>, dynamic_breaker_wait: Option<Text>,
        dynamic_breaker_least_queued_jobs: Option<Text>, panic_threshold: Option<Text>,
    }
}
section! {
    /// For how long requests wait for a host.
    Holding { for_eligible: Option<Text>, for_cached: Option<Text>, max_held: Option<Text> }
}
section! {
    /// When a request is tried at a second host.
    Hedging { after: Option<Text>, idle_percent: Option<Text>, classes: Option<Text> }
}
section! {
    /// How admission levels move.
    Dagor {
        control: Option<Text>, target: Option<Text>, low: Option<Text>, high: Option<Text>,
        settle: Option<Text>, behind: Option<Text>, threshold: Option<Text>, alpha: Option<Text>, beta: Option<Text>, window: Option<Text>,
        window_requests: Option<Text>, half_life: Option<Text>, queued_jobs: Option<Text>,
    }
}
section! {
    /// One host.
    Host {
        address: Option<Text>, metrics_address: Option<Text>, cache_address: Option<Text>,
        capacity_millicores: Option<Text>, preempt_at_unix_ms: Option<Text>, draining: Option<Text>,
    }
}
section! {
    /// Prometheus pages.
    Scrape {
        interval: Option<Text>, timeout: Option<Text>, path: Option<Text>, max_bytes: Option<Text>,
        metrics: Metrics, tls: Option<Spanned<HostTls>>,
    }
}
section! {
    /// Names of metrics.
    Metrics {
        in_progress: Option<Text>, queued: Option<Text>, queued_priority_label: Option<Text>,
        queuing_delay: Option<Text>, busy_cores: Option<Text>, work: Option<Text>, draining: Option<Text>,
    }
}
section! {
    /// Cache contents.
    Cache {
        interval: Option<Text>, timeout: Option<Text>, path: Option<Text>, max_bytes: Option<Text>,
        max_keys: Option<Text>, max_key_bytes: Option<Text>, tls: Option<Spanned<HostTls>>,
    }
}
section! {
    /// How hosts are asked by HTTPS.
    HostTls { ca: Option<Text>, certificate: Option<Text>, key: Option<Text>, server_name: Option<Text> }
}
section! {
    /// Hosts that Consul knows.
    Consul {
        address: Option<Text>, ca: Option<Text>, certificate: Option<Text>, key: Option<Text>,
        service: Option<Text>, connect: Option<Text>, datacenter: Option<Text>, filter: Option<Text>,
        tags: Vec<Text>, token_file: Option<Text>, plaintext: Option<Text>, wait: Option<Text>,
        weight_millicores: Option<Text>,
    }
}
section! {
    /// A Prometheus server.
    Prometheus {
        address: Option<Text>, ca: Option<Text>, certificate: Option<Text>, key: Option<Text>,
        interval: Option<Text>, timeout: Option<Text>, label: Option<Text>, queries: Queries,
    }
}
section! {
    /// What it is asked, in PromQL.
    Queries {
        in_progress: Option<Text>, queued: Option<Text>, queuing_delay: Option<Text>,
        busy_cores: Option<Text>, work: Option<Text>, draining: Option<Text>, age: Option<Text>,
    }
}
