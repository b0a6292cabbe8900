// SPDX-License-Identifier: Apache-2.0
//! Who may ask weir-control.

use anyhow::{Result, ensure};
use weir_mesh::{CALLERS, CONTROL, Mesh};

use crate::load::{choice, send};
use crate::stage::{Act, Scenario};
use crate::waits::until;

pub(crate) const SCENARIOS: &[Scenario] = &[(
    "a_sidecar_that_no_intention_lets_through_has_no_table_and_serves_until_one_does",
    Act::Shared(denied_then_allowed),
)];

fn denied_then_allowed(mesh: &mut Mesh) -> Result<()> {
    mesh.consul().intend(CALLERS, CONTROL, false)?;
    let caller = mesh.add_caller()?;
    // It has asked and was refused: its own statistics count answers that are not 2xx.
    let cluster = mesh.consul().cluster(CONTROL);
    let refused = format!("/stats?filter=cluster.{cluster}.upstream_rq_");
    until(mesh, "a refusal", |_| {
        let page = weir_stage::http::get(caller.admin, &refused).ok()?;
        let answers = page
            .body
            .lines()
            .find(|line| line.contains("upstream_rq_total:"))?;
        (!answers.ends_with(": 0")).then_some(())
    })?;
    for number in 0..20 {
        let answer = send(caller.outbound, &format!("denied-{number}"))?;
        let reason = answer.header("x-weir-reason").unwrap_or_default();
        ensure!(
            answer.status == "200" && reason == "no_table",
            "{} with reason {reason:?}",
            answer.status
        );
    }
    mesh.consul().intend(CALLERS, CONTROL, true)?;
    until(mesh, "a table", |_| {
        let (_, reason) = choice(&caller, "allowed").ok()?;
        (reason != "no_table").then_some(())
    })?;
    mesh.remove_caller(&caller.name)
}
