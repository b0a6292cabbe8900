// SPDX-License-Identifier: Apache-2.0
//! Whether every counter of requests under way is back at zero, by all that tell one: the hosts, the sidecars of
//! hosts and callers, and the filter for those that it holds back.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Result;
use weir_mesh::{HOSTS, Mesh};
use weir_stage::http;

/// Longer than any request of a load.
const LIMIT: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);

/// Waits until nothing is under way. What is left at the end is returned: where, and how much.
///
/// # Errors
/// A process died, or a signal has come.
pub fn settled(mesh: &mut Mesh) -> Result<Vec<String>> {
    let began = Instant::now();
    loop {
        let left = left(mesh);
        if left.is_empty() || began.elapsed() > LIMIT {
            return Ok(left);
        }
        mesh.processes().check()?;
        std::thread::sleep(LOOK);
    }
}

fn left(mesh: &Mesh) -> Vec<String> {
    let mut left = Vec::new();
    for host in mesh.hosts() {
        left.extend(page(&host.name, host.application, "/metrics"));
        left.extend(page(&host.name, host.admin, "/stats"));
    }
    for caller in mesh.callers() {
        left.extend(page(&caller.name, caller.admin, "/stats"));
    }
    left
}

fn page(who: &str, address: SocketAddr, path: &str) -> Vec<String> {
    match http::get(address, path) {
        Ok(page) => under_way(&page.body)
            .map(|line| format!("{who}: {line}"))
            .collect(),
        Err(error) => vec![format!("{who} does not tell: {error:#}")],
    }
}

/// Lines of a page that tell of requests to hosts that are under way.
fn under_way(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter(|line| {
        let Some((name, value)) = line.rsplit_once(' ') else {
            return false;
        };
        counts(name.trim_end_matches(':')) && value != "0"
    })
}

/// Streams to weir-control and the admin pages themselves are always under way.
fn counts(name: &str) -> bool {
    if name.ends_with(".upstream_rq_active") || name.ends_with(".upstream_rq_pending_active") {
        return name.starts_with(&format!("cluster.{HOSTS}.")) || name.contains("local_app");
    }
    if name.ends_with(".downstream_rq_active") {
        return name.contains(&format!(".{HOSTS}.")) || name.contains("public_listener");
    }
    name == "weir_host_in_progress" || name.ends_with("weir_held_requests")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "cluster.rules.default.dc1.internal.x.consul.upstream_rq_active: 0
cluster.weir-control.default.dc1.internal.x.consul.upstream_rq_active: 2
cluster.rules.default.dc1.internal.x.consul.upstream_rq_total: 77
http.admin.downstream_rq_active: 1
http.upstream.rules.default.dc1.downstream_rq_active: 0
weir_host_in_progress 0";

    #[test]
    fn streams_and_pages_are_no_requests_under_way() {
        assert_eq!(under_way(PAGE).count(), 0);
    }

    #[test]
    fn each_counter_that_is_left_is_found() {
        for name in [
            "internal.x.consul.upstream_rq_active: ",
            "rules.default.dc1.downstream_rq_active: ",
            "weir_host_in_progress ",
        ] {
            let page = PAGE.replace(&format!("{name}0"), &format!("{name}1"));
            let found: Vec<_> = under_way(&page).collect();
            assert!(
                matches!(&found[..], [line] if line.contains(name)),
                "{found:?}"
            );
        }
    }
}
