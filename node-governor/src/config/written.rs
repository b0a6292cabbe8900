// SPDX-License-Identifier: Apache-2.0
//! The file as written: shape only.

mod shares;

use serde_saphyr::Spanned;
use weir_settings::{Text, section};

pub(super) use shares::*;

section! {
    /// weir-governor.yaml.
    File {
        /// Governed cores, as `0-3,8`; cores that change together are named together. `all`: those with cpufreq that
        /// are online at the start
        cores: Option<Text>,
        /// `userspace`: the kernel's governor, `scaling_setspeed`; `clamp`: `scaling_min_freq` = `scaling_max_freq`;
        /// `auto`: `userspace` where it is offered
        driver: Option<Text>,
        /// Between two decisions; some policies choose their own
        tick: Option<Text>,
        /// Frequency policy, exactly one. Absent: frequencies are left alone. One of `policy` and `core_policy` is
        /// required
        policy: Option<Spanned<Policy>>,
        /// The service, by exactly one of these. Required with `core_policy`
        service: Option<Spanned<Service>>,
        /// Core policy, exactly one. Absent: cores are not divided
        core_policy: Option<Spanned<CorePolicy>>,
        /// Batch jobs; none by default. Refused without `core_policy`
        jobs: Option<Spanned<Vec<Spanned<Job>>>>,
        /// Shared by all jobs. Refused without `core_policy`
        batch: Option<Spanned<Batch>>,
        /// An interface that the service and the jobs send by. Absent: what they send is left alone. Refused without
        /// `core_policy: { heracles: {} }`, or `parties` with `network_steps`
        network: Option<Spanned<Network>>,
        /// weir-control, and the service's host there. Absent: the mesh is not asked
        mesh: Option<Spanned<Mesh>>,
        functions: Vec<Spanned<Function>>,
        energy: Energy,
        events: Events,
        uprobes: Vec<Spanned<Uprobe>>,
        tail: Tail,
        admin: Admin,
        /// Record of how cores were found; one governor holds it
        state_directory: Option<Text>,
    }
}
section! {
    /// Exactly one of them.
    Policy {
        /// The highest frequency
        performance: Option<Spanned<Nothing>>,
        /// The lowest frequency
        powersave: Option<Spanned<Nothing>>,
        /// The kernel's ondemand in software, for comparison
        ondemand: Option<Spanned<Ondemand>>,
        /// The kernel's schedutil in software, for comparison
        schedutil: Option<Spanned<Schedutil>>,
        /// Idle and hot
        two_state: Option<Spanned<TwoState>>,
        /// Idle, hot, and hot for long (document 002)
        three_state: Option<Spanned<ThreeState>>,
        /// A ladder of frequencies by how long a hot function has been running
        multi_state: Option<Spanned<MultiState>>,
        /// All cores alike, just fast enough for the tail (Pegasus, ISCA 2014)
        iso_latency: Option<Spanned<IsoLatency>>,
        /// Slow, then fast, after a time learnt from tail and load (MICRO 2017)
        slow_to_fast: Option<Spanned<SlowToFast>>,
        /// A schedule for each hot function from the work of its calls so far
        adaptive: Option<Spanned<Adaptive>>,
        /// By the work that calls which run or wait may still need (Rubik, MICRO 2015). Who waits is what `mesh` tells
        rubik: Option<Spanned<Rubik>>,
        /// All cores alike, a step of frequency up or down by the tail (HPCA 2015)
        octopus_man: Option<Spanned<OctopusMan>>,
        /// The same until it has learnt which frequency pays at which load (HPCA 2017)
        hipster: Option<Spanned<Hipster>>,
    }
}
section! {
    /// A policy without parameters.
    Nothing {}
}
section! {
    /// `ondemand`
    Ondemand {
        /// Between two looks at use; `/proc/stat` is read no more often
        sampling_period: Option<Text>,
        /// Share of time that is busy, above which a core gets its highest frequency
        up_threshold: Option<Text>,
        /// Periods for which the highest frequency stays
        sampling_down_factor: Option<Text>,
    }
}
section! {
    /// `schedutil`
    Schedutil {
        /// Between two changes of a core; `/proc/stat` is read no more often
        rate_limit: Option<Text>,
    }
}
section! {
    /// `two_state`
    TwoState {
        /// No hot function runs
        idle: Option<Text>,
        /// A hot function runs
        hot: Option<Text>,
    }
}
section! {
    /// `three_state`
    ThreeState {
        /// No hot function runs
        idle: Option<Text>,
        /// A hot function runs
        hot: Option<Text>,
        /// It has been running for longer than `threshold`
        over: Option<Text>,
        /// See `over`
        threshold: Option<Text>,
    }
}
section! {
    /// `multi_state`
    MultiState {
        /// No hot function runs
        idle: Option<Text>,
        /// At most 16 steps, the first after 0s. Default: 2 GHz after 0s, 2.6 GHz after 450ms
        ladder: Option<Vec<Spanned<Rung>>>,
        /// Absent: the load is not looked at
        by_load: Option<Spanned<ByLoad>>,
    }
}
section! {
    /// A step of a ladder.
    Rung {
        /// Time that a call has been running
        after: Option<Text>,
        /// Required
        frequency: Option<Text>,
    }
}
section! {
    /// How a ladder follows the load.
    ByLoad {
        /// Mean share of time that the cores are busy, up to which all is as written
        light: Option<Text>,
        /// Share from which on every call gets the last step at once; in between, times shrink evenly
        full: Option<Text>,
        /// Sleep of the plan from `full` on
        longest_period: Option<Text>,
        /// Time over which the load is averaged
        average: Option<Text>,
    }
}
section! {
    /// `iso_latency`
    IsoLatency {
        /// Upper bound for the tail's quantile
        target: Option<Text>,
        /// Over this multiple of the target: all the power
        panic: Option<Text>,
        /// Below this share of the target there is power to give back
        slack: Option<Text>,
        /// Below this share there is much
        much_slack: Option<Text>,
        /// Of all the power, added each second over the target
        raise: Option<Text>,
        /// Of all the power, given back each second with slack
        lower: Option<Text>,
        /// The same with much slack
        lower_fast: Option<Text>,
        /// Longer time for an average of the tail
        average: Option<Text>,
        /// All the power stays for so long when that average is over the target
        hold: Option<Text>,
        /// An older measurement is none; without one there is all the power
        stale: Option<Text>,
    }
}
section! {
    /// `slow_to_fast`
    SlowToFast {
        /// Upper bound for the tail's quantile
        target: Option<Text>,
        /// No hot function runs
        idle: Option<Text>,
        /// A hot function runs
        slow: Option<Text>,
        /// It has been running for the learnt time
        fast: Option<Text>,
        /// A tail that stays off the target by so much moves the learnt time by as much in this time. At least four
        /// times the tail's window, or it swings
        settle: Option<Text>,
        /// An older measurement is none; without one calls are fast at once
        stale: Option<Text>,
    }
}
section! {
    /// `adaptive`
    Adaptive {
        /// Upper bound for the tail's quantile
        target: Option<Text>,
        /// Frequency with the least energy for work, and the lowest of a call
        efficient: Option<Text>,
        /// No hot function runs, and calls until they are seen
        idle: Option<Text>,
        /// Share of a call's time at the highest frequency that is the same at every frequency
        memory: Option<Text>,
        /// Of the calls, so many end within the budget
        quantile: Option<Text>,
        /// Of the target, kept in hand
        margin: Option<Text>,
        /// The budget as a share of the target while no tail is measured
        budget: Option<Text>,
        /// A tail that stays off the target by so much changes the budget by as much in this time
        settle: Option<Text>,
        /// An older measurement is none
        stale: Option<Text>,
        /// The plan sleeps at least this long
        shortest_period: Option<Text>,
        /// The plan sleeps at most this long
        longest_period: Option<Text>,
    }
}
section! {
    /// `rubik`
    Rubik {
        /// Upper bound for the tail's quantile
        target: Option<Text>,
        /// No hot function runs, and calls until they are seen
        idle: Option<Text>,
        /// Share of a call's time at the highest frequency that is the same at every frequency
        memory: Option<Text>,
        /// Of what calls may still need
        quantile: Option<Text>,
        /// Of the target, kept in hand
        margin: Option<Text>,
        /// Bound for a call as a share of the target while no tail is measured
        budget: Option<Text>,
        /// A tail that stays off the target by so much moves the bound by as much in this time
        settle: Option<Text>,
        /// An older measurement is none
        stale: Option<Text>,
        /// Between two decisions
        period: Option<Text>,
    }
}
section! {
    /// `octopus_man`
    OctopusMan {
        /// Upper bound for the tail's quantile
        target: Option<Text>,
        /// Above this share of the target a step up
        danger: Option<Text>,
        /// Below this share a step down
        safe: Option<Text>,
        /// Between two steps; as long as the tail's window
        interval: Option<Text>,
        /// An older measurement is none; without one cores are at their highest
        stale: Option<Text>,
    }
}
section! {
    /// `hipster`
    Hipster {
        /// Upper bound for the tail's quantile
        target: Option<Text>,
        /// While it learns, above this share of the target a step up
        danger: Option<Text>,
        /// While it learns, below this share a step down
        safe: Option<Text>,
        /// Between two steps; as long as the tail's window
        interval: Option<Text>,
        /// An older measurement is none; without one cores are at their highest
        stale: Option<Text>,
        /// Time from the start for which steps are by the zones alone
        learning: Option<Text>,
    }
}
section! {
    /// A hot function.
    Function {
        /// Required; 0 to 15, as producers give it
        id: Option<Text>,
        /// Shown for it. Default: `function` and the id
        name: Option<Text>,
        /// With `multi_state`: steps of this function alone
        ladder: Option<Vec<Spanned<Rung>>>,
        /// Priority class whose energy and answers its calls are; several functions may have one. Default: `name`
        class: Option<Text>,
        /// A call that takes longer is no good answer. Default: every call is one
        good_within: Option<Text>,
    }
}
section! {
    /// Watts by state, to attribute energy by: with RAPL against one another, without it as they are (MODELLED).
    /// Defaults: fitted to a Xeon Gold 6126 in the simulator.
    Energy {
        /// Working core at the highest frequency, without leakage
        core_watts: Option<Text>,
        /// Leakage of a core at the voltage of the highest frequency
        leak_watts: Option<Text>,
        /// Voltage at the lowest frequency, against that at the highest
        low_volts: Option<Text>,
        /// Idle core
        idle_watts: Option<Text>,
        /// Package, whatever happens
        package_watts: Option<Text>,
        /// Package, in addition while a core is busy
        awake_watts: Option<Text>,
    }
}
section! {
    /// The file that producers write to.
    Events {
        /// Made by the governor, with its folder
        path: Option<Text>,
        /// A name in `/etc/group` or a number: its members may write. Default: the governor's own group
        group: Option<Text>,
        /// Threads at once
        lanes: Option<Text>,
        /// Events of a thread that wait to be read; a power of two
        events_per_lane: Option<Text>,
    }
}
section! {
    /// A hot function of a program that cannot tell of it.
    Uprobe {
        /// Required
        function: Option<Text>,
        /// Required: the program or library
        binary: Option<Text>,
        /// Required: the function in it, or `0x…`, its offset
        symbol: Option<Text>,
        /// One process. Default: every process
        pid: Option<Text>,
        /// A cgroup's path below the mount: a process that runs the file in another one counts nothing. `all`: every
        /// process. Default: `service.cgroup`; `all` without it, and where `pid` is written
        cgroup: Option<Text>,
        /// `true`: the function does not unwind ([why](uprobe/README.md))
        no_unwinding: Option<Text>,
    }
}
section! {
    /// The service's own latency.
    Tail {
        /// `calls`: hot calls that have ended; `prometheus`, `envoy`: a histogram of seconds, of milliseconds;
        /// `promql`: a query of a Prometheus server
        source: Option<Text>,
        /// Of the page; of the server, `http://ip:port` with its prefix if it has one
        url: Option<Text>,
        /// The histogram's name without `_bucket`; labels choose series, the others are added up. A tail above its
        /// last bound is not known: the buckets have to reach beyond the target
        metric: Option<Text>,
        /// With `promql`: one number, in seconds. No series, two, NaN or less than 0 say nothing. The answer counts
        /// as of now, though the server takes a sample of up to 5 minutes ago (its `--query.lookback-delta`): the
        /// query bounds the age itself, by a range as `rate(…[10s])`, which is empty without samples in it, or by
        /// `and time() - timestamp(…) < 10`
        query: Option<Text>,
        /// With `latency_slack`, `parties`, `heracles` and `hipster_co` the default is 0.95. With `promql` the query says it
        quantile: Option<Text>,
        /// Calls and requests that ended in this time count. With `promql` the query says it
        window: Option<Text>,
        /// Between two questions to a page or server; with `latency_slack`, `parties`, `heracles` and `hipster_co` at
        /// most 1s, for they forget an answer after 2 s
        every: Option<Text>,
    }
}
section! {
    /// weir-control, and the service's host there.
    Mesh {
        /// Required: `https://name:port` of weir-control's xDS listener; `http://` to loopback alone, unless
        /// `plaintext`
        control: Option<Text>,
        /// PEM file, relative to this one: trusted authority. Required with `https`. Files are read again before each
        /// connection
        authority: Option<Text>,
        /// PEM file: the governor's identity; with `key`
        certificate: Option<Text>,
        /// PEM file
        key: Option<Text>,
        /// `true`: `http://` also to other addresses than loopback
        plaintext: Option<Text>,
        /// Required: the cluster's name in weir-control
        cluster: Option<Text>,
        /// Required: the host's `ip:port` in weir-control
        host: Option<Text>,
        /// Requests that wait longer are a reason to act
        delay: Option<Text>,
        /// Time that a reason lasts
        hold: Option<Text>,
        /// An older answer counts as unknown
        stale: Option<Text>,
    }
}
section! {
    /// The admin page.
    Admin {
        /// Port 0 takes any
        listen: Option<Text>,
        /// `true`: admin may listen on an address that is not loopback; it has no TLS and no login
        plaintext: Option<Text>,
    }
}
