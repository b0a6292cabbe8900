// SPDX-License-Identifier: Apache-2.0
//! What is asked for, and of which fleet. A new workload is one entry here.

use crate::experiments::policies::{CLAIRVOYANT, Policy, Role};

/// A workload, the fleet that serves it, and what of it is counted.
#[derive(Debug)]
pub(super) struct Workload {
    /// Short: part of file names.
    pub(super) name: &'static str,
    /// For headings.
    pub(super) title: &'static str,
    /// What a reader has to know of it.
    pub(super) about: &'static str,
    pub(super) requests: Requests,
    /// Flags of `weir-sim cell` for the hosts and their limits.
    pub(super) fleet: &'static str,
    /// When callers give up: longer than the longest run.
    pub(super) deadline: &'static str,
    /// How old callers' knowledge is where that is not what is varied: between two polls, and
    /// whether answers carry the load.
    pub(super) poll: &'static str,
    pub(super) orca: bool,
    /// When hosts get into trouble, where that is what is varied.
    pub(super) middle: &'static str,
    /// Whether callers, staleness and troubles are varied on it.
    pub(super) varied: bool,
    /// Whether it is part of the taste.
    pub(super) quick: bool,
    /// Whether its hosts are such as bounds know.
    pub(super) bounds: bool,
    /// Whether it is another window of a trace: only the policies whose circumstances are varied are played on it,
    /// beside the clairvoyant.
    pub(super) window: bool,
}

impl Workload {
    /// Whether a policy is played on it.
    pub(super) fn compares(&self, policy: &Policy) -> bool {
        match policy.role {
            Role::Bound => self.bounds && (!self.window || policy.name == CLAIRVOYANT),
            Role::Compared => !self.window,
            Role::Varied => true,
        }
    }
}

#[derive(Debug)]
pub(super) enum Requests {
    /// Made by the simulator: flags of `weir-sim cell`, and those of the taste.
    Simulated(&'static str, &'static str),
    /// Made by `weir-replay workload` from these arguments, and then counted from a time on.
    Replayed(&'static str, &'static str),
}

/// 14 hosts of 4 cores, as large as the recorded traces need them; four waiting jobs a core close a
/// host.
const SMALL: &str = "--hosts 14 --cores 4 --cache-bytes 4000000000 --fetch-base 5ms --fetch-bytes-per-second 5000000000 \
    --breaker-queued-jobs 16 --dagor-threshold 500ms --dagor-step 0.3";

/// As `weir-sim document-001` has it (loadtest/simulator/src/document001), but with retries until the
/// caller gives up, so that all-in figures can be compared. Many shards, as a change costs what its shard holds.
const DOCUMENT_001: &str = "--hosts 14 --cores 26 --cache-bytes 100000000000 --fetch-base 50ms --fetch-bytes-per-second 50000000 \
    --accept-per-job 7500us --queue-timeout 240s --cache-shards 1024";

const STEADY: &str = "azure-functions --counts loadtest/traces/azfunc2019_steady_5min.csv \
    --keys loadtest/traces/azfunc2019_steady_5min_keys.csv --anonymous --from 100 --minutes 5 --hosts 14 \
    --cores 4 --utilisation 0.85";

const UNEVEN: &str = "azure-functions --counts loadtest/traces/azfunc2019_5min.csv \
    --keys loadtest/traces/azfunc2019_5min_keys.csv --anonymous --from 60 --minutes 5 --hosts 14 \
    --cores 4 --utilisation 0.85";

const NASA: &str = "nasa --trace loadtest/traces/nasa_http_9h.csv.gz --from 0 --minutes 60 --speed-up 60 --hosts 14 \
    --cores 4 --utilisation 0.85 --size-factor 100";

const NASA_4TH: &str = "nasa --trace loadtest/traces/nasa_http_9h.csv.gz --from 180 --minutes 60 --speed-up 60 --hosts 14 \
    --cores 4 --utilisation 0.85 --size-factor 100";

const NASA_7TH: &str = "nasa --trace loadtest/traces/nasa_http_9h.csv.gz --from 360 --minutes 60 --speed-up 60 --hosts 14 \
    --cores 4 --utilisation 0.85 --size-factor 100";

const CROWD: &str = "flash-crowd --counts loadtest/traces/worldcup98_6h.csv --from 58560 --minutes 360 --speed-up 120 \
    --hosts 14 --cores 4 --sample 0.002";

const MOONCAKE: &str = "mooncake --trace loadtest/traces/mooncake_conversation_10min.csv.gz --minutes 10 --prefix-keys \
    --decode-per-token 25ms";

const TWICE: &str = "azure-functions --counts loadtest/traces/azfunc2019_steady_5min.csv \
    --keys loadtest/traces/azfunc2019_steady_5min_keys.csv --anonymous --from 100 --minutes 5 --hosts 14 \
    --cores 4 --utilisation 2 --max-run 5s";

