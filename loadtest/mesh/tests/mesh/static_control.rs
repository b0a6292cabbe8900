// SPDX-License-Identifier: Apache-2.0
//! weir-control outside of the mesh, with TLS of its own.

#[path = "../../../../control-plane/tests/certificates/mod.rs"]
mod certificates;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use weir_mesh::{Certificates, Mesh};

use self::certificates::Authority;
use crate::load::{choice, send};
use crate::stage::{Act, Scenario};
use crate::waits::until;

pub(crate) const SCENARIOS: &[Scenario] = &[(
    "a_sidecar_reaches_weir_control_over_a_static_cluster_if_it_has_its_certificate",
    Act::Shared(over_a_static_cluster),
)];

fn over_a_static_cluster(mesh: &mut Mesh) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (ours, others) = (Authority::new(), Authority::new());
    let certificates = write(folder.path(), &ours, &others)?;

    let caller = mesh.add_static_caller(&certificates)?;
    until(mesh, "a table", |_| {
        let (_, reason) = choice(&caller, "static").ok()?;
        (!reason.ends_with("_table")).then_some(())
    })?;
    mesh.remove_static_caller(&caller.name)?;

    let strange = Certificates {
        sidecar: pair(folder.path(), "stranger"),
        ..certificates
    };
    let caller = mesh.add_static_caller(&strange)?;
    let failures = "/stats?filter=cluster.weir-control-static.upstream_cx_total";
    until(mesh, "a try", |_| {
        let page = weir_stage::http::get(caller.admin, failures).ok()?;
        let tries: u64 = page.body.trim().rsplit(' ').next()?.parse().ok()?;
        (tries >= 3).then_some(())
    })?;
    let answer = send(caller.outbound, "static")?;
    let reason = answer.header("x-weir-reason").unwrap_or_default();
    ensure!(
        answer.status == "200" && reason == "no_table",
        "{} with reason {reason:?}",
        answer.status
    );
    mesh.remove_static_caller(&caller.name)
}

fn write(folder: &Path, ours: &Authority, others: &Authority) -> Result<Certificates> {
    let authority = folder.join("ca.pem");
    fs::write(&authority, &ours.certificate)?;
    let signed = [
        ("weir-control", ours.sign("weir-control")),
        ("sidecar", ours.sign("sidecar")),
        ("stranger", others.sign("stranger")),
    ];
    for (name, signed) in signed {
        let (certificate, key) = pair(folder, name);
        fs::write(certificate, signed.certificate)?;
        fs::write(key, signed.key)?;
    }
    Ok(Certificates {
        authority,
        control: pair(folder, "weir-control"),
        sidecar: pair(folder, "sidecar"),
    })
}

fn pair(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let file = |kind: &str| folder.join(format!("{name}.{kind}"));
    (file("pem"), file("key"))
}
