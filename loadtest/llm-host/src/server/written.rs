// SPDX-License-Identifier: Apache-2.0
//! Answers in the forms of OpenAI's API, as vLLM writes them.
//!
//! No text is generated: there is a word for each step, and numbers say how much there would have been.

use std::time::Duration;

use serde_json::{Value, json};

use super::request::{Api, Asked};
use crate::sequence::Spent;

/// Steps of an answer at most: what a stream costs does not grow with the answer.
const MAX_STEPS: u64 = 64;
/// What each of them writes.
const WORD: &str = "EMULATED ";

/// How an answer is written: in steps of so many tokens, the last of what is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Steps {
    tokens: u64,
    each: u64,
}

impl Steps {
    pub(super) fn of(tokens: u64) -> Self {
        let each = tokens.div_ceil(MAX_STEPS).max(1);
        Self { tokens, each }
    }

    pub(super) fn count(self) -> u64 {
        self.tokens.div_ceil(self.each)
    }

    /// When a step's first token is there, from the end of the prefill on: the first at once.
    pub(super) fn at(self, step: u64, decode: Duration) -> Duration {
        let before = self.each.saturating_mul(step).min(self.tokens);
        decode.mul_f64(before as f64 / self.tokens.max(1) as f64)
    }
}

/// The names that an API has for things.
struct Names {
    id: &'static str,
    whole: &'static str,
    chunk: &'static str,
}

fn names(api: Api) -> Names {
    match api {
        Api::Completions => Names {
            id: "cmpl-emulated",
            whole: "text_completion",
            chunk: "text_completion",
        },
        Api::Chat => Names {
            id: "chatcmpl-emulated",
            whole: "chat.completion",
            chunk: "chat.completion.chunk",
        },
    }
}

/// An answer that comes at once.
pub(super) fn whole(model: &str, asked: &Asked, spent: &Spent) -> Value {
    let count = Steps::of(asked.sequence.output_tokens).count();
    let text: String = (0..count).map(|_| WORD).collect();
    let (name, written) = match asked.api {
        Api::Completions => ("text", json!(text)),
        Api::Chat => ("message", json!({ "role": "assistant", "content": text })),
    };
    let Names { id, whole, .. } = names(asked.api);
    json!({
        "id": id, "object": whole, "created": 0, "model": model,
        "choices": [{ "index": 0, name: written, "logprobs": null, "finish_reason": "length" }],
        "usage": usage(asked, spent),
    })
}

/// The event of a step, counted from 0.
pub(super) fn step(model: &str, api: Api, step: u64) -> Value {
    let written = match (api, step) {
        (Api::Completions, _) => json!(WORD),
        (Api::Chat, 0) => json!({ "role": "assistant", "content": WORD }),
        (Api::Chat, _) => json!({ "content": WORD }),
    };
    chunk(model, api, json!([choice(api, written, None)]))
}

/// The event that says that all is written.
pub(super) fn end(model: &str, api: Api) -> Value {
    let nothing = match api {
        Api::Completions => json!(""),
        Api::Chat => json!({}),
    };
    chunk(model, api, json!([choice(api, nothing, Some("length"))]))
}

/// The event that tells of tokens.
pub(super) fn used(model: &str, asked: &Asked, spent: &Spent) -> Value {
    let mut chunk = chunk(model, asked.api, json!([]));
    chunk["usage"] = usage(asked, spent);
    chunk
}

fn choice(api: Api, written: Value, finish_reason: Option<&str>) -> Value {
    let name = match api {
        Api::Completions => "text",
        Api::Chat => "delta",
    };
    json!({ "index": 0, name: written, "logprobs": null, "finish_reason": finish_reason })
}

fn chunk(model: &str, api: Api, choices: Value) -> Value {
    let Names { id, chunk, .. } = names(api);
    json!({ "id": id, "object": chunk, "created": 0, "model": model, "choices": choices })
}

fn usage(asked: &Asked, spent: &Spent) -> Value {
    let (read, written) = (asked.sequence.prompt.tokens, asked.sequence.output_tokens);
    json!({
        "prompt_tokens": read, "completion_tokens": written,
        "total_tokens": read.saturating_add(written),
        "prompt_tokens_details": { "cached_tokens": spent.hit_tokens },
    })
}

/// The list of models: one.
pub(super) fn models(model: &str) -> Value {
    let model = json!({ "id": model, "object": "model", "created": 0, "owned_by": "weir" });
    json!({ "object": "list", "data": [model] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_any_length_has_few_steps_and_all_of_its_time() {
        for (tokens, each, count) in [
            (0, 1, 0),
            (1, 1, 1),
            (64, 1, 64),
            (65, 2, 33),
            (6400, 100, 64),
        ] {
            let steps = Steps::of(tokens);
            assert_eq!(steps, Steps { tokens, each });
            assert_eq!(steps.count(), count);
            assert_eq!(steps.at(0, Duration::from_secs(1)), Duration::ZERO);
            assert_eq!(
                steps.at(count, Duration::from_secs(1)).as_secs(),
                count.min(1)
            );
        }
        assert!(Steps::of(u64::MAX).count() <= MAX_STEPS);
    }
}
