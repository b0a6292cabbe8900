// SPDX-License-Identifier: Apache-2.0
//! The command line.

use std::path::PathBuf;

use axum::http::HeaderName;
use clap::Parser;
use weir_llm_host::{Settings, Timing};

/// EMULATED hosts of a language model: nothing is generated, but prompts are looked up in a prefix
/// cache, and answers come when a model of queue, prefill and decode says so. The defaults stand
/// for a model of 70 billion parameters on eight GPUs of 80 GB; DESIGN.md says where they are from.
#[derive(Debug, Parser)]
#[command(name = "weir-llm-host", version)]
pub(crate) struct Args {
    /// How many hosts, each on a port of its own of 127.0.0.1; with --kv-events each on an address of its own, from
    /// 127.0.0.1 on.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) hosts: u16,
    /// Write {"hosts":["ADDRESS",...]} once all are bound.
    #[arg(long, value_name = "FILE")]
    pub(crate) ports_file: Option<PathBuf>,
    /// Name of the model that requests must ask for.
    #[arg(long, default_value = "m")]
    pub(crate) model: String,
    /// Write a line for each answered request (NDJSON).
    #[arg(long, value_name = "FILE")]
    pub(crate) request_log: Option<PathBuf>,
    /// Largest body of a request.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    pub(crate) max_body_bytes: usize,
    /// Requests' keys are lists, with this in between: a name for each of the last full blocks of the
    /// prompt, in their order. /cache then tells which of these blocks are cached.
    #[arg(long, value_name = "CHARACTER")]
    pub(crate) key_separator: Option<char>,
    /// Hosts that write: the one whose address this header of a request has reads the prompt first, as llm-d's sidecar
    /// has it done by `x-prefiller-host-port`.
    #[arg(long, value_name = "HEADER")]
    pub(crate) prefill_header: Option<HeaderName>,
    /// Publish what comes into each host's cache and goes, as vLLM does (ZeroMQ, MessagePack). Two ports more, the same of
    /// all hosts, in the file of ports as `kv_events` and `kv_replays`. The tokens are the bytes of the text.
    #[arg(long)]
    pub(crate) kv_events: bool,
    /// Write the tokenizer.json of these tokens.
    #[arg(long, value_name = "FILE", requires = "kv_events")]
    pub(crate) kv_tokenizer: Option<PathBuf>,
    /// Batches of events that a host keeps to be asked for.
    #[arg(long, default_value_t = 10_000, requires = "kv_events")]
    pub(crate) kv_keep: usize,
    /// Write events as SGLang and older vLLM do: as arrays without the names of fields.
    #[arg(long, requires = "kv_events")]
    pub(crate) kv_arrays: bool,
    /// Listen where an earlier start did that has written this file of ports.
    #[arg(long, value_name = "FILE")]
    pub(crate) ports_of: Option<PathBuf>,
    /// Tokens of a block; 4 bytes of text count as a token.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    block_tokens: u32,
    /// Blocks that fit into the memory of a host, cached ones and those of running requests together.
    #[arg(long, default_value_t = 2500, value_parser = clap::value_parser!(u32).range(1..))]
    capacity_blocks: u32,
    /// Requests in prefill and decode at most.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    slots: u32,
    /// Requests in the queue at most.
    #[arg(long, default_value_t = 10_000)]
    max_queued: usize,
    /// Tokens of a prompt that a host reads in a second, one prompt at a time.
    #[arg(long, default_value_t = 8000.0, value_parser = positive)]
    prefill_tokens_per_second: f64,
    /// Milliseconds for each token of an answer, however many are written at once.
    #[arg(long, default_value_t = 25.0, value_parser = positive)]
    decode_ms_per_token: f64,
    /// Divide all times by this.
    #[arg(long, default_value_t = 1.0, value_parser = positive)]
    speed_up: f64,
    /// Cache changes remembered for /cache?since=.
    #[arg(long, default_value_t = 65_536)]
    change_log: usize,
}

impl Args {
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            slots: self.slots as usize,
            max_queued: self.max_queued,
            capacity_blocks: self.capacity_blocks as usize,
            block_tokens: self.block_tokens as usize,
            timing: Timing::new(
                self.prefill_tokens_per_second,
                self.decode_ms_per_token,
                self.speed_up,
            ),
            change_log: self.change_log,
        }
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if n.is_finite() && n > 0.0 => Ok(n),
        _ => Err("expected a number above 0".to_owned()),
    }
}
