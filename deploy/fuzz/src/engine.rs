// SPDX-License-Identifier: Apache-2.0
//! What reaches weir-control from engines of language models.

use std::sync::{Arc, LazyLock};

use weir_kv_events::host::{Host, Next};
use weir_kv_events::template::Template;
use weir_kv_events::text::Names;
use weir_kv_events::tree::Naming;
use weir_kv_events::vocabulary::Vocabulary;
use weir_kv_events::zmtp::{Decoder, Said, Socket};

use crate::laws::{accepted, is_a_line};

/// Less than some inputs tell of.
const MAX_BLOCKS: usize = 4;
const MAX_BYTES: usize = 256;

/// Tokens below 256 are letters, and 151,644 begins a message of a chat.
static VOCABULARY: LazyLock<Arc<Vocabulary>> = LazyLock::new(|| {
    let letters = (0..256_u32).map(|id| (format!("{id:02x}"), id));
    let vocab: serde_json::Map<_, _> = letters.map(|(text, id)| (text, id.into())).collect();
    let json = serde_json::json!({
        "model": {"vocab": vocab}, "decoder": {"type": "ByteLevel"},
        "added_tokens": [{"id": 151_644, "content": "<|im_start|>"}, {"id": 151_645, "content": "<|im_end|>"}],
    });
    Arc::new(Vocabulary::read(json.to_string().as_bytes()).expect("a vocabulary"))
});

pub(crate) fn kv_batch(bytes: &[u8]) -> bool {
    let text = |template| {
        let names = Names::new(VOCABULARY.clone(), template, "m", 2, None);
        Naming::Text(Box::new(names.expect("its marks are there")))
    };
    let mut is_read = true;
    for naming in [
        text(Template::None),
        text(Template::Chatml),
        Naming::Hash(None),
    ] {
        let mut host = Host::new(naming, MAX_BLOCKS);
        host.connected();
        host.no_replay();
        // Twice: what is there already is met again.
        for number in 0..2 {
            assert_eq!(host.live(number, bytes), Next::Go);
        }
        if let Some(malformed) = host.take_malformed() {
            is_a_line(&malformed.to_string());
            assert_eq!(host.blocks(), 0, "what was not read counts for nothing");
            is_read = false;
        }
        let held = host.tree().names().count();
        assert!(host.blocks() <= MAX_BLOCKS && held <= MAX_BLOCKS);
        let changes = host.tree().take_changes();
        assert!(changes.reset && changes.removed.is_empty());
        assert_eq!(changes.added.len(), held, "all that is held is told");
    }
    is_read
}

/// What is said, until the first thing that cannot be understood; none where the input is cut into such pieces.
fn said(bytes: &[u8], pieces: usize) -> (Vec<Said>, bool) {
    let mut decoder = Decoder::new(Socket::Sub, MAX_BYTES);
    let mut all = Vec::new();
    for piece in bytes.chunks(pieces) {
        decoder.take(piece);
        loop {
            match decoder.next_said() {
                Ok(Some(Said::Message(frames))) => {
                    assert!(frames.iter().map(Vec::len).sum::<usize>() <= MAX_BYTES);
                    all.push(Said::Message(frames));
                }
                Ok(Some(one)) => all.push(one),
                Ok(None) => break,
                Err(error) => {
                    let refused: Option<()> = accepted(Err(error));
                    return (all, refused.is_some());
                }
            }
        }
    }
    (all, true)
}

pub(crate) fn zmtp(bytes: &[u8]) -> bool {
    let whole = said(bytes, bytes.len().max(1));
    assert_eq!(
        whole,
        said(bytes, 1),
        "where pieces end makes no difference"
    );
    whole.1 && !whole.0.is_empty()
}
