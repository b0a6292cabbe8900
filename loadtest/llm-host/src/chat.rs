// SPDX-License-Identifier: Apache-2.0
//! Chats, as the prompts that a template makes of them: ChatML, as Qwen's.
//!
//! `START role newline content END newline` for each message, and the beginning of the answer's.

use serde::Deserialize;

/// A token that is no text.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    /// What stands for it in a prompt: a byte that no UTF-8 has, so that nobody's text is taken for a mark.
    pub byte: u8,
    /// How a tokenizer writes it.
    pub written: &'static str,
}

/// Before a message.
pub const START: Mark = Mark {
    byte: 0xfe,
    written: "<|im_start|>",
};
/// Behind one.
pub const END: Mark = Mark {
    byte: 0xff,
    written: "<|im_end|>",
};

/// A message of a chat. Calls of tools, names and the like are no part of the prompt here.
#[derive(Debug, Deserialize)]
pub struct Message {
    role: String,
    content: Option<Content>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// Only of text, between which vLLM puts newlines: there is no model of images.
#[derive(Debug, Deserialize)]
struct Part {
    text: String,
}

/// The prompt, up to where the answer begins.
#[must_use]
pub fn prompt(messages: &[Message]) -> Vec<u8> {
    let mut text = Vec::new();
    for Message { role, content } in messages {
        begin(&mut text, role);
        match content {
            None => {}
            Some(Content::Text(content)) => text.extend(content.as_bytes()),
            Some(Content::Parts(parts)) => {
                let parts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
                text.extend(parts.join("\n").as_bytes());
            }
        }
        text.extend([END.byte, b'\n']);
    }
    begin(&mut text, "assistant");
    text
}

fn begin(text: &mut Vec<u8>, role: &str) {
    text.push(START.byte);
    text.extend(role.as_bytes());
    text.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_that_goes_on_begins_as_it_did() {
        let talk = r#"[{"role":"system","content":"a"},
            {"role":"user","content":[{"type":"text","text":"b"},{"type":"text","text":"c"}]},
            {"role":"assistant","content":null,"tool_calls":[]}]"#;
        let talk: Vec<Message> = serde_json::from_str(talk).unwrap();
        let all = b"\xfesystem\na\xff\n\xfeuser\nb\nc\xff\n\xfeassistant\n\xff\n\xfeassistant\n";
        assert_eq!(prompt(&talk), all);
        assert_eq!(prompt(&talk[..2]), all[..all.len() - 13]);
    }
}
