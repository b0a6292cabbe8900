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
        xds: Xds,
        admin: Admin,
        publish: Publish,
        reports: Reports,
        discovery: Discovery,
        memory: Memory,
        receipts: Receipts,
        clusters: BTreeMap<String, Spanned<Cluster>>,
        standalone: Option<Spanned<crate::standalone::Written>>,
        replicas: Option<Spanned<Replicas>>,
        authorization: Option<Spanned<Vec<Spanned<Rule>>>>,
        policies: Option<Spanned<Policies>>,
    }
}
section! {
    /// Clusters that are [WeirPolicies](DESIGN.md#weirpolicies) in Kubernetes, beside those written here.
    Policies {
        /// Required. Those of which they count. A Role with `get`, `list` and `watch` of `weirpolicies` and `endpointslices`,
        /// and `patch` of `weirpolicies/status`, is needed in each. A change needs a restart
        namespaces: Vec<Text>,
        /// By which entries in their status are this weir-control's: another one for each of several that have the same
        /// policies
        controller_name: Option<Text>,
        /// As in a cluster's `kubernetes`
        kubeconfig: Option<Text>,
    }
}
section! {
    /// `spec` of a WeirPolicy. Names are those of a cluster, so that what is said of one holds for the other; but
    /// nothing that names a file or a server, which are weir-control's own.
    #[derive(Clone)]
    #[allow(non_snake_case, reason = "the name is Gateway API's")]
    WeirPolicy {
        targetRefs: Vec<Spanned<TargetRef>>,
        policy: Policy,
        dagor: Dagor,
        /// 0 (no cache contents) or a power of two
        cache_shards: Option<Text>,
        /// With selection `caching_plan`, and required then: the plan is learned
        planner: Option<Spanned<Planner>>,
        /// Absent: metrics are not read
        scrape: Option<Scrape>,
        /// Absent: hosts are not asked for cache contents
        cache: Option<Cache>,
        /// Where every host tells its metrics. Default: where it takes requests
        metrics_port: Option<Text>,
    }
}
section! {
    /// A service or pool whose pods are the hosts of a cluster `<name>.<namespace>`.
    #[derive(Clone)]
    #[allow(non_snake_case, reason = "the name is Gateway API's")]
    TargetRef {
        /// `""` of a Service, `inference.networking.k8s.io` of an InferencePool
        group: Option<Text>,
        /// `Service` or `InferencePool`
        kind: Option<Text>,
        /// Required. Its name, in the policy's namespace
        name: Option<Text>,
        /// Required of a Service: its port where hosts take requests, by the name or by the number at the pods
        sectionName: Option<Text>,
    }
}
section! {
    /// What some identities may do.
    Rule {
        /// Required. A SPIFFE id or DNS name, the beginning of an id with `/*` at its end, or `*` for every
        /// certificate of `client_ca`
        identity: Option<Text>,
        /// Names of clusters; `["*"]`: all, also later ones. Required, but for `replica`
        clusters: Vec<Text>,
        /// Required: `tables` (hosts, their load and levels), `keys` (which host has which key), `report`, `capacity` (as
        /// the governor of a host's node; it is told the host's row too), `replica` (another weir-control: it is told
        /// everything, and passes on reports in the names of others)
        what: Vec<Text>,
        /// With `capacity`: `ip` or `ip:port` of the hosts whose capacity may be reported. Absent: every host of the
        /// clusters
        hosts: Vec<Text>,
        /// With `report`: requests that claim a more important class count as this one
        max_priority: Option<Text>,
    }
}
section! {
    /// Several weir-control.
    Replicas {
        consul: Option<Spanned<Agent>>,
        /// Instead of `consul`: the lock is a Lease in Kubernetes
        lease: Option<Spanned<Lease>>,
        /// Name of the lock in Consul's key/value store, the same at all replicas of a group. A value that no replica
        /// wrote is never overwritten
        key: Option<Text>,
        /// A replica that is silent for this long loses the lock, after twice that at the latest
        session_ttl: Option<Text>,
        /// Required: `host:port` where the other replicas reach `xds.listen`. Port 0 is the bound one. With `lease` it
        /// may be left out where the environment has `POD_IP`: that, and the port of `xds.listen`
        address: Option<Text>,
        /// This replica. Default: the machine's host name
        name: Option<Text>,
        /// With `xds.tls`, and then required: PEM file, the authority of the others' certificates
        ca: Option<Text>,
        /// PEM file, shown to the other replicas. Required with `xds.tls.client_ca`
        certificate: Option<Text>,
        /// PEM file, the certificate's key
        private_key: Option<Text>,
        /// With `xds.tls`: DNS name in the others' certificates
        server_name: Option<Text>,
    }
}
section! {
    /// The Lease that is their lock.
    Lease {
        /// Required. Where it is
        namespace: Option<Text>,
        /// The same at all replicas of a group. It is made where there is none; one that somebody else holds is never
        /// taken
        name: Option<Text>,
        /// Whole seconds. A replica that has not renewed it for this long loses it, and stops leading after two thirds
        duration: Option<Text>,
        /// As in a cluster's `kubernetes`. A Role with `get`, `create` and `update` of the Lease is needed
        kubeconfig: Option<Text>,
    }
}
section! {
    /// The Consul that has their lock.
    Agent {
        /// A Consul agent or server. A path before `/v1` may follow
        address: Option<Text>,
        /// PEM file: authorities that may sign Consul's certificate. Absent: the system's
        ca: Option<Text>,
        /// PEM file, shown to Consul; with `key`
        certificate: Option<Text>,
        /// PEM file
        key: Option<Text>,
        /// File with the SecretID of a token. A new token is used at once
        token_file: Option<Text>,
        /// `true`: the token may be sent over `http://` to an address that is not loopback
        plaintext: Option<Text>,
    }
}
section! {
    /// The discovery listener.
    Xds {
        /// Discovery, reports and nodes. A change needs a restart
        listen: Option<Text>,
        tls: Option<Spanned<Tls>>,
        /// `true`: no TLS on an address that is not loopback
        plaintext: Option<Text>,
    }
}
section! {
    /// Files in PEM.
    Tls {
        /// PEM file; with `key`. TLS is required unless the address is loopback or `plaintext` is `true`. Renewal
        /// needs no restart
        certificate: Option<Text>,
        /// PEM file; with `certificate`
        key: Option<Text>,
        /// PEM file: sidecars and governors must show a certificate of one of these authorities
        client_ca: Option<Text>,
    }
}
section! {
    /// The admin listener.
    Admin {
        /// Pages for people and Prometheus. A change needs a restart
        listen: Option<Text>,
        /// `true`: admin may listen on an address that is not loopback; it has no TLS and no login
        plaintext: Option<Text>,
    }
}
section! {
    /// How often tables are built.
    Publish {
        /// Changes within it go out as one table. At most a third of each cluster's `stale_after`
        interval: Option<Text>,
        /// Tables of a cluster that a sidecar gets for newer figures alone. A table rests after each push for as long
        /// as this asks, at most 1 s; other changes go out at once
        table_bytes_per_second: Option<Text>,
        /// Cache contents that a sidecar gets of a cluster, on average. A shard rests after each push for as long as
        /// this asks, at most 1 s; more is sent where 1 s of rest is not enough
        cache_bytes_per_second: Option<Text>,
    }
}
section! {
    /// What is kept of reports.
    Reports {
        /// Reporting proxies; beyond that a report stream ends with RESOURCE_EXHAUSTED. A proxy in Envoy's hot
        /// restart counts twice. A change needs a restart
        max_proxies: Option<Text>,
        /// Records of one proxy
        max_vms: Option<Text>,
        /// Counters by VM, cluster, host and rank of all proxies, about 20 bytes each; a VM counts as 40 more, each of its
        /// clusters as 80 and each of their hosts as 8. One proxy has at most a fifth. More are not counted
        max_rows: Option<Text>,
        /// Memory of reports of all streams that wait to be counted; a stream that wants more ends with RESOURCE_EXHAUSTED. A
        /// change needs a restart
        max_waiting_bytes: Option<Text>,
        /// Records that are not renewed for so long are dropped; a node's capacity counts no longer than that
        forget_after: Option<Text>,
    }
}
section! {
    /// What discovery streams may take.
    Discovery {
        /// Twice `reports.max_proxies` unless written. A discovery stream beyond it ends with RESOURCE_EXHAUSTED, as beyond
        /// the next three. A change of the four needs a restart
        max_streams: Option<Text>,
        /// Streams with one node id. A proxy in hot restart has four
        max_streams_per_proxy: Option<Text>,
        /// Names that one stream asks for. A name counts 96 bytes and its length, twice until it is answered and then
        /// as long as it is held: 64 clusters of 64 shards are 1 MiB
        max_stream_bytes: Option<Text>,
        /// The same of all streams together
        max_bytes: Option<Text>,
    }
}
section! {
    /// What counted memory may be taken.
    Memory {
        /// [Counted memory](DESIGN.md#memory). Default: half of the cgroup's `memory.max`; without such a limit, none
        limit: Option<Text>,
    }
}
section! {
    /// Where [receipts](DESIGN.md#receipts) go beside memory.
    Receipts {
        /// File to which they are appended, as `/receipts` shows them and with `ended_unix_ms`. Absent: none. A change
        /// needs a restart
        file: Option<Text>,
        /// A file that has grown so large becomes `<file>.1`, what was that `<file>.2`, and so on. A change needs a
        /// restart
        max_size: Option<Text>,
        /// Files that are kept beside the newest one. A change needs a restart
        keep: Option<Text>,
    }
}
section! {
    /// One cluster.
    Cluster {
        policy: Policy,
        dagor: Dagor,
        /// 0 (no cache contents) or a power of two
        cache_shards: Option<Text>,
        hosts: Vec<Spanned<Host>>,
        /// YAML file with a list of hosts. One of `hosts`, `hosts_file`, `consul`, `dns` and `kubernetes` is required
        hosts_file: Option<Text>,
        /// A list with fewer than half of the hosts of before counts when it has been read the same for so long
        /// ([lists that shrink](DESIGN.md#lists-that-shrink)). 0s: any list counts at once, an empty one too
        shrink_after: Option<Text>,
        keys: Keys,
        /// One of this and `planner` is required with selection `caching_plan`, and only then: CSV file, first line `key,address`, then a key and
        /// one of the hosts a line (a key may come again with another host), at most 1,000,000 lines. It is pushed as
        /// cache contents: `cache` must be absent, and keys in reports are not added
        caching_plan: Option<Text>,
        /// With selection `caching_plan`: the plan is learned from what hosts tell on their answers of what requests
        /// cost, and pushed as cache contents. `planner: {}` has these defaults
        planner: Option<Spanned<Planner>>,
        /// Absent: metrics are not read. `scrape: {}` has these defaults
        scrape: Option<Scrape>,
        /// Absent: hosts are not asked for cache contents. `cache: {}` has these defaults
        cache: Option<Cache>,
        /// Instead of `cache`: hosts are engines of language models that publish what is in their prefix caches
        /// ([vLLM, SGLang](KV_EVENTS.md)). `kv_events: { model: NAME }` has these defaults
        kv_events: Option<Spanned<KvEvents>>,
        /// Hosts come from Consul, beside those written here ([rules](DESIGN.md#hosts-from-consul)). `consul: {}` has
        /// these defaults
        consul: Option<Spanned<Consul>>,
        /// Instead of `consul`: hosts come from DNS, beside those written here ([rules](DESIGN.md#hosts-from-dns))
        dns: Option<Spanned<Dns>>,
        /// Instead of `consul`: hosts are the endpoints of a service of Kubernetes, beside those written here
        /// ([rules](DESIGN.md#hosts-from-kubernetes))
        kubernetes: Option<Spanned<Kubernetes>>,
        /// Absent: no Prometheus server is asked. `prometheus: {}` has these defaults
        prometheus: Option<Spanned<Prometheus>>,
    }
}
section! {
    /// How keys are hashed.
    Keys {
        /// File with 32 hexadecimal digits (`openssl rand -hex 16`). Keys in cache contents, plans and reports are
        /// then SipHash-2-4 under it, so that nobody without it can test names. The cluster's filters have the same
        /// in `key_salt`. Another salt renews all contents
        salt_file: Option<Text>,
    }
}
section! {
    /// How a caching plan is learned.
    #[derive(Clone)]
    Planner {
        /// How often the plan is made anew. A new key is at once where it was answered first
        every: Option<Text>,
        /// After so long the core time of a key's requests counts half
        memory: Option<Text>,
        /// Of the keys, so many are given another host in a minute, or one more, as theirs have more work than others.
        /// Those whose host is gone are not counted
        moved_per_minute: Option<Text>,
    }
}
section! {
    /// How hosts are chosen.
    #[derive(Clone)]
    Policy {
        /// Overload policy
        overload: Option<Text>,
        /// Selection policy
        selection: Option<Text>,
        /// With `estimate`, what delays a request at a host. `jobs`: those that hold its cores. `prompts`: those that a
        /// language model has still to read, one after another, while it writes many answers; a key is a block of the
        /// prompt ([rule](../filters/policy/DESIGN.md#prompts)). With an engine of language models as
        /// `scrape.metrics.engine`: `prompts`
        serves: Option<Text>,
        /// With `estimate`: a request goes to another zone than its caller's only where it is done by so much sooner there,
        /// what crossing takes and costs ([zones](DESIGN.md#zones)). 0s: zones make no difference
        crossing: Option<Text>,
        /// With `breaker`: a host with more queued jobs gets nothing
        breaker_queued_jobs: Option<Text>,
        /// A key counts as cached where it was last sent for this long
        assumed_cached: Option<Text>,
        /// Older load is ignored. Tables are pushed again at least every third of it
        stale_after: Option<Text>,
        /// Hosts named in a decision; retries, hedges and bounces go to the next. The only one is told by a call where the
        /// filter is a [dynamic module](../filters/native/README.md#use), at a lower price
        ranked_hosts: Option<Text>,
        /// Mean of `retry-after` in shed requests
        retry_after: Option<Text>,
        holding: Holding,
        hedging: Hedging,
        /// With `hot_cold`: a host with more jobs in progress than this quantile of the hosts' is hot
        hot_cold_quantile: Option<Text>,
        /// With `dynamic_breaker`: `breaker_queued_jobs` falls in inverse proportion to a mean wait beyond this
        dynamic_breaker_wait: Option<Text>,
        /// With `dynamic_breaker`: the lower bound of that, at most `breaker_queued_jobs`
        dynamic_breaker_least_queued_jobs: Option<Text>,
        /// Percent of the hosts, as Envoy's `healthy_panic_threshold`. Fewer that are up, and neither failing nor
        /// refusing: draining hosts are chosen as well. Fewer that take weir-control's connections: none is taken
        /// out. 0: only where none is up
        panic_threshold: Option<Text>,
        /// `live`: requests go where the filter chooses. `shadow`: it chooses, and Envoy's own choice is carried out. A
        /// share such as `10%`: live for so many of the keys, shadow for the others
        mode: Option<Text>,
        /// With a share: `shadow` from when requests that are steered fail or take longer than the others
        /// ([rule](DESIGN.md#rollout)), until the policy changes
        withdraw: Option<Text>,
        /// Of so many requests one leaves a receipt: what was compared, what came of it. 0: none does
        receipt_every: Option<Text>,
        /// A second selection, which is only made, of requests that leave a receipt: `weirctl shadow` says what it would
        /// have chosen, beside what was
        beside: Option<Text>,
    }
}
section! {
    /// For how long requests wait for a host.
    #[derive(Clone)]
    Holding {
        /// A request that no host admits waits so long at its proxy before it is shed; with `breakwater` 10s by default, with
        /// `slots` 60s
        for_eligible: Option<Text>,
        /// A request whose key only refusing hosts have waits so long for one of them before it goes to another; with `breakwater`
        /// 10s by default, with `slots` 60s, but no longer than fetching the data would take
        for_cached: Option<Text>,
        /// Requests that one worker thread of a proxy holds; beyond them the least important is not held
        max_held: Option<Text>,
    }
}
section! {
    /// When a request is tried at a second host.
    #[derive(Clone)]
    Hedging {
        /// A request without an answer for so long is tried at its second host too. 0s: never
        after: Option<Text>,
        /// So much of the second host's cores has to be idle, and at least one; its `capacity_millicores` and load
        /// have to be known. 0: at any load, which costs others under load
        idle_percent: Option<Text>,
        /// Only so many classes, the most important ones
        classes: Option<Text>,
    }
}
section! {
    /// How admission levels move.
    #[derive(Clone)]
    Dagor {
        /// How levels move: `steady`, `paper` (Zhou et al., SoCC 2018), `stalled_jobs` (document 001, 9.1.3)
        control: Option<Text>,
        /// `steady`: the wait of new requests that corrections head for
        target: Option<Text>,
        /// `steady`: below the target; no level moves between `low` and `high`. A quarter of the target unless
        /// written
        low: Option<Text>,
        /// `steady`: above the target. Three times the target unless written
        high: Option<Text>,
        /// `steady`: time in which a correction brings the wait back to the target
        settle: Option<Text>,
        /// `steady`: a host whose queue takes so much longer than the usual host's passes on what it cannot do; not
        /// with `baseline`
        behind: Option<Text>,
        /// `paper`: a larger mean queuing delay in three windows in a row is overload
        threshold: Option<Text>,
        /// `paper`, `stalled_jobs`: share shed by an overloaded window
        alpha: Option<Text>,
        /// `stalled_jobs`: share added by any other window; with `paper` it admits everything
        beta: Option<Text>,
        /// Between two moves of the level, which moves only on figures newer than at its last move
        window: Option<Text>,
        /// Or after so many requests at one host
        window_requests: Option<Text>,
        /// Of the memory of past requests
        half_life: Option<Text>,
        /// `stalled_jobs`, and `paper` where a host tells no queuing delay: more queued jobs than this are overload
        queued_jobs: Option<Text>,
    }
}
section! {
    /// One host.
    Host {
        /// Required: `ip:port` or `[ip6]:port` as the sidecars' endpoints have it, in its shortest spelling
        address: Option<Text>,
        /// Its metrics, where the application has its own port. Default: `address`
        metrics_address: Option<Text>,
        /// Its cache contents. Default: `metrics_address`
        cache_address: Option<Text>,
        /// 0: unknown. Counts while the host's node reports nothing
        capacity_millicores: Option<Text>,
        /// End of the host's life; 0: none is known
        preempt_at_unix_ms: Option<Text>,
        /// Where it is, as callers' Envoys name their own zone. Default: unknown
        zone: Option<Text>,
        /// `true`: it finishes what it has and gets nothing new
        draining: Option<Text>,
    }
}
section! {
    /// Prometheus pages.
    #[derive(Clone)]
    Scrape {
        /// Between two polls, 10 % jitter added
        interval: Option<Text>,
        /// Of one poll
        timeout: Option<Text>,
        /// Of the page of metrics; by `trtllm` `/prometheus/metrics`
        path: Option<Text>,
        /// Of a page
        max_bytes: Option<Text>,
        metrics: Metrics,
        /// Absent: `http://`. `tls: {}`: `https://`, with these
        tls: Option<Spanned<HostTls>>,
    }
}
section! {
    /// Metrics: a name, or a name and labels that a sample has to have.
    #[derive(Clone)]
    Metrics {
        /// Whose names stand where none is written: `weir` ([the host contract](../envoy-config/host/README.md)), or an
        /// engine of language models ([what each needs and lacks](../envoy-config/LANGUAGE_MODELS.md#engines-pages))
        engine: Option<Text>,
        /// Gauge. By `vllm`, `sglang` and `trtllm`: `running` and `queued`
        in_progress: Option<Text>,
        /// Gauge of jobs that run and are not queued, in place of `in_progress`, which is then the sum of this and `queued`
        running: Option<Text>,
        /// Gauge by class
        queued: Option<Text>,
        /// Label with the class, 0 to 31
        queued_priority_label: Option<Text>,
        /// Histogram or summary, in seconds. By `triton`: none. `vllm` and `trtllm` tell a wait when its answer is done: there
        /// it says how long jobs wait only where how many wait and are done does not
        queuing_delay: Option<Text>,
        /// Histogram or summary, in seconds: the time in which a prompt is read, by `vllm`
        /// `vllm:request_prefill_time_seconds`, by `trtllm` `trtllm_request_prefill_time_seconds`. With
        /// `policy.serves: prompts`. It may be missing
        reading: Option<Text>,
        /// Histogram or summary, in seconds: the time in which an answer is written, from its first token to its last, by
        /// `vllm` `vllm:request_decode_time_seconds`, by `trtllm` `trtllm_request_decode_time_seconds`. With
        /// `policy.serves: prompts`, for hosts that will be taken away. It may be missing
        writing: Option<Text>,
        /// Gauge of cores in use, for `estimate`. It may be missing
        busy_cores: Option<Text>,
        /// Gauge by class: core seconds that waiting jobs are expected to need, for `estimate`. It may be missing
        work: Option<Text>,
        /// Gauge of cores that the host has: its capacity where neither its node nor the configuration says one, up to
        /// four times the usual host's ([rules](DESIGN.md#capacity)). It may be missing
        cores: Option<Text>,
        /// Gauge; not 0: the host gets no new requests. It may be missing
        draining: Option<Text>,
    }
}
section! {
    /// Cache contents.
    #[derive(Clone)]
    Cache {
        /// Between two polls, 10 % jitter added
        interval: Option<Text>,
        /// Of one poll
        timeout: Option<Text>,
        /// No query
        path: Option<Text>,
        /// Of an answer
        max_bytes: Option<Text>,
        /// Keys of one host, counted as weir-control holds them. A host with more loses all its keys and is asked for
        /// everything again: `polls_total{source="cache",result="too_many_keys"}`, and their number in `/tables`
        max_keys: Option<Text>,
        /// Of one key's name
        max_key_bytes: Option<Text>,
        /// As `scrape.tls`
        tls: Option<Spanned<HostTls>>,
    }
}
section! {
    /// What engines publish of their prefix caches.
    KvEvents {
        /// At the IP address of the host's `cache_address`: where it publishes (ZeroMQ PUB)
        port: Option<Text>,
        /// Where it is asked for what was missed (ROUTER). Absent: what is missed costs all that is known of the host
        replay_port: Option<Text>,
        /// Of the `cache_address` of the host that these ports are of. One whose own port is `n` higher publishes and is
        /// asked `n` higher: ranks of a data-parallel engine with a server each, engines beside each other on a machine.
        /// Absent: they are the ports of all
        base_port: Option<Text>,
        /// What the topics begin with that count
        topic: Option<Text>,
        /// The model's name in requests, which is part of the names of blocks: with `tokenizer` it has to be written
        model: Option<Text>,
        /// `tokenizer.json` of the model: blocks are named by their text, as `key.prompt` of the filter names them.
        /// Absent: by the engine's own hash, as text
        tokenizer: Option<Text>,
        /// `tokenizer_config.json` of the model, for its `add_bos_token`: a first token that requests do not have. Absent: only
        /// `tokenizer` tells of such
        tokenizer_config: Option<Text>,
        /// How prompts of chats begin: `chatml`, `llama3`; their names are those of the requests' `messages`. `none`: they
        /// are named as prompts
        template: Option<Text>,
        /// As `key.prompt.block_bytes` of the filter
        block_bytes: Option<Text>,
        /// Blocks of one host, and names of its blocks; of blocks without a name half as many. More are not known:
        /// `weir_control_kv_blocks_total{kind="dropped"}`
        max_blocks: Option<Text>,
        /// Of one message
        max_bytes: Option<Text>,
    }
}
section! {
    /// How hosts are asked by HTTPS.
    #[derive(Clone)]
    HostTls {
        /// PEM file: the only authorities that are trusted. Absent: the system's
        ca: Option<Text>,
        /// PEM file, shown to hosts; with `key`
        certificate: Option<Text>,
        /// PEM file
        key: Option<Text>,
        /// DNS name in the certificates of all hosts. Default: each host's IP address
        server_name: Option<Text>,
    }
}
section! {
    /// Hosts that Consul knows.
    Consul {
        /// Of an agent or server; a path before `/v1` may follow. Environment variables, also those of proxies, are
        /// not read
        address: Option<Text>,
        /// PEM file: authorities that may sign Consul's certificate. Absent: the system's
        ca: Option<Text>,
        /// PEM file, shown to Consul; with `key`
        certificate: Option<Text>,
        /// PEM file
        key: Option<Text>,
        /// Name of the service. Default: the cluster's name
        service: Option<Text>,
        /// `true`: the hosts are the service's sidecars (`/v1/health/connect/…`); `false`: its instances
        /// (`/v1/health/service/…`)
        connect: Option<Text>,
        /// Default: the agent's
        datacenter: Option<Text>,
        /// Expression of [Consul's own](https://developer.hashicorp.com/consul/api-docs/features/filtering), such as
        /// `Service.Meta.zone == "a"`
        filter: Option<Text>,
        /// An instance must have them all
        tags: Vec<Text>,
        /// File with the SecretID of a token (needs `service:read` and `node:read`). A new token is used at once
        token_file: Option<Text>,
        /// `true`: the token may be sent over `http://` to an address that is not loopback
        plaintext: Option<Text>,
        /// Longest time of a blocking query
        wait: Option<Text>,
        /// Capacity of a host that tells none: its weight in Consul (`Weights.Passing`) times this. 0: unknown
        weight_millicores: Option<Text>,
    }
}
section! {
    /// Hosts that have a name's addresses.
    Dns {
        /// Required. All its addresses are hosts, as of a headless service in Kubernetes; one that does not end with a dot
        /// is looked for in the system's search domains, too, where no `server` is named
        name: Option<Text>,
        /// Of every host. Absent: `name` has service records, such as `_http._tcp.rules.example`, which tell each host's
        port: Option<Text>,
        /// Where every host tells its metrics. Default: where it takes requests
        metrics_port: Option<Text>,
        /// `ip:port` of a DNS server. Absent: those of the system's `resolv.conf`
        server: Option<Text>,
        /// Between two questions, 10 % jitter added, whatever lifetime the records have
        interval: Option<Text>,
        /// Of one question, with all that follow from it
        timeout: Option<Text>,
    }
}
section! {
    /// Hosts that are a service's endpoints, or an InferencePool's pods.
    Kubernetes {
        /// Name of the service: its EndpointSlices are read, which need a Role with `get`, `list` and `watch` of them.
        /// Default: the cluster's name
        service: Option<Text>,
        /// Instead of `service` and `port`: an InferencePool (inference.networking.k8s.io/v1). The hosts are the pods that it
        /// selects, at its target ports; a Role with `get`, `list` and `watch` of `inferencepools` and `pods` is needed
        inference_pool: Option<Text>,
        /// Required. Where the service or pool is
        namespace: Option<Text>,
        /// Required with a service. A port's name in it, or its number at the pods (`targetPort`)
        port: Option<Text>,
        /// Where every host tells its metrics. Default: where it takes requests
        metrics_port: Option<Text>,
        /// File that tells how the API server is reached, by its `current-context`: with a certificate, a token or a
        /// `tokenFile`. Absent: as a pod does, with its service account
        kubeconfig: Option<Text>,
    }
}
section! {
    /// A Prometheus server.
    Prometheus {
        /// A host and a port, and the path before `/api/v1`
        address: Option<Text>,
        /// PEM file, only with `https://`: the only authority that is trusted. Absent: the system's
        ca: Option<Text>,
        /// PEM file, shown to the server; with `key`
        certificate: Option<Text>,
        /// PEM file
        key: Option<Text>,
        /// Between two rounds, 10 % jitter added
        interval: Option<Text>,
        /// Of one query
        timeout: Option<Text>,
        /// Its value is the `address` or the `metrics_address` of a host, so no two hosts may share one
        label: Option<Text>,
        queries: Queries,
    }
}
section! {
    /// What it is asked, in PromQL.
    Queries {
        /// PromQL, as are the next ones; one series a host. `""`: not asked, as with the next ones
        in_progress: Option<Text>,
        /// By `priority`, 0 to 31; without it the most important class. Beside `scrape` this and `in_progress` are
        /// required, else one of them
        queued: Option<Text>,
        /// Seconds; the default is the mean of the last 5 s, 0 on an idle host. A host may be without it
        queuing_delay: Option<Text>,
        /// As with `scrape`. Hosts may be without it
        busy_cores: Option<Text>,
        /// By `priority`. Hosts may be without it
        work: Option<Text>,
        /// As with `scrape`. Hosts may be without it
        draining: Option<Text>,
        /// Seconds since Prometheus read the others. `""`: they are as old as the answer
        age: Option<Text>,
    }
}
