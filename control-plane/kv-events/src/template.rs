// SPDX-License-Identifier: Apache-2.0
//! Chats: the messages of a request, out of the marks that a model's chat template puts around them.
//!
//! ```text
//!  begin ─start─> role ─newline, or end of the head─> content ─end─> between ─start─> role ...
//! ```
//! What comes of it is the text of `messages` as weir-body defines it, where each message is
//! `{"role": ..., "content": ...}` with two strings, in this order. What a request has beyond that is not in it.

use crate::vocabulary::Vocabulary;

/// A template whose marks are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Template {
    /// Tokens are those of a prompt.
    #[default]
    None,
    /// `<|im_start|>role\ncontent<|im_end|>\n`, as Qwen's.
    Chatml,
    /// `<|start_header_id|>role<|end_header_id|>\n\ncontent<|eot_id|>`, as Llama 3's.
    Llama3,
}

/// The ids of its marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    start: u32,
    /// Behind the role; none where that is a newline.
    head_end: Option<u32>,
    end: u32,
}

impl Template {
    /// Every template, by its name in the configuration.
    pub const ALL: [(&'static str, Self); 3] = [
        ("none", Self::None),
        ("chatml", Self::Chatml),
        ("llama3", Self::Llama3),
    ];

    /// Its marks, in their order.
    pub fn marks(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::Chatml => &["<|im_start|>", "<|im_end|>"],
            Self::Llama3 => &["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
        }
    }

    /// The ids that they have; none where one has none.
    pub(crate) fn ids(self, vocabulary: &Vocabulary) -> Option<Marks> {
        let ids = self.marks().iter().map(|mark| vocabulary.added(mark));
        let ids: Option<Vec<u32>> = ids.collect();
        match *ids?.as_slice() {
            [start, end] => Some(Marks {
                start,
                head_end: None,
                end,
            }),
            [start, head_end, end] => Some(Marks {
                start,
                head_end: Some(head_end),
                end,
            }),
            _ => None,
        }
    }
}

/// Where in a chat, or whether it is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Part {
    /// Nothing has come that tells.
    #[default]
    Begin,
    /// It is a prompt as it was written.
    Prompt,
    Role,
    /// Newlines that are still to be passed over.
    Head(u8),
    Content,
    Between,
}

/// Newlines between head and content of Llama 3's.
const NEWLINES: u8 = 2;
const ROLE: &[u8] = b"role\xfe";
const CONTENT: &[u8] = b"\xffcontent\xfe";

/// Adds what a token of a chat, with this text, stands for; none: that is no chat as this template makes one.
pub(crate) fn write(
    part: Part,
    token: u32,
    text: &[u8],
    marks: Marks,
    mut put: impl FnMut(&[u8]),
) -> Option<Part> {
    if token == marks.start {
        match part {
            Part::Begin => put(b"["),
            Part::Between => {}
            _ => return None,
        }
        put(b"{");
        put(ROLE);
        return Some(Part::Role);
    }
    match part {
        Part::Role if Some(token) == marks.head_end => {
            put(CONTENT);
            Some(Part::Head(NEWLINES))
        }
        // A message that is empty has no more than its head.
        Part::Content | Part::Head(_) if token == marks.end => {
            put(b"\xff}");
            Some(Part::Between)
        }
        _ if Some(token) == marks.head_end || token == marks.end => None,
        Part::Begin | Part::Prompt => None,
        // Between messages templates put newlines. What else is there is of no message, and would be in no name.
        Part::Between => {
            let is_space = text.iter().all(u8::is_ascii_whitespace);
            is_space.then_some(Part::Between)
        }
        Part::Content => {
            put(text);
            Some(Part::Content)
        }
        Part::Role if marks.head_end.is_some() => {
            put(text);
            Some(Part::Role)
        }
        Part::Role => {
            let Some(newline) = text.iter().position(|byte| *byte == b'\n') else {
                put(text);
                return Some(Part::Role);
            };
            let (role, content) = text.split_at_checked(newline)?;
            put(role);
            put(CONTENT);
            put(content.get(1..)?);
            Some(Part::Content)
        }
        Part::Head(left) => {
            let newlines = text.iter().take(left.into());
            let newlines = newlines.take_while(|byte| **byte == b'\n').count();
            let content = text.get(newlines..)?;
            put(content);
            let left = left.saturating_sub(newlines as u8);
            Some(match left == 0 || !content.is_empty() {
                true => Part::Content,
                false => Part::Head(left),
            })
        }
    }
}
