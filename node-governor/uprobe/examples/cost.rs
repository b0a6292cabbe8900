// SPDX-License-Identifier: Apache-2.0
//! What a watched call costs a processor, by the first instruction of the function and by how its end is seen:
//! prints a table.
//!
//! ```sh
//! cargo run --release -p weir-uprobe --example cost
//! ```

use std::error::Error;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use weir_events::{FunctionId, Geometry};
use weir_uprobe::{Probe, Uprobes};

/// As examples/cost.c has them, and what they begin with. The first is not watched.
const FUNCTIONS: [(&str, &str); 6] = [
    ("plain", "`push`, not watched"),
    ("push", "`push`"),
    ("marked_push", "`endbr64`, then `push`"),
    ("nop5", "a no-op of 5 bytes"),
    ("marked", "`endbr64`, then `xor`"),
    ("sub", "`sub`"),
];
const FIRST: FunctionId = FunctionId::new(0).unwrap();
const CALLS: u32 = 10_000;
const ROUNDS: usize = 9;

/// The program, in which exceptions can pass or not.
struct Program {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    seen: [Vec<f64>; FUNCTIONS.len()],
    _uprobes: Uprobes,
}

impl Program {
    fn start(dir: &Path, name: &str, flags: &[&str]) -> Result<Self, Box<dyn Error>> {
        let binary = dir.join(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/cost.c");
        let mut compiler = Command::new("cc");
        compiler.arg("-O2").arg("-o").arg(&binary).arg(source);
        if !compiler.args(flags).status()?.success() {
            return Err("cc".into());
        }
        let probes = FUNCTIONS[1..].iter().map(|(symbol, _)| Probe {
            function: FIRST,
            binary: binary.clone(),
            symbol: (*symbol).to_owned(),
            process: None,
            no_unwinding: false,
        });
        let probes = probes.collect::<Vec<_>>();
        let (uprobes, _memory) = Uprobes::attach(&probes, Geometry::default())?;
        let mut command = Command::new(&binary);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Self {
            input: child.stdin.take().ok_or("piped")?,
            lines: BufReader::new(child.stdout.take().ok_or("piped")?).lines(),
            child,
            seen: Default::default(),
            _uprobes: uprobes,
        })
    }

    fn round(&mut self) -> Result<(), Box<dyn Error>> {
        writeln!(self.input, "{CALLS}")?;
        let line = self.lines.next().ok_or("the program ended")??;
        for (seen, took) in self.seen.iter_mut().zip(line.split(' ')) {
            seen.push(took.parse()?);
        }
        Ok(())
    }

    fn median(&mut self, function: usize) -> f64 {
        let seen = &mut self.seen[function];
        seen.sort_by(f64::total_cmp);
        seen[seen.len() / 2]
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let mut by_kernel = Program::start(dir.path(), "by-kernel", &[])?;
    let unwinds = ["-DUNWINDS", "-lgcc_s"];
    let mut by_instructions = Program::start(dir.path(), "by-instructions", &unwinds)?;
    for _ in 0..ROUNDS {
        by_kernel.round()?;
        by_instructions.round()?;
    }
    println!(
        "ns of a processor for a call, entry and end together: {CALLS} calls, median of {ROUNDS} rounds in turn\n"
    );
    println!("| begins with | end seen by the kernel | by instructions |\n|---|---|---|");
    for (index, (_, begins)) in FUNCTIONS.iter().enumerate() {
        let (kernel, instructions) = (by_kernel.median(index), by_instructions.median(index));
        println!("| {begins} | {kernel:.0} | {instructions:.0} |");
    }
    Ok(())
}
