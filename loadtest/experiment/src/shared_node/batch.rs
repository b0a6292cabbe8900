// SPDX-License-Identifier: Apache-2.0
//! The batch job: threads that do nothing but use CPU time, for as long as they are let.

use std::hint::black_box;
use std::process::Command;

use crate::shared_node::programs::Programs;

/// Its name, and its cgroup's.
pub const JOB: &str = "burn";
/// As many as the node has cores: a job made for the whole machine.
pub const THREADS: usize = 2;

/// How it is started, with so many threads.
#[must_use]
pub fn line(programs: &Programs, threads: &str) -> Vec<String> {
    let program = programs.burn.display().to_string();
    vec![program, "burn".to_owned(), threads.to_owned()]
}

/// The same where nobody governs.
#[must_use]
pub fn command(programs: &Programs) -> Command {
    let mut command = Command::new(&programs.burn);
    command.args(&line(programs, &THREADS.to_string())[1..]);
    command
}

/// What it does; it ends by a signal.
pub fn burn(threads: usize) -> ! {
    let burn = || -> ! {
        let mut state = 1_u64;
        loop {
            state = black_box(
                state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1),
            );
        }
    };
    for _ in 1..threads {
        std::thread::spawn(burn);
    }
    burn()
}