pub(super) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "document-001",
        title: "Document 001",
        about: "Requests made up from van den Berg's text, from 10:00 on. Caches are empty at first; the first \
                third is not counted. 14 hosts with 26 cores, polled every 5 s, no load on answers but \
                for the policy that is weighted by it.",
        requests: Requests::Simulated(
            "--begin 600m --window 90m --from 30m",
            "--begin 600m --window 6m --from 2m",
        ),
        fleet: DOCUMENT_001,
        deadline: "60m",
        poll: "5s",
        orca: false,
        middle: "60m",
        varied: true,
        quick: true,
        bounds: true,
        window: false,
    },
    Workload {
        name: "azure-functions",
        title: "Azure Functions at 0.85",
        about: "Five even minutes of a recorded trace; run times fill 85 % of 14 hosts with 4 cores, \
                fetches come on top. The first 30 s are not counted.",
        requests: Requests::Replayed(STEADY, "30s"),
        fleet: SMALL,
        deadline: "60s",
        poll: "1s",
        orca: true,
        middle: "2m",
        varied: true,
        quick: true,
        bounds: true,
        window: false,
    },
    Workload {
        name: "nasa",
        title: "A web log: NASA, 1995",
        about: "An hour of a recorded web log, sixty times as fast; run times and priorities are made up and \
                fill 85 % of 14 hosts with 4 cores. The first 6 s are not counted.",
        requests: Requests::Replayed(NASA, "6s"),
        fleet: SMALL,
        deadline: "60s",
        poll: "1s",
        orca: true,
        middle: "30s",
        varied: false,
        quick: false,
        bounds: true,
        window: false,
    },
    Workload {
        name: "nasa-4th",
        title: "NASA, the fourth hour",
        about: "The same three hours later: the recorded nine hours are cut in three, and of each third the first hour \
                is played.",
        requests: Requests::Replayed(NASA_4TH, "6s"),
        fleet: SMALL,
        deadline: "60s",
        poll: "1s",
        orca: true,
        middle: "30s",
        varied: false,
        quick: false,
        bounds: true,
        window: true,
    },
    Workload {
        name: "nasa-7th",
        title: "NASA, the seventh hour",
        about: "The same six hours later.",
        requests: Requests::Replayed(NASA_7TH, "6s"),
        fleet: SMALL,
        deadline: "60s",
        poll: "1s",
        orca: true,
        middle: "30s",
        varied: false,
        quick: false,
        bounds: true,
        window: true,
    },
    Workload {
        name: "flash-crowd",
        title: "A flash crowd: World Cup, 1998",
        about: "Requests come by the minute as recorded, 120 times as fast, everything else is made up; cores \
                are busy to 0.5 in the mean and to more than they have in the crowd.",
        requests: Requests::Replayed(CROWD, "10s"),
        fleet: SMALL,
        deadline: "15s",
        poll: "1s",
        orca: true,
        middle: "30s",
        varied: false,
        quick: false,
        bounds: true,
        window: false,
    },
    Workload {
        name: "mooncake",
        title: "Prompts: Mooncake, 2024",
        about: "Ten minutes of requests to a language model, keys are lists of prompt blocks, on 16 EMULATED \
                hosts that know no priorities. Run times are modelled. The first minute is not counted.",
        requests: Requests::Replayed(MOONCAKE, "1m"),
        fleet: "--hosts 16 --language-model",
        deadline: "120s",
        poll: "1s",
        orca: true,
        middle: "5m",
        varied: false,
        quick: false,
        bounds: false,
        window: false,
    },
    Workload {
        name: "azure-uneven",
        title: "Azure Functions, uneven",
        about: "Five minutes around a full hour, at 0.85 on average: the second and third minute offer 1.56 \
                and 1.18 times what the cores can do.",
        requests: Requests::Replayed(UNEVEN, "10s"),
        fleet: SMALL,
        deadline: "60s",
        poll: "1s",
        orca: true,
        middle: "2m",
        varied: false,
        quick: false,
        bounds: true,
        window: false,
    },
    Workload {
        name: "overload-2x",
        title: "Overload: Azure Functions at 2",
        about: "The even minutes with run times that fill the cores twice, each at most 5 s: half of the work \
                must be refused, or is given up after 15 s. The bounds refuse nothing, so they are none \
                here.",
        requests: Requests::Replayed(TWICE, "30s"),
        fleet: SMALL,
        deadline: "15s",
        poll: "1s",
        orca: true,
        middle: "2m",
        varied: false,
        quick: true,
        bounds: true,
        window: false,
    },
];

pub(super) fn names() -> String {
    let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
    names.join(", ")
}
