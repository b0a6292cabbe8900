// SPDX-License-Identifier: Apache-2.0
//! The guest that the tests of a program share, put back to how it was booted before each.

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use libtest_mimic::{Arguments, Trial};
use weir_guest::{Guest, Image, Parts};
use weir_needs::{Need, ONE_IS_PLAYED, skip_test};

use crate::governor;

/// A test: its name, and what it does with the guest.
pub(crate) type Scenario = (&'static str, fn(&mut Guest) -> Result<()>);

/// What the tests of a program have in common.
pub(crate) struct Stage {
    /// What is run inside, as it is placed in the folder of what Cargo builds.
    pub(crate) programs: &'static [&'static str],
    /// Leaves nothing running, and the kernel as it was booted. Little is executed, for that takes long
    /// inside.
    pub(crate) reset: &'static str,
    /// What is not seen where there is no guest.
    pub(crate) about: &'static str,
    /// Programs of this machine that are brought inside where they are here, each with the tests that want it.
    pub(crate) brings: &'static [(&'static str, &'static [Scenario])],
    /// Tests that are played at night alone, as others of their kind are played for every change.
    pub(crate) nightly: &'static [&'static str],
}

impl Stage {
    /// Runs the program's tests as its arguments say.
    pub(crate) fn run(self, scenarios: &[&[Scenario]]) -> ExitCode {
        let mut arguments = Arguments::from_args();
        // There is one guest, and each test wants it as it was booted.
        arguments.test_threads = Some(1);
        let parts = match Parts::find() {
            Ok(parts) => parts,
            Err(error) => {
                eprintln!("error: {error:#}");
                return ExitCode::FAILURE;
            }
        };
        let absent = parts.is_none();
        let (about, nightly, brings) = (self.about, self.nightly, self.brings);
        let scenarios: Vec<&Scenario> = scenarios.iter().copied().flatten().collect();
        for waits in nightly {
            assert!(
                scenarios.iter().any(|(name, _)| name == waits),
                "there is no {waits}"
            );
        }
        let play = Arc::new(Play {
            stage: self,
            parts,
            guest: Mutex::new(None),
        });
        let trial = |(name, run): &Scenario| {
            let (play, run) = (Arc::clone(&play), *run);
            let waits = nightly.contains(name) && !weir_needs::is_nightly();
            let wants = |tests: &[Scenario]| tests.iter().any(|(test, _)| test == name);
            let mut lacking = brings.iter().filter(|(program, _)| !is_here(program));
            let lacking = lacking.find(|(_, tests)| wants(tests));
            if absent {
                let why = format!("it is not set, so nothing meets {about}");
                skip_test(name, Need::Provided("WEIR_GUEST_DIR"), why);
            } else if waits {
                skip_test(name, Need::Nightly, ONE_IS_PLAYED);
            } else if let Some((program, _)) = lacking {
                let short = program.rsplit('/').next().unwrap_or(program);
                skip_test(
                    name,
                    Need::Installed(short),
                    format!("there is no {program}"),
                );
            }
            Trial::test(*name, move || {
                play.run(run).map_err(|error| format!("{error:#}").into())
            })
            .with_ignored_flag(absent || waits || lacking.is_some())
        };
        let trials = scenarios.into_iter().map(trial).collect();
        let conclusion = libtest_mimic::run(&arguments, trials);
        play.strike();
        conclusion.exit_code()
    }
}

struct Play {
    stage: Stage,
    parts: Option<Parts>,
    guest: Mutex<Option<Guest>>,
}

impl Play {
    /// Runs one test. The first boots the guest.
    fn run(&self, scenario: fn(&mut Guest) -> Result<()>) -> Result<()> {
        // A test that panicked leaves a guest that the reset puts right.
        let mut guest = self.guest.lock().unwrap_or_else(PoisonError::into_inner);
        if guest.is_none() {
            *guest = Some(self.boot()?);
        }
        let guest = guest.as_mut().context("there is no guest")?;
        guest
            .sh(self.stage.reset)
            .context("putting the guest back")?;
        let result = catch_unwind(AssertUnwindSafe(|| scenario(guest)));
        if !matches!(result, Ok(Ok(()))) {
            eprintln!("{}", governor::log(guest).unwrap_or_default());
        }
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Ends the guest.
    fn strike(&self) {
        *self.guest.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn boot(&self) -> Result<Guest> {
        let parts = self.parts.as_ref().context("WEIR_GUEST_DIR is not set")?;
        let mut image = Image::new(parts)?;
        for name in self.stage.programs {
            let program = built()?.join(name);
            ensure!(
                program.is_file(),
                "there is no {}: `cargo build --package weir-governor --package weir-events \
                 --package weir-guest --bins --examples`",
                program.display()
            );
            image.add_program(&program)?;
        }
        for (program, _) in self.stage.brings.iter().filter(|(it, _)| is_here(it)) {
            image.add_program(Path::new(program))?;
        }
        Guest::boot(parts, image)
    }
}

fn is_here(program: &str) -> bool {
    Path::new(program).is_file()
}

/// The folder of what Cargo builds: by `WEIR_BIN_DIR`, or two above this very program.
fn built() -> Result<PathBuf> {
    match env::var_os("WEIR_BIN_DIR") {
        Some(folder) => Ok(folder.into()),
        None => {
            let this = env::current_exe()?;
            let folder = this
                .ancestors()
                .nth(2)
                .context("this program has no folder")?;
            Ok(folder.to_owned())
        }
    }
}
