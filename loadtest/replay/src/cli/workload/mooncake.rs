// SPDX-License-Identifier: Apache-2.0
//! `weir-replay workload mooncake`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use weir_replay::mooncake::{self, Made, Params, Report};
use weir_replay::table;

use super::output::Output;

/// Makes a workload of completion requests to a language model, and their bodies: key = the
/// session's first own block (the first that is in at most half of the requests) or a list of blocks,
/// size = that of the prompt. Replay it with `run --bodies` and the same folder, `--path /v1/completions`.
///
/// MADE UP, because the source does not record it: the text of the prompts (each block of 512 tokens
/// has 2,048 letters that its number decides, so that equal blocks have equal text; prompts of which the source names
/// no blocks have none in common); the moment within the time for which the source's clock stands still (uniform at
/// random); who is important (--high-share). All other requests have the priority low, and none names a user: the source
/// knows neither. Every choice comes from the seed: same seed, same bytes.
#[derive(Debug, clap::Args)]
pub(crate) struct Mooncake {
    /// File of t_ms,keys,cost,size,cls; may be gzipped.
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    #[command(flatten)]
    params: Params,
    /// Name of the model to ask for.
    #[arg(long, default_value = "m")]
    model: String,
    /// Folder to write the bodies into; it is made if there is none (default: no bodies).
    #[arg(long, value_name = "DIR")]
    bodies: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

impl Mooncake {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let name = self.trace.display();
        let trace = table::open(&self.trace).with_context(|| format!("cannot read {name}"))?;
        let (mut made, report) = mooncake::convert(trace, &self.params)?;
        match &self.bodies {
            Some(folder) => write_bodies(&made, &self.model, folder)
                .with_context(|| format!("--bodies {} cannot be written", folder.display()))?,
            None => made.iter_mut().for_each(|made| made.request.body = None),
        }
        let requests: Vec<_> = made.into_iter().map(|made| made.request).collect();
        self.output.save(&requests, &report)?;
        tell(&report);
        Ok(())
    }
}

fn write_bodies(made: &[Made], model: &str, folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    for Made { request, row, .. } in made {
        if let Some(name) = &request.body {
            fs::write(folder.join(name), mooncake::body(row, model))?;
        }
    }
    Ok(())
}

fn tell(report: &Report) {
    let each = |tokens: u64| tokens as f64 / report.requests as f64;
    eprintln!(
        "{} requests over {:.1} s ({:.1}/s); {} keys, {:.0} % of requests return to one",
        report.requests,
        report.duration_s,
        report.rate_per_s,
        report.keys,
        report.returning_share * 100.0,
    );
    eprintln!(
        "{:.0} tokens of prompt a request, {:.0} of answer; {} full blocks, {} different ones; {:.1} % of the prompts' tokens could be found by one host with an endless cache",
        each(report.prompt_tokens),
        each(report.output_tokens),
        report.blocks,
        report.distinct_blocks,
        report.findable_share * 100.0,
    );
}
