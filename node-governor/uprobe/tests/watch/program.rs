// SPDX-License-Identifier: Apache-2.0
//! Programs to watch: built by the test that needs them, told what to do line by line.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

pub(crate) fn build(compiler: &str, arguments: &[&str], source: &Path, binary: &Path) {
    let mut command = Command::new(compiler);
    // Libraries come after what needs them.
    command.arg("-o").arg(binary).arg(source).args(arguments);
    let said = command
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(
        said.status.success(),
        "{compiler}: {}",
        String::from_utf8_lossy(&said.stderr)
    );
}

/// Compiles a C program.
pub(crate) fn cc(arguments: &[&str], name: &str, binary: &Path) {
    let with = [&["-O2", "-pthread"], arguments].concat();
    build("cc", &with, &source(name), binary);
}

/// Compiles a Rust program.
pub(crate) fn rustc(arguments: &[&str], name: &str, binary: &Path) {
    build(
        "rustc",
        &[&["--edition=2024"], arguments].concat(),
        &source(name),
        binary,
    );
}

/// A running program, killed when dropped.
pub(crate) struct Running {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start(binary: &Path) -> Self {
        let mut child = Command::new(binary)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut running = Self {
            child,
            input,
            output,
        };
        running.hear("ready");
        running
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns once it is done.
    pub(crate) fn tell(&mut self, what: &str) {
        self.say(what);
        self.hear("done");
    }

    pub(crate) fn say(&mut self, what: &str) {
        writeln!(self.input, "{what}").expect("the program reads");
    }

    pub(crate) fn hear(&mut self, wanted: &str) {
        let mut line = String::new();
        self.output
            .read_line(&mut line)
            .expect("the program writes");
        assert_eq!(line.trim(), wanted);
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ended");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
