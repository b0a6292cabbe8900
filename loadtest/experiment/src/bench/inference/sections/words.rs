// SPDX-License-Identifier: Apache-2.0
//! What a reader has to know beside the figures.

use crate::bench::inference::plan::Plan;
use crate::bench::inference::run::Run;
use crate::bench::inference::sections::Measured;
use crate::bench::inference::sending::DEADLINE;
use crate::bench::inference::way::Way;
use crate::bench::inference::workload::Facts;
use crate::bench::reasons::Reasons;

/// Share of the cores' time above which processes wait for one another.
const TOO_BUSY: f64 = 0.8;

/// Of the ways that are compared in more than one setting.
pub(super) const EPP_AND_WEIR: [&str; 2] = [
    "EPP and Weir as in the part inference: EPP with the chart's scorers and weights, told the hosts' block size and capacity; \
     Weir with its defaults and keys from bodies, where hosts say nothing of what they have, or publish it (told).",
    "CPU is with what the processes take without requests, mostly polls of hosts, which counts for less where requests are more.",
];

/// What is sent, and to whom.
pub(super) fn trace(plan: &Plan, facts: &Facts) -> String {
    let each = |tokens: u64| tokens as f64 / facts.requests as f64;
    let speed = match plan.speed_up {
        1 => "in its own time".to_owned(),
        speed_up => format!("sped up {speed_up} times"),
    };
    format!(
        "{} minutes of the {}, {speed}: {} requests with prompts of {:.0} tokens and answers of \
         {:.0} in the mean, to {} emulated hosts with real prefix caches of {} blocks and modelled times (loadtest/llm-host)",
        plan.minutes,
        plan.source.name,
        facts.requests,
        each(facts.prompt_tokens),
        each(facts.output_tokens),
        plan.hosts,
        plan.capacity_blocks,
    )
}

pub(super) fn rounds(plan: &Plan) -> String {
    match plan.rounds {
        1 => "once".to_owned(),
        rounds => format!("{rounds} times"),
    }
}

/// How busy the machine was at most, of these runs; loudly where that was too much.
pub(super) fn busy<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Vec<String> {
    let most = busiest(runs);
    let mut notes = vec![format!(
        "The machine's cores were up to {:.0} % busy.",
        most * 100.0
    )];
    if most > TOO_BUSY {
        notes.push(
            "TOO BUSY: processes waited for cores, polls came late and choices were made by old figures. Repeat it on a \
             machine that does nothing else."
                .to_owned(),
        );
    }
    notes
}

fn busiest<'a>(runs: impl IntoIterator<Item = &'a Run>) -> f64 {
    let busy = runs.into_iter().filter_map(|run| run.busy);
    busy.fold(0.0, f64::max)
}

impl Measured<'_> {
    pub(super) fn how(&self) -> String {
        let (plan, facts) = (self.plan, &self.workload.facts);
        format!(
            "EMULATED, MODELLED: {}, open loop at {:.0} requests a second. All ways at once, each with hosts of its own, {}, \
             from empty caches. Times are all-in and in seconds of the trace: \
             the host's part times {speed_up}, plus the rest as measured (times {speed_up} too where a request was \
             tried again); what had no answer counts at the deadline, {:.0} s of the trace. One host with an endless cache would \
             find {:.1} % of the tokens; {:.0} % of the requests return to one of {} keys.",
            trace(plan, facts),
            facts.rate_per_s,
            rounds(plan),
            DEADLINE.as_secs_f64() * f64::from(plan.speed_up),
            facts.findable_share * 100.0,
            facts.returning_share * 100.0,
            facts.keys,
            speed_up = plan.speed_up,
        )
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "EPP: the chart's scorers and weights (queue 2, KV-cache use 2, prefix 3), its prefix scorer told \
             the hosts' own block size and capacity, and a limit of blocks that no prompt reaches."
                .to_owned(),
            format!(
                "Weir: the defaults (selection estimate, overload none). A key in a header is the session's first own block, \
                 and hosts say which they have; ring_hash and maglev hash the same key, and of the bounded one no host has more than {} % of the mean of requests in progress. Keys from bodies are blocks of {} bytes of \
                 the prompt, assumed to be where they were sent for {}; hosts say nothing of them, and their load by vLLM's \
                 metrics. Told: they publish what is in their caches (kv_events), a token a byte. Beside it selection dynamic, overload breaker above {} queued requests.",
                self.plan.balance_percent, self.plan.block_bytes, self.plan.assumed_cached, self.plan.breaker_queued
            ),
            format!(
                "client_side_weighted_round_robin divides what hosts tell in each answer: answers a second by sequences to slots; \
                 a host counts from {} after its first answer, weights are made every {} (Envoy's defaults of 10 s and 1 s, sped up).",
                self.plan.blackout, self.plan.weights
            ),
            format!(
                "One sidecar sends everything, or eight take turns: EPP is one process for all, Weir's sidecars choose each for itself. EPP asks its hosts \
                 for their load every {}, weir-control every {}: their defaults of 50 ms and 1 s, sped up.",
                self.plan.epp_poll, self.plan.weir_poll
            ),
        ];
        notes.extend(Way::ALL.into_iter().filter_map(|way| self.trouble(way)));
        let weirs = Way::ALL.into_iter().filter(|way| way.is_weir());
        notes.extend(weirs.map(|way| self.reasons(way)));
        notes
    }

    pub(super) fn how_costs(&self) -> String {
        let facts = &self.workload.facts;
        format!(
            "EMULATED hosts, the same runs. CPU from the first request to the last answer, with what the processes take without \
             requests, which is mostly polls of the hosts and has its own column. All but the modelled host \
             is, as measured and without the replayer's lag: the sidecar, whom it asks, back-off, bodies of {:.0} kB \
             in the mean on loopback, and of the host's process what is no model, alike for all: reading and \
             hashing of bodies, and timers that count in milliseconds. The machine's cores were up to {:.0} % busy.",
            facts.prompt_tokens as f64 * 4e-3 / facts.requests as f64,
            busiest(self.runs) * 100.0,
        )
    }

    pub(super) fn notes_on_costs(&self) -> Vec<String> {
        let mut notes = vec![
            "Not alike: EPP is sent and parses every body, and knows all blocks of a prompt; Weir with keys from bodies \
             reads it where it is; with a key in a header it knows one, which whoever sends it has to find out."
                .to_owned(),
        ];
        if busiest(self.runs) > TOO_BUSY {
            notes.push(
                "TOO BUSY: processes waited for cores, polls came late and choices were made by old figures; what \
                 is taken off for polls is then too much. Repeat it on a machine that does nothing else."
                    .to_owned(),
            );
        }
        notes
    }

    /// What was not answered at once.
    fn trouble(&self, way: Way) -> Option<String> {
        let all = || self.of_way(way).flat_map(|run| &run.records);
        let retried = all().filter(|record| record.attempts > 1).count();
        let failed = all().filter(|record| !record.is_good()).count();
        (retried + failed > 0).then(|| {
            format!(
                "{}: of {} requests {retried} were tried again and {failed} had no answer (under 1 %, or the part would \
                 have failed).",
                way.name(),
                all().count()
            )
        })
    }

    fn reasons(&self, way: Way) -> String {
        let mut reasons = Reasons::default();
        for run in self.of_way(way) {
            reasons.add(&run.reasons);
        }
        format!("Decisions of {}, by its own metric: {reasons}.", way.name())
    }

    fn of_way(&self, way: Way) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.way == way)
    }
}
