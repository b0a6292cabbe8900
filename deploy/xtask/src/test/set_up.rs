// SPDX-License-Identifier: Apache-2.0
//! What tests meet beside crates: installed, built, and told to them by variables.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::packages::Need;
use crate::test::summary::{Outcome, Summary};
use crate::tools::{
    self, AIPERF, AXE, BATCH, CHROMIUM, CONSUL, EVENTS_AGENT, GUEST, K6, MEMCACHED, OPENAI,
    PROMETHEUS, SEARCH_NODE, XDS_CLIENT,
};
use crate::workspace::Workspace;
use crate::{build_filter, packaging};

/// Variables, with absolute paths. What could not be had is missing: its tests are skipped, and counted.
#[derive(Default)]
pub(super) struct SetUp {
    pub(super) variables: Vec<(String, PathBuf)>,
}

impl SetUp {
    /// Each need is a step of the run, which goes on when one fails.
    pub(super) fn make(
        workspace: &Workspace,
        needs: &BTreeSet<Need>,
        summary: &mut Summary,
    ) -> Self {
        let mut set_up = Self::default();
        for need in needs {
            match need {
                Need::Envoy => summary.run("envoy", || {
                    set_up.set("WEIR_ENVOY", tools::install(workspace)?.envoy);
                    Ok(Outcome::Passed)
                }),
                Need::Filter => summary.run("build-filter", || {
                    set_up.set("WEIR_FILTER_WASM", build_filter::run(workspace)?);
                    Ok(Outcome::Passed)
                }),
                Need::Programs => summary.run("binaries", || {
                    workspace.build_programs()?;
                    set_up.set("WEIR_BIN_DIR", workspace.target.join("debug"));
                    Ok(Outcome::Passed)
                }),
                Need::Consul => set_up.program(workspace, CONSUL, summary),
                Need::Prometheus => set_up.program(workspace, PROMETHEUS, summary),
                Need::Axe => set_up.program(workspace, AXE, summary),
                Need::XdsClient => set_up.program(workspace, XDS_CLIENT, summary),
                Need::K6 => set_up.program(workspace, K6, summary),
                Need::Memcached => set_up.program(workspace, MEMCACHED, summary),
                Need::Batch => {
                    for name in BATCH {
                        set_up.program(workspace, name, summary);
                    }
                }
                Need::Chromium => set_up.folder(workspace, CHROMIUM, summary),
                Need::Openai => set_up.folder(workspace, OPENAI, summary),
                Need::Aiperf => set_up.folder(workspace, AIPERF, summary),
                Need::Guest => set_up.folder(workspace, GUEST, summary),
                Need::Java => summary.run("java-build", || {
                    let agent = tools::build(workspace, EVENTS_AGENT)?;
                    set_up.set("WEIR_EVENTS_AGENT", agent);
                    set_up.set("WEIR_SEARCH_NODE", tools::build(workspace, SEARCH_NODE)?);
                    Ok(Outcome::Passed)
                }),
                Need::Readers => summary.run("packaging", || {
                    let readers = packaging::readers(workspace);
                    let all = packaging::are_all(&readers);
                    for (name, path) in readers {
                        set_up.set(&tools::variable(name), path);
                    }
                    Ok(if all { Outcome::Passed } else { MISSING })
                }),
            }
        }
        set_up
    }

    fn set(&mut self, variable: &str, path: impl AsRef<Path>) {
        self.variables
            .push((variable.to_owned(), path.as_ref().to_owned()));
    }

    fn program(&mut self, workspace: &Workspace, name: &'static str, summary: &mut Summary) {
        summary.run(name, || {
            let program = tools::any_program(workspace, name);
            if let (Ok(program), PROMETHEUS) = (&program, name) {
                // Every package of Prometheus has promtool beside it.
                let promtool = program.with_file_name("promtool");
                if promtool.is_file() {
                    self.set("WEIR_PROMTOOL", promtool);
                }
            }
            Ok(self.had(&tools::variable(name), program))
        });
    }

    fn folder(&mut self, workspace: &Workspace, name: &'static str, summary: &mut Summary) {
        summary.run(name, || {
            let folder = tools::folder(workspace, name);
            Ok(self.had(&tools::folder_variable(name), folder))
        });
    }

    fn had(&mut self, variable: &str, path: Result<PathBuf>) -> Outcome {
        match path {
            Ok(path) => {
                self.set(variable, path);
                Outcome::Passed
            }
            Err(error) => {
                println!("{variable} cannot be had: {error:#}");
                MISSING
            }
        }
    }
}

const MISSING: Outcome = Outcome::Skipped("it cannot be had: the tests that meet it are skipped");
