// SPDX-License-Identifier: Apache-2.0
//! Events of the state, as lines of the log.

use tracing::{info, warn};
use weir_fleet::Event;
use weir_fleet::poll::{PollError, Source};

use crate::seldom::Seldom;

/// Logs what an operator may want to read.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// When a proxy was last said to refuse what it was pushed.
    refused: Seldom,
    /// When one was last said to ignore choices, or to heed them.
    ignored: Seldom,
}

impl Log {
    pub(super) fn event(&mut self, event: &Event) {
        let due = match event {
            Event::ResourcesRefused { .. } => self.refused.is_due(),
            Event::ChoicesIgnored { .. } => self.ignored.is_due(),
            _ => Some(0),
        };
        if let Some(unsaid) = due {
            say(event, unsaid);
        }
    }
}

/// `unsaid` of the kind were not said before it.
fn say(event: &Event, unsaid: u64) {
    match event {
        Event::PollsChanged {
            cluster,
            host,
            source,
            outcome,
        } => polls(cluster, host, source.as_str(), outcome),
        Event::DeadHosts {
            cluster,
            host,
            dead,
            health_ignored,
        } => {
            info!(
                cluster,
                host, dead, health_ignored, "hosts that refuse connections"
            );
        }
        Event::DiscoveryChanged {
            cluster,
            source,
            outcome,
        } => discovery(cluster, *source, outcome),
        Event::DiscoveryWaits { cluster, complaint } => {
            warn!(
                cluster,
                complaint, "hosts are asked for by another question"
            );
        }
        Event::PrometheusChanged {
            cluster,
            host,
            error,
            complaints,
        } => match (error, &**complaints) {
            (Some(error), _) => warn!(cluster, host, error, "Prometheus does not answer"),
            (None, []) => info!(cluster, host, "Prometheus answers"),
            (None, complaints) => warn!(
                cluster,
                host,
                ?complaints,
                "Prometheus answers, but not everything"
            ),
        },
        Event::Reported { proxy, folded } => {
            if let Some(refused) = &folded.warning {
                warn!(proxy, %refused, "what a proxy reports is not counted");
            }
        }
        Event::ChoicesIgnored {
            cluster,
            proxy,
            ignored,
        } => match ignored {
            true => warn!(cluster, proxy, unsaid, "Envoy ignores the filter's choices"),
            false => info!(cluster, proxy, unsaid, "Envoy heeds the filter's choices"),
        },
        Event::NodeSilent {
            cluster,
            host,
            silent,
        } => match silent {
            true => warn!(cluster, host, "the governor of a host's node is silent"),
            false => info!(cluster, host, "the governor of a host's node is back"),
        },
        Event::Withdrawn { cluster, worse } => warn!(
            cluster,
            %worse,
            "the policy is withdrawn: Envoy chooses until the policy in the configuration changes"
        ),
        Event::ContentsChanged {
            cluster,
            bytes,
            limit,
            contents,
        } => match contents.dropped {
            true => warn!(
                cluster,
                bytes, limit, "cache contents are dropped: memory.limit is reached"
            ),
            false => info!(cluster, "cache contents are kept again"),
        },
        Event::PanicMode { cluster, panics } => match panics {
            true => warn!(
                cluster,
                "few hosts are up, so those that drain are chosen as well"
            ),
            false => info!(cluster, "enough hosts are up again"),
        },
        Event::ResourcesRefused {
            proxy,
            type_url,
            reason,
        } => warn!(%proxy, %type_url, unsaid, reason, "a proxy refused what it was pushed"),
        Event::Polled { .. }
        | Event::ContentsRefused
        | Event::Configured { .. }
        | Event::TableMissing { .. }
        | Event::TableBuilt { .. }
        | Event::ShardBuilt { .. }
        | Event::TableMirrored { .. }
        | Event::RoleChanged { .. }
        | Event::Receipt { .. }
        | Event::Begun => {}
    }
}

fn polls(cluster: &str, host: &str, source: &str, outcome: &Result<Vec<String>, PollError>) {
    match outcome {
        Ok(complaints) if complaints.is_empty() => info!(cluster, host, source, "polls succeed"),
        Ok(complaints) => warn!(
            cluster,
            host,
            source,
            ?complaints,
            "polls succeed, but figures are missing"
        ),
        Err(error) => warn!(cluster, host, source, %error, "polls fail"),
    }
}

fn discovery(cluster: &str, source: Source, outcome: &Result<Vec<String>, PollError>) {
    let source = source.as_str();
    match outcome {
        Ok(complaints) if complaints.is_empty() => info!(cluster, source, "discovery succeeds"),
        Ok(complaints) => warn!(cluster, source, ?complaints, "discovery complains"),
        Err(error) => {
            warn!(cluster, source, %error, "discovery fails; what was found last stays");
        }
    }
}
