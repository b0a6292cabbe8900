// SPDX-License-Identifier: Apache-2.0
//! Who has which cores, as written.

use std::collections::BTreeMap;

use serde_saphyr::Spanned;
use weir_settings::{Text, section};

use super::Tail;

section! {
    /// Exactly one of them.
    Service {
        /// A path below the cgroup mount
        cgroup: Option<Text>,
        /// File with the number of a process that is older than it: it and its descendants
        pid_file: Option<Text>,
        /// A process and its descendants. Absent: one of the others
        pid: Option<Text>,
    }
}
section! {
    /// Exactly one of them.
    CorePolicy {
        /// One or two blocks by CPU use: the state machine of document 004, part 4.2
        blocks: Option<Spanned<Blocks>>,
        /// As many cores as the tail needs, then frequency. Set `tail`
        latency_slack: Option<Spanned<LatencySlack>>,
        /// Cores, caches, frequency, jobs' memory, disk and network, one step at a time by the tail (PARTIES, ASPLOS 2019). Set `tail`
        parties: Option<Spanned<Parties>>,
        /// Jobs have cores one by one while the tail has slack (Heracles, ISCA 2015). Set `tail`
        heracles: Option<Spanned<Heracles>>,
        /// The cores and the frequency with which jobs have got on best at this load, within the tail's target
        /// (HipsterCo, HPCA 2017). Set `tail`
        hipster_co: Option<Spanned<HipsterCo>>,
        /// A written plan of all cores of the machine, or of several nodes
        static_plan: Option<Spanned<StaticPlan>>,
    }
}
section! {
    /// `blocks`
    Blocks {
        /// The service's cores, as `0-3,8`; one that is not online is refused at the start. No core is in two of the
        /// three
        reserved: Option<Text>,
        /// The service's or a job's
        small: Option<Text>,
        /// A job's; `none` on a machine of two cores
        large: Option<Text>,
        /// Cores used: above it the service has the small block too
        large_above: Option<Text>,
        /// Cores used: below it, for `calm`, a job has the small block
        small_below: Option<Text>,
        /// See `small_below`. A use between both limits makes the block go back and forth every tick with 0s
        calm: Option<Text>,
        /// The service's blocks at the start
        start: Option<Text>,
        /// Use unknown for so long: the service has both blocks
        patience: Option<Text>,
    }
}
section! {
    /// `latency_slack`
    LatencySlack {
        /// The service's cores. No core is in two of the three
        least: Option<Text>,
        /// The service's or jobs', one by one
        elastic: Option<Text>,
        /// Jobs'; `none` on a machine of two cores
        batch: Option<Text>,
        /// For the tail's quantile
        target: Option<Text>,
        /// Less slack than this: more for the service
        tight: Option<Text>,
        /// More slack than this: less for the service
        loose: Option<Text>,
        /// After a change the latency says nothing for so long. That a core less is enough, or one more did not help,
        /// it says after `tail.window`
        settle: Option<Text>,
        /// Use must have been low for so long before a core is taken
        calm: Option<Text>,
        /// How far use is extrapolated
        trend: Option<Text>,
        /// From the lowest frequency to the highest, after all cores are given. Above 0 it needs `policy: {
        /// powersave: {} }` as the floor
        frequency_steps: Option<Text>,
        /// Nothing known of the service for so long: it has all cores that it may have
        patience: Option<Text>,
    }
}
section! {
    /// `parties`
    Parties {
        /// The service's cores. No core is in two of the three
        least: Option<Text>,
        /// The service's or jobs', one by one
        elastic: Option<Text>,
        /// Jobs'; `none` on a machine of two cores
        batch: Option<Text>,
        /// For the tail's quantile
        target: Option<Text>,
        /// Less slack than this: a step more for the service
        tight: Option<Text>,
        /// More slack than this: a step less
        loose: Option<Text>,
        /// Between two decisions; no shorter than it takes until the tail tells of a step
        settle: Option<Text>,
        /// No step less for so long after one that went back
        rest: Option<Text>,
        /// From most ways of the L3 cache to the least, which all jobs together may fill. Above 0 it needs resctrl with
        /// CAT
        cache_steps: Option<Text>,
        /// From all to the least of the bandwidth of memory that jobs' cores may use. Above 0 it needs resctrl with MBA
        /// in percent
        bandwidth_steps: Option<Text>,
        /// From the lowest frequency to the highest. Above 0 it needs `policy: { powersave: {} }` as the floor
        frequency_steps: Option<Text>,
        /// From `memory_most` to `memory_least`. Above 0 it needs cgroup v2 with `memory`
        memory_steps: Option<Text>,
        /// `memory.high` of each job while the service has all these steps
        memory_least: Option<Text>,
        /// The same while it has none
        memory_most: Option<Text>,
        /// From a weight of 100 to 1, of each job, in `io.weight` and `io.bfq.weight`. Above 0 it needs cgroup v2 with
        /// `io`
        disk_steps: Option<Text>,
        /// From the whole link to a hundredth of it, which all jobs together may send. Above 0 it needs `network`
        network_steps: Option<Text>,
        /// No tail known for so long: the service has all
        patience: Option<Text>,
        /// Services beside `service`, each with its own tail and target: all share `elastic`, and cores alone are
        /// divided. The mesh, energy and hot functions are about `service`
        others: Vec<Spanned<Other>>,
    }
}
section! {
    /// A service beside the first.
    Other {
        /// Required
        name: Option<Text>,
        /// Required: who it is
        service: Option<Spanned<Service>>,
        /// Required: its cores, which are nobody else's
        least: Option<Text>,
        /// For its tail's quantile
        target: Option<Text>,
        /// `calls` is refused
        tail: Tail,
    }
}
section! {
    /// `heracles`
    Heracles {
        /// The service's cores. No core is in both
        least: Option<Text>,
        /// The service's, or jobs' from the highest number on
        elastic: Option<Text>,
        /// For the tail's quantile
        target: Option<Text>,
        /// Above this share of all these cores in use jobs have none
        busy: Option<Text>,
        /// Below this share they may have some again
        calm: Option<Text>,
        /// Less slack than this: jobs get no more
        tight: Option<Text>,
        /// Less slack than this: jobs keep two cores
        short: Option<Text>,
        /// Between two looks at tail and use
        look: Option<Text>,
        /// Between two cores more
        grow: Option<Text>,
        /// Jobs have none for so long after a tail over the target
        cooldown: Option<Text>,
        /// Nothing known of the service for so long: jobs have none
        patience: Option<Text>,
        /// Absolute: what the service's cores shall run at. Where they do not, and power is near `tdp`, jobs' cores
        /// get slower. It needs RAPL and `policy: { performance: {} }`. Absent: power is left alone
        guaranteed: Option<Text>,
        /// Of all packages, as `85 W`; with `guaranteed`. Absent: what powercap says
        tdp: Option<Text>,
        /// What the memory of a socket can stream, as `60 GB/s`. Above 90 % of it in use jobs lose cores; below, they get
        /// ways of the L3 cache and cores in turn. It needs resctrl with CAT and MBM. Absent: caches and memory are left
        /// alone
        memory_bandwidth: Option<Text>,
    }
}
section! {
    /// `hipster_co`
    HipsterCo {
        /// The service's cores. No core is in two of the three
        least: Option<Text>,
        /// The service's or jobs', one by one
        elastic: Option<Text>,
        /// Jobs'; `none` on a machine of two cores
        batch: Option<Text>,
        /// For the tail's quantile
        target: Option<Text>,
        /// Above this share of the target a rung up, while it learns
        danger: Option<Text>,
        /// Below this share a rung down
        safe: Option<Text>,
        /// Between two steps; no shorter than it takes until the tail tells of one
        interval: Option<Text>,
        /// For so long, and again when the target is missed in 3 of 10 steps, it goes by the tail alone
        learning: Option<Text>,
        /// From the lowest frequency to the highest, 16 at most. Above 0 it needs `policy: { powersave: {} }` as the
        /// floor, and cores of jobs have their highest frequency
        frequency_steps: Option<Text>,
        /// No tail known for so long: the service has all
        patience: Option<Text>,
    }
}
section! {
    /// `static_plan`
    StaticPlan {
        /// The service's cores; left out where the plan has none for it
        service: Option<Text>,
        /// With `nodes`: this node
        node: Option<Text>,
        /// Each node has the same file but for `node`, takes its own jobs, and looks for their programs alone
        nodes: Option<Vec<Spanned<PlanNode>>>,
        /// PEM file, relative to this one: trusted authority of the nodes' `url`. Required with `https`. Files are read again where an answer fails
        authority: Option<Text>,
        /// PEM file: the governor's identity for them; with `key`
        certificate: Option<Text>,
        /// PEM file
        key: Option<Text>,
        /// `true`: `http://` also to other addresses than loopback
        plaintext: Option<Text>,
        /// One for each job
        steps: Vec<Spanned<Step>>,
    }
}
section! {
    /// A node of a plan.
    PlanNode {
        /// Required
        name: Option<Text>,
        /// Of the node
        cores: Option<Text>,
        /// The service's there
        service: Option<Text>,
        /// Its governor's admin page, `https://name:port`; `http://` to loopback alone, unless `plaintext`. Governors
        /// of other nodes ask there whether jobs have ended that theirs wait for. Absent: no job of another node can
        /// wait for one of this
        url: Option<Text>,
    }
}
section! {
    /// Where and when a job of a plan runs.
    Step {
        /// Required: a job's name
        job: Option<Text>,
        /// Required with `nodes`
        node: Option<Text>,
        /// Of the job
        cores: Option<Text>,
        /// Jobs that have to end before, also those of nodes with a `url`
        after: Vec<Text>,
    }
}
section! {
    /// A batch job: a command or a cgroup.
    Job {
        /// Required; also a folder's and a file's name
        name: Option<Text>,
        /// Long jobs go to the large block first, short ones to the small one; of one queue in the order of the file
        queue: Option<Text>,
        /// `{threads}` in arguments and in values of variables stands for it. `latency_slack`, `parties`, `heracles` and `hipster_co` raise it
        /// for `medium` and `long` jobs to the cores that they may have in the end
        threads: Option<Text>,
        /// This or `cgroup`: the program, a path with a slash, and its arguments; no shell reads them. A program that
        /// cannot be run is refused at the start
        command: Option<Spanned<Vec<Text>>>,
        /// This or `command`: somebody else's, by its path below the mount: a container, a pod, a unit
        cgroup: Option<Text>,
        /// Absolute, and existing; a program's path may be relative to it. Default: `/`
        directory: Option<Text>,
        /// Variables besides `PATH`; nothing of the governor's is passed on
        environment: Option<Spanned<BTreeMap<String, Text>>>,
        /// A name of `/etc/passwd` or a number, with its group there (of a number that is not there, the same number)
        /// and in no other group. `root` has to be written. No program's mode or capabilities give a job more than it
        /// began with (`no_new_privs`). Default: `batch.user`
        user: Option<Text>,
        /// CPU time in all, for its progress. Absent: unknown
        takes: Option<Text>,
    }
}
section! {
    /// An interface that the service and the jobs send by: `tc` and HTB are needed, and cgroup v2.
    Network {
        /// Required: its name. A queuing discipline of somebody else's there is refused at the start
        interface: Option<Text>,
        /// Required: what it can send
        link: Option<Text>,
    }
}
section! {
    /// What all jobs share.
    Batch {
        /// Above the cgroups of jobs that the governor starts. No cgroup of the service, of `batch` and of a job is
        /// in another
        cgroup: Option<Text>,
        /// Output of each job, `NAME.log`, and `timeline.jsonl`. A folder of the governor's user or root's, no link, that
        /// nobody else may write to
        logs: Option<Text>,
        /// `keep`: jobs go on, on the cores that the policy never gives to the service, or, where it has none of those
        /// (`batch: none`, `large: none`, `heracles`), on those that the service may lose, and the next governor takes
        /// them up; `end`: they are told to end
        on_stop: Option<Text>,
        /// Jobs that have not ended after that are killed
        grace: Option<Text>,
        /// User of the jobs. One user for each job keeps them from each other's files and processes. Default:
        /// `nobody`; where the governor is not root, its own
        user: Option<Text>,
    }
}
