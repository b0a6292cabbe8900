// SPDX-License-Identifier: Apache-2.0
//! Packages for Debian: weir-control with weirctl and the filter, and weir-governor.
//!
//! Neither makes a user: weir-control's unit has a dynamic one, and cpufreq's files are root's. Neither is started
//! where it is installed: one has to name its hosts first, the other would change frequencies.

use std::path::Path;

use anyhow::Result;
use weir_packaging::deb::{self, Package};
use weir_packaging::{Layer, gzip};

use super::VERSION;
use super::archive::{files, read};
use super::build::{Built, Machine};
use crate::workspace::Workspace;

const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Weir

Files: *
Copyright: the authors of Weir
License: Apache-2.0
 The text is in /usr/share/common-licenses/Apache-2.0. NOTICES.txt and rust-standard-library.html beside this file
 have the licences of what is linked.
";

/// By their path in the checkout, files of a package.
type Files = &'static [(&'static str, &'static str)];

const CONTROL: Files = &[
    (
        "deploy/systemd/weir-control.service",
        "usr/lib/systemd/system/weir-control.service",
    ),
    (
        "deploy/systemd/weir-control.yaml",
        "etc/weir/weir-control.yaml",
    ),
    (
        "envoy-config/standalone/bootstrap.yaml",
        "usr/share/weir/bootstrap.yaml",
    ),
    (
        "envoy-config/standalone/bootstrap-tls.yaml",
        "usr/share/weir/bootstrap-tls.yaml",
    ),
    (
        "control-plane/README.md",
        "usr/share/doc/weir-control/README.md",
    ),
    (
        "control-plane/CONFIGURATION.md",
        "usr/share/doc/weir-control/CONFIGURATION.md",
    ),
];
const GOVERNOR: Files = &[
    (
        "deploy/systemd/weir-governor.service",
        "usr/lib/systemd/system/weir-governor.service",
    ),
    (
        "node-governor/weir-governor.yaml",
        "etc/weir/weir-governor.yaml",
    ),
    (
        "deploy/systemd/weir-governor-jobs.conf",
        "usr/share/doc/weir-governor/weir-governor-jobs.conf",
    ),
    (
        "node-governor/README.md",
        "usr/share/doc/weir-governor/README.md",
    ),
    (
        "node-governor/CONFIGURATION.md",
        "usr/share/doc/weir-governor/CONFIGURATION.md",
    ),
];

/// For one architecture.
pub(super) fn packages(
    workspace: &Workspace,
    built: &Built,
    machine: &Machine,
) -> Result<[Package; 2]> {
    let layer = |programs: &[&str], own: Files| layer(workspace, built, machine, programs, own);
    let mut control = layer(&["weir-control", "weirctl"], CONTROL)?;
    let module = "usr/share/weir/weir_filter.wasm";
    control.add(module, 0o644, built.module.clone())?;
    let notices = "usr/share/doc/weir-control/weir_filter.wasm";
    built.module_papers.add(notices, &mut control)?;
    Ok([
        Package {
            name: "weir-control",
            version: VERSION.to_owned(),
            arch: machine.arch,
            summary: "control plane of Weir, its command line and its Envoy filter",
            description: &[
                "weir-control gathers load and cache contents of hosts and pushes them to Envoy",
                "sidecars, where a WebAssembly filter chooses the host of every request.",
            ],
            depends: depends(machine, &["weir-control", "weirctl"])?,
            files: control,
            settings: &["etc/weir/weir-control.yaml"],
            scripts: scripts("weir-control.service"),
        },
        Package {
            name: "weir-governor",
            version: VERSION.to_owned(),
            arch: machine.arch,
            summary: "node governor of Weir: core frequencies, and cores for batch jobs",
            description: &[
                "weir-governor sets core frequencies by what the service runs, divides cores",
                "between the service and batch jobs, and puts back what it found.",
            ],
            depends: depends(machine, &["weir-governor"])?,
            files: layer(&["weir-governor"], GOVERNOR)?,
            settings: &["etc/weir/weir-governor.yaml"],
            scripts: scripts("weir-governor.service"),
        },
    ])
}

/// With the manuals and papers of programs, of which the first has the package's name.
fn layer(
    workspace: &Workspace,
    built: &Built,
    machine: &Machine,
    programs: &[&str],
    own: Files,
) -> Result<Layer> {
    let mut layer = Layer::default();
    for (from, to) in own {
        layer.add(to, 0o644, read(&workspace.root.join(from))?)?;
    }
    for name in programs {
        let program = machine.glibc.find(name)?;
        let place = Path::new("usr/bin").join(name);
        layer.add(place, 0o755, program.bytes.clone())?;
        let doc = Path::new("usr/share/doc").join(name);
        layer.add(doc.join("copyright"), 0o644, COPYRIGHT.into())?;
        program.papers.add(doc, &mut layer)?;
        manuals(built, name, &mut layer)?;
    }
    Ok(layer)
}

fn manuals(built: &Built, program: &str, layer: &mut Layer) -> Result<()> {
    for file in files(&built.manuals.join("man"))? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let page = name.trim_end_matches(".1");
        if page == program || page.starts_with(&format!("{program}-")) {
            let place = format!("usr/share/man/man1/{name}.gz");
            layer.add(place, 0o644, gzip(&read(&file)?)?)?;
        }
    }
    for (file, place) in [
        (
            format!("{program}.bash"),
            format!("bash-completion/completions/{program}"),
        ),
        (
            format!("{program}.fish"),
            format!("fish/vendor_completions.d/{program}.fish"),
        ),
        (
            format!("_{program}"),
            format!("zsh/vendor-completions/_{program}"),
        ),
    ] {
        let file = built.manuals.join("completions").join(file);
        layer.add(format!("usr/share/{place}"), 0o644, read(&file)?)?;
    }
    Ok(())
}

/// The newest of what they want.
fn depends(machine: &Machine, programs: &[&str]) -> Result<String> {
    let mut bytes = Vec::new();
    for name in programs {
        bytes.extend_from_slice(&machine.glibc.find(name)?.bytes);
    }
    deb::libraries(&bytes)
}

/// What `dpkg` runs. An upgrade restarts what runs.
fn scripts(unit: &str) -> Vec<(&'static str, String)> {
    let script =
        |text: String| format!("#!/bin/sh\nset -e\n[ -d /run/systemd/system ] || exit 0\n{text}\n");
    let started = format!(
        "[ \"$1\" = configure ] || exit 0\n\
         systemctl daemon-reload\n\
         [ -z \"$2\" ] || systemctl try-restart {unit}"
    );
    let removed = format!("[ \"$1\" != remove ] || systemctl disable --now {unit}");
    vec![
        ("postinst", script(started)),
        ("prerm", script(removed)),
        ("postrm", script("systemctl daemon-reload".to_owned())),
    ]
}
