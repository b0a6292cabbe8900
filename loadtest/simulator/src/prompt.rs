// SPDX-License-Identifier: Apache-2.0
//! From a request to the prompt that a host of a language model reads.

use std::time::Duration;

use weir_llm_host::prompt::BYTES_PER_TOKEN;
use weir_llm_host::{BlockId, Prompt, Sequence, Settings};
use weir_policy::KeyHash;

use crate::workload::{Job, Key, SEPARATOR};

/// The request's keys are names of full blocks, its bytes the text, its run the writing of the answer. Tokens
/// that no key names are read each time: what every prompt begins with, and the rest behind the last block.
pub(crate) fn of(job: &Job, keys: &[Key], settings: &Settings) -> Sequence {
    let key = job.key.and_then(|key| keys.get(key as usize));
    let names = key.into_iter().flat_map(Key::names);
    let block = |name: &str| BlockId(KeyHash::of(name.as_bytes()).0);
    let named = key.map(|key| weir_llm_host::Key::new(&key.name, Some(SEPARATOR)));
    Sequence {
        prompt: Prompt {
            blocks: names.map(block).collect(),
            tokens: job.bytes.div_ceil(BYTES_PER_TOKEN as u64),
            text: [].into(),
        },
        output_tokens: tokens(job.work.core_time(), settings),
        key: named,
        read_by: None,
    }
}

/// How many tokens are written in that time.
fn tokens(run: Duration, settings: &Settings) -> u64 {
    let each = settings.timing.decode(1).as_secs_f64();
    match each > 0.0 {
        true => (run.as_secs_f64() / each).round() as u64,
        false => 0,
    }
}
