// SPDX-License-Identifier: Apache-2.0
//! What engines publish of their prefix caches.

use std::sync::Arc;

use weir_kv_events::template::Template;
use weir_kv_events::vocabulary::{self, Vocabulary};
use weir_settings::Scope;

use super::{Reader, beside};
use crate::config::{Cluster, Error, KvEvents, written};
use crate::errors::with_sources;

/// vLLM's and SGLang's own default.
const PORT: u16 = 5557;
/// The filter's default, `key.prompt.block_bytes`.
const BLOCK_BYTES: u64 = 1024;
/// Four million tokens in blocks of 16: more than the memory of eight accelerators holds of a large model.
const MAX_BLOCKS: u64 = 262_144;
/// A batch is of one step of the engine: a prompt of a million tokens takes 5 bytes a token.
const MAX_BYTES: usize = 8 << 20;

/// Reads it, in a cluster that is checked but for it.
pub(super) fn kv_events(
    written: &written::KvEvents,
    cluster: &Cluster,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<KvEvents, Error> {
    if cluster.cache.is_some() {
        let reason = "hosts are asked by cache, or listened to by kv_events: leave one of them out";
        return Err(scope.refuse(&None, "", reason));
    }
    if cluster.cache_shards == 0 {
        let reason = "what hosts hold is pushed as cache contents; cache_shards must not be 0";
        return Err(scope.refuse(&None, "", reason));
    }
    let port = |value: &Option<written::Text>, field, default| {
        let port = scope.whole(value, field, default, 1..=65_535);
        port.map(|port| port as u16)
    };
    let own = port(&written.port, "port", PORT.into())?;
    let other = |value: &Option<written::Text>, field| match value {
        None => {
            scope.note(field, "whole number", None, Some("1 to 65535".into()));
            Ok(None)
        }
        some => port(some, field, 0).map(Some),
    };
    let replay_port = other(&written.replay_port, "replay_port")?;
    if replay_port == Some(own) {
        let reason = format!("{own} is the port where the host publishes");
        return Err(scope.refuse(&written.replay_port, "replay_port", reason));
    }
    let any = |_: &str| true;
    let model = scope.text(&written.model, "model", "", any, "a model's name")?;
    let template = scope.choice(
        &written.template,
        "template",
        Template::None,
        &Template::ALL,
    )?;
    let block_bytes = scope.whole(
        &written.block_bytes,
        "block_bytes",
        BLOCK_BYTES,
        64..=65_536,
    )?;
    let checked = KvEvents {
        port: own,
        replay_port,
        base_port: other(&written.base_port, "base_port")?,
        topic: scope.text(
            &written.topic,
            "topic",
            "",
            |text| text.len() <= 255,
            "at most 255 bytes",
        )?,
        model,
        vocabulary: vocabulary(written, scope, reader)?,
        template,
        block_bytes: block_bytes as usize,
        max_blocks: scope.whole(
            &written.max_blocks,
            "max_blocks",
            MAX_BLOCKS,
            1..=16_777_216,
        )? as usize,
        max_bytes: scope.size(&written.max_bytes, "max_bytes", MAX_BYTES, 1024..=1 << 28)?,
        salt: cluster.salt.clone(),
    };
    let is_text = checked.vocabulary.is_some();
    if is_text && checked.model.is_empty() {
        let reason = "is required with tokenizer: it is part of the names of blocks";
        return Err(scope.refuse(&written.model, "model", reason));
    }
    if !is_text && template != Template::None {
        let reason = "needs a tokenizer: without one blocks are named by their hashes";
        return Err(scope.refuse(&written.template, "template", reason));
    }
    if let Err(error) = checked.naming() {
        return Err(scope.refuse(&written.template, "template", error));
    }
    Ok(checked)
}

/// The text of tokens, and which of them begin each prompt.
fn vocabulary(
    written: &written::KvEvents,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Option<Arc<Vocabulary>>, Error> {
    let tokenizer = &written.tokenizer;
    let mut vocabulary = file(tokenizer, "tokenizer", scope, reader, Vocabulary::read)?;
    let config = &written.tokenizer_config;
    let begin = |json: &[u8]| match &mut vocabulary {
        Some(vocabulary) => vocabulary.begin_as(json),
        None => Ok(()),
    };
    let begins = file(config, "tokenizer_config", scope, reader, begin)?;
    if begins.is_some() && vocabulary.is_none() {
        let reason = "needs a tokenizer: it tells which of its tokens is the first";
        return Err(scope.refuse(config, "tokenizer_config", reason));
    }
    Ok(vocabulary.map(Arc::new))
}

/// What is in the file that a field names, if it names one.
fn file<T>(
    written: &Option<written::Text>,
    field: &str,
    scope: &Scope<'_>,
    reader: &mut Reader,
    into: impl FnOnce(&[u8]) -> Result<T, vocabulary::Error>,
) -> Result<Option<T>, Error> {
    scope.note(field, "path", None, None);
    let Some(name) = written else { return Ok(None) };
    let refuse = |reason: String| scope.refuse(written, field, reason);
    let bytes = reader
        .bytes(&beside(scope.file(), &name.value))
        .map_err(refuse)?;
    let read = into(&bytes);
    let read = read.map_err(|error| refuse(format!("{} {}", name.value, with_sources(&error))))?;
    Ok(Some(read))
}
