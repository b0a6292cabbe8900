// SPDX-License-Identifier: Apache-2.0
//! A caller behind a transparent proxy.

use anyhow::Result;
use weir_mesh::{Mesh, Plan, Programs};

use crate::choices::keys_stay;
use crate::stage::{Act, Scenario};

const TEST: &str = "requests_through_a_transparent_proxy_go_to_the_host_that_has_the_key";
pub(crate) const SCENARIOS: &[Scenario] =
    &[(TEST, Act::Namespaces(keys_stay_behind_a_transparent_proxy))];

fn keys_stay_behind_a_transparent_proxy(programs: &Programs) -> Result<()> {
    if let Err(error) = weir_mesh::redirection_possible() {
        let need = weir_needs::Need::Installed("iptables");
        weir_needs::skip_test(
            TEST,
            need,
            format!("no connection is led to a sidecar here: {error:#}"),
        );
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let plan = Plan {
        netns: true,
        callers: 1,
        prometheus: false,
        ..Plan::default()
    };
    let mut mesh = Mesh::up(&plan, programs, folder.path())?;
    mesh.add_transparent_caller()?;
    keys_stay(&mut mesh)
}
