// SPDX-License-Identifier: Apache-2.0
//! What a watched call costs, by the first instruction of the function: prints a table.
//!
//! ```sh
//! cargo run --release -p weir-uprobe --example cost
//! ```

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use weir_events::{FunctionId, Geometry};
use weir_uprobe::{Probe, Uprobes};

const FUNCTIONS: [&str; 6] = ["plain", "push", "marked_push", "nop5", "marked", "sub"];
const FIRST: FunctionId = FunctionId::new(0).unwrap();
const CALLS: u32 = 20_000;
const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let binary = dir.path().join("cost");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/cost.c");
    let mut compiler = Command::new("cc");
    compiler.arg("-O2").arg("-o").arg(&binary).arg(source);
    if !compiler.status()?.success() {
        return Err("cc".into());
    }
    // The first stays as it is, to compare with.
    let probes = FUNCTIONS[1..].iter().map(|symbol| Probe {
        function: FIRST,
        binary: binary.clone(),
        symbol: (*symbol).to_owned(),
        process: None,
        no_unwinding: false,
    });
    let (uprobes, _memory) = Uprobes::attach(&probes.collect::<Vec<_>>(), Geometry::default())?;
    let mut program = Command::new(&binary)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (mut input, output) = (
        program.stdin.take().ok_or("piped")?,
        program.stdout.take().ok_or("piped")?,
    );
    let mut lines = BufReader::new(output).lines();
    let mut seen = vec![Vec::new(); FUNCTIONS.len()];
    for _ in 0..ROUNDS {
        writeln!(input, "{CALLS}")?;
        let line = lines.next().ok_or("the program ended")??;
        for (seen, took) in seen.iter_mut().zip(line.split(' ')) {
            seen.push(took.parse::<f64>()?);
        }
    }
    drop(input);
    program.wait()?;
    let medians = seen.iter_mut().map(|seen| {
        seen.sort_by(f64::total_cmp);
        seen[seen.len() / 2]
    });
    let paces = uprobes.sites().map(|(_, site)| format!("{:?}", site.pace));
    let paces = ["not watched".to_owned()].into_iter().chain(paces);
    println!("{CALLS} calls, median of {ROUNDS} rounds; entry and return together\n");
    println!("| first instruction | pace | ns a call |\n|---|---|---|");
    for ((function, pace), median) in FUNCTIONS.iter().zip(paces).zip(medians) {
        println!("| {function} | {pace} | {median:.0} |");
    }
    Ok(())
}
