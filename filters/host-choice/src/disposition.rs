// SPDX-License-Identifier: Apache-2.0
//! What became of a request by its decision, and how the proxy is told.

use std::time::Duration;

use weir_policy::{Decision, Outcome};

use crate::host::{RequestHost, Response};
use crate::in_flight::InFlight;
use crate::watch::Watch;

/// The status of a request that is shed.
pub(crate) const SHED: u32 = 429;
/// gRPC's.
pub(crate) const RESOURCE_EXHAUSTED: i32 = 8;

/// Disposition of a request: the reason, and its attempt where it went to a host.
pub(crate) struct Disposition {
    pub(crate) reason: &'static str,
    pub(crate) in_flight: Option<Box<InFlight>>,
    /// None of most requests.
    pub(crate) watch: Option<Box<Watch>>,
}

impl Disposition {
    /// That of a request whose decision is carried out.
    #[inline(always)]
    pub(crate) fn new(
        decision: &Decision,
        in_flight: Option<Box<InFlight>>,
        mut watch: Option<Box<Watch>>,
    ) -> Self {
        if let Some(watch) = &mut watch {
            watch.is_shed = matches!(decision.outcome, Outcome::Shed { .. });
        }
        let reason = decision.reason.as_str();
        Self {
            reason,
            in_flight,
            watch,
        }
    }
}

/// What the proxy does with a request next. It is told after the filter has put everything away that it borrowed.
#[must_use = "the proxy is not told yet"]
#[derive(Debug, PartialEq, Eq)]
pub enum Flow {
    /// It goes to a host that is named in its headers.
    Send,
    /// The choice is left to Envoy.
    Fallback,
    /// It waits at its headers.
    Hold,
    /// It is answered here.
    Respond(Box<Response>),
}

/// What a callback of a request's headers returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The request goes on.
    Continue,
    /// It stays where it is: it waits, or was answered.
    Pause,
}

impl Flow {
    /// Tells the proxy, which may call the filter back at once.
    pub fn carry_out(self, host: &impl RequestHost) -> Action {
        match self {
            Self::Send => Action::Continue,
            Self::Hold => Action::Pause,
            Self::Respond(response) if host.respond(&response).is_ok() => Action::Pause,
            // An answer that cannot be given is better left to Envoy than never given. A destination that the
            // caller sent would be honoured, so it goes.
            Self::Respond(_) | Self::Fallback => {
                let _ = host.send_to(None);
                Action::Continue
            }
        }
    }
}

/// The answer to a request that is shed. It passes through [`crate::exchange::Exchange::on_response`] like an answer
/// from a host, where debug headers are added.
pub(crate) fn shed(retry_after: Duration, random: u64) -> Flow {
    // The header counts in whole seconds: rounded up or down by chance, so that the mean stays.
    let millis = retry_after.as_millis() + u128::from(random % 1000);
    let seconds = (millis / 1000).max(1).to_string();
    Flow::Respond(Box::new(Response {
        status: SHED,
        grpc_status: RESOURCE_EXHAUSTED,
        details: "weir_overloaded",
        body: format!("overloaded: try again in {seconds} s\n"),
        headers: vec![("retry-after", seconds)],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(millis: u64, random: u64) -> String {
        match shed(Duration::from_millis(millis), random) {
            Flow::Respond(response) => response.headers[0].1.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn retry_after_is_rounded_by_chance_so_that_its_mean_stays() {
        assert_eq!(
            (seconds(1_250, 0), seconds(1_250, 749)),
            ("1".into(), "1".into())
        );
        assert_eq!(
            (seconds(1_250, 750), seconds(1_250, 999)),
            ("2".into(), "2".into())
        );
        let all = (0..1_000).map(|random| seconds(2_400, random).parse::<u64>().unwrap());
        assert_eq!(all.sum::<u64>(), 2_400);
    }

    #[test]
    fn retry_after_is_never_at_once() {
        assert_eq!(seconds(0, 0), "1");
    }
}
