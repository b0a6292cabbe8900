// SPDX-License-Identifier: Apache-2.0
//! `weir-sim replay-receipts`: decides again what receipts tell.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use weir_fleet::view::receipt::{ReceiptView, Replay};

#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    curl -s 127.0.0.1:19000/receipts > receipts.ndjson\n  \
    weir-sim replay-receipts receipts.ndjson")]
pub(super) struct Args {
    /// A line of JSON each, as `/receipts` of weir-control and `weirctl -o json tail` write them
    #[arg(value_name = "FILE")]
    receipts: PathBuf,
}

#[derive(Default)]
struct Count {
    agree: u64,
    nothing_compared: u64,
    /// Lines of those that came out otherwise, or say something that is not known here.
    differ: Vec<usize>,
    unreadable: Vec<usize>,
}

/// As many lines are named.
const MOST_NAMED: usize = 5;

impl Args {
    /// Fails where one comes out otherwise.
    pub(super) fn run(&self) -> Result<()> {
        let name = self.receipts.display();
        let file = File::open(&self.receipts).with_context(|| name.to_string())?;
        let mut count = Count::default();
        for (number, line) in (1..).zip(BufReader::new(file).lines()) {
            let line = line.with_context(|| format!("{name}:{number}"))?;
            let receipt: ReceiptView = serde_json::from_str(&line)
                .with_context(|| format!("{name}:{number}: no receipt"))?;
            match receipt.replay() {
                Replay::Agrees => count.agree += 1,
                Replay::NothingCompared => count.nothing_compared += 1,
                Replay::Differs => count.differ.push(number),
                Replay::Unreadable => count.unreadable.push(number),
            }
        }
        let Count {
            agree,
            nothing_compared,
            differ,
            unreadable,
        } = count;
        println!(
            "decided again: {agree} agree, {} differ; nothing was compared in {nothing_compared}, {} say what is not known here",
            differ.len(),
            unreadable.len()
        );
        let named = |lines: &[usize]| {
            let lines = lines
                .iter()
                .take(MOST_NAMED)
                .map(|line| format!("{name}:{line}"));
            lines.collect::<Vec<_>>().join(", ")
        };
        ensure!(differ.is_empty(), "they differ, first {}", named(&differ));
        ensure!(
            unreadable.is_empty(),
            "not known here, first {}",
            named(&unreadable)
        );
        Ok(())
    }
}
