// SPDX-License-Identifier: Apache-2.0
//! The mesh that tests share, and those who have one of their own.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use libtest_mimic::{Arguments, Trial};
use tempfile::TempDir;
use weir_mesh::{Mesh, Plan, Programs};
use weir_needs::{Lacking, Need, skip_test};

/// A test: its name, and what it does.
pub(crate) type Scenario = (&'static str, Act);

/// What a test does, and with what.
#[derive(Clone, Copy)]
pub(crate) enum Act {
    /// With the shared mesh, which is as it was at first afterwards.
    Shared(fn(&mut Mesh) -> Result<()>),
    /// With the programs alone, while no mesh is up.
    Alone(fn(&Programs) -> Result<()>),
    /// The same, where network namespaces can be had.
    Namespaces(fn(&Programs) -> Result<()>),
}

/// Runs the tests as the program's arguments say.
pub(crate) fn run(scenarios: &[&[Scenario]]) -> ExitCode {
    let mut arguments = Arguments::from_args();
    // They share a mesh, and the machine.
    arguments.test_threads = Some(1);
    let programs = Programs::from_environment();
    let namespaces = weir_mesh::namespaces_possible();
    let namespaces = namespaces.map_err(|why| Lacking::new(Need::Namespaces, format!("{why:#}")));
    let play = Arc::new(Play {
        programs: programs.as_ref().ok().cloned(),
        mesh: Mutex::new(None),
    });
    let trial = |(name, act): &Scenario| {
        let (play, act) = (Arc::clone(&play), *act);
        let lacking = match (&programs, &namespaces, act) {
            (Err(lacking), ..) | (Ok(_), Err(lacking), Act::Namespaces(_)) => Some(lacking),
            _ => None,
        };
        if let Some(lacking) = lacking {
            skip_test(name, lacking.need, lacking);
        }
        Trial::test(*name, move || {
            play.run(act).map_err(|error| format!("{error:#}").into())
        })
        .with_ignored_flag(lacking.is_some())
    };
    let trials = scenarios.iter().copied().flatten().map(trial).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    play.strike();
    conclusion.exit_code()
}

struct Play {
    programs: Option<Programs>,
    mesh: Mutex<Option<(Mesh, TempDir)>>,
}

impl Play {
    fn run(&self, act: Act) -> Result<()> {
        let programs = self.programs.as_ref().context("there are no programs")?;
        let act = match act {
            Act::Shared(act) => act,
            Act::Alone(act) | Act::Namespaces(act) => {
                self.strike();
                return act(programs);
            }
        };
        let mut shared = self.mesh.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.is_none() {
            let folder = tempfile::tempdir()?;
            let mesh = Mesh::up(&Plan::default(), programs, folder.path());
            *shared = Some((kept_on_failure(mesh, &folder)?, folder));
        }
        let (mesh, _) = shared.as_mut().context("there is no mesh")?;
        let result = catch_unwind(AssertUnwindSafe(|| {
            act(mesh)?;
            // Nobody may have died unnoticed meanwhile.
            mesh.processes().check()
        }));
        if !matches!(result, Ok(Ok(()))) {
            // Who knows how it is now: the next test gets another.
            if let Some((mesh, folder)) = shared.take() {
                drop(mesh);
                eprintln!("logs are in {}", folder.keep().display());
            }
        }
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn strike(&self) {
        *self.mesh.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// What went wrong is in the logs, which outlive a test that failed.
fn kept_on_failure(mesh: Result<Mesh>, folder: &TempDir) -> Result<Mesh> {
    mesh.inspect_err(|_| {
        let logs = std::env::temp_dir().join(format!("weir-mesh-failed-{}", std::process::id()));
        if std::fs::rename(folder.path(), &logs).is_ok() {
            eprintln!("logs are in {}", logs.display());
        }
    })
}
