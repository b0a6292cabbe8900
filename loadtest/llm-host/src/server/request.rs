// SPDX-License-Identifier: Apache-2.0
//! What is asked for.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;

use super::App;
use super::failure::Failure;
use crate::chat::{self, Message};
use crate::key::Key;
use crate::prompt::Prompt;
use crate::sequence::Sequence;

/// OpenAI's default for completions.
const MAX_TOKENS: u64 = 16;
/// Longest key, in bytes; Weir's other hosts have the same limit.
const MAX_KEY_BYTES: usize = 4096;

/// The path, which says where the prompt is and what the answer looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    Completions,
    Chat,
}

/// A request that can be submitted.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) api: Api,
    pub(super) sequence: Sequence,
    /// The answer is to come as it is written.
    pub(super) stream: bool,
    /// The last event of a stream is to tell of tokens.
    pub(super) include_usage: bool,
}

/// What of a request matters here; other fields are of no concern.
#[derive(Debug, Deserialize)]
struct Written<'a> {
    model: Cow<'a, str>,
    #[serde(borrow)]
    prompt: Option<Cow<'a, str>>,
    messages: Option<Vec<Message>>,
    max_tokens: Option<u64>,
    /// The newer name, of chats.
    max_completion_tokens: Option<u64>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

impl Api {
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Completions => "/v1/completions",
            Self::Chat => "/v1/chat/completions",
        }
    }
}

impl Asked {
    /// Of a request's body.
    pub(super) fn parse(
        app: &App,
        api: Api,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Self, Failure> {
        let written: Written<'_> = serde_json::from_slice(body)
            .map_err(|e| Failure::bad(format!("no completion: {e}")))?;
        if written.model != app.model {
            let (asked, served) = (&written.model, &app.model);
            let reason = format!("model: there is no {asked:?} here, only {served:?}");
            return Err(Failure::new(StatusCode::NOT_FOUND, reason));
        }
        let prompt = match (api, &written.prompt, &written.messages) {
            (Api::Completions, None, _) => return Err(Failure::bad("prompt: is missing")),
            (Api::Completions, Some(prompt), _) if prompt.is_empty() => {
                return Err(Failure::bad("prompt: is empty"));
            }
            (Api::Completions, Some(prompt), _) => Prompt::of(prompt.as_bytes(), app.block_tokens),
            (Api::Chat, _, None) => return Err(Failure::bad("messages: are missing")),
            (Api::Chat, _, Some(messages)) if messages.is_empty() => {
                return Err(Failure::bad("messages: there are none"));
            }
            (Api::Chat, _, Some(messages)) => Prompt::of(chat::prompt(messages), app.block_tokens),
        };
        let max_tokens = written.max_completion_tokens.or(written.max_tokens);
        let options = written.stream_options;
        Ok(Self {
            api,
            sequence: Sequence {
                prompt,
                output_tokens: max_tokens.unwrap_or(MAX_TOKENS),
                key: key(app, headers)?,
                read_by: None,
            },
            stream: written.stream.unwrap_or(false),
            include_usage: options.and_then(|options| options.include_usage) == Some(true),
        })
    }
}

fn key(app: &App, headers: &HeaderMap) -> Result<Option<Key>, Failure> {
    match headers.get("x-weir-key").map(HeaderValue::to_str) {
        None => Ok(None),
        Some(Ok(key)) if (1..=MAX_KEY_BYTES).contains(&key.len()) => {
            Ok(Some(Key::new(key, app.key_separator)))
        }
        Some(_) => {
            let reason = format!("header x-weir-key: is not 1 to {MAX_KEY_BYTES} bytes of text");
            Err(Failure::bad(reason))
        }
    }
}
