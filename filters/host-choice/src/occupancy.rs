// SPDX-License-Identifier: Apache-2.0
//! What the host behind this proxy has to do, by the requests that the proxy has let through to it.

/// In the form that answers carry (`endpoint-load-metrics`).
pub(crate) fn report(in_flight: u64, cores: u32) -> String {
    let cores = u64::from(cores);
    let (queued, busy) = (in_flight.saturating_sub(cores), in_flight.min(cores));
    format!(
        "TEXT named_metrics.weir.in_progress={in_flight},named_metrics.weir.queued.0={queued},\
         named_metrics.weir.busy_cores={busy}"
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::orca;

    proptest! {
        #[test]
        fn what_is_told_is_what_callers_read(in_flight in 0u64..100_000, cores in 1u32..512) {
            let said = orca::parse(report(in_flight, cores).as_bytes(), Duration::from_secs(7)).unwrap();
            let load = said.load.unwrap();
            prop_assert_eq!(u64::from(load.in_progress), in_flight);
            prop_assert_eq!(u64::from(load.queued), in_flight.saturating_sub(cores.into()));
            prop_assert_eq!(load.busy_cores, Some(in_flight.min(cores.into()) as u32));
        }
    }
}
