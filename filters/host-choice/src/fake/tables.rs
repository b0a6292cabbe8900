// SPDX-License-Identifier: Apache-2.0
use weir_harness::{A, B, busy, table, up};
use weir_tables::v1;

/// One host that admits this many ranks, and requests that wait half a second.
pub(crate) fn holding(version: u64, level: u32) -> v1::HostTable {
    let mut holding = table(version, up(&[A]));
    let policy = holding.policy.as_mut().unwrap();
    policy.overload = v1::Overload::Dagor.into();
    policy.holding = Some(v1::Holding {
        for_eligible_ms: Some(500),
        ..Default::default()
    });
    holding.hosts[0].admission_level = Some(level);
    holding
}

/// Two idle hosts of four cores; A comes first.
pub(crate) fn hedging() -> v1::HostTable {
    let mut hedging = table(1, vec![busy(A, 0, 0), busy(B, 1, 0)]);
    for host in &mut hedging.hosts {
        host.capacity_millicores = 4_000;
    }
    hedging.policy.as_mut().unwrap().hedging = Some(v1::Hedging {
        after_ms: Some(30),
        ..Default::default()
    });
    hedging
}
