// SPDX-License-Identifier: Apache-2.0
//! How engines of language models are listened to.

use std::sync::Arc;

use weir_kv_events::template::Template;
use weir_kv_events::text::{Names, NoMark};
use weir_kv_events::tree::Naming;
use weir_kv_events::vocabulary::Vocabulary;
use weir_policy::Salt;

/// Where engines publish what is in their prefix caches, and how that is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvEvents {
    /// Of the host, where it publishes.
    pub port: u16,
    /// Of the host, where it is asked for what was missed; absent: it is not.
    pub replay_port: Option<u16>,
    /// Of the host that these ports are of: those of others are as far off as their own; absent: they are of all.
    pub base_port: Option<u16>,
    /// What topics begin with.
    pub topic: String,
    /// The model as requests name it.
    pub model: String,
    /// The text of its tokens; absent: the engine's own hash is the name of a block.
    pub vocabulary: Option<Arc<Vocabulary>>,
    /// How chats are told from prompts.
    pub template: Template,
    /// Of a block of text, as the filter's `key.prompt` has it.
    pub block_bytes: usize,
    /// Of one host.
    pub max_blocks: usize,
    /// Of one message.
    pub max_bytes: usize,
    /// The cluster's.
    pub salt: Option<Salt>,
}

impl KvEvents {
    /// Of the host that has this port itself.
    pub fn of_host_at(&self, port: u16) -> Self {
        let offset = self
            .base_port
            .map_or(0, |base| i32::from(port) - i32::from(base));
        // Nobody answers at the last one either, and whoever asks there is told so.
        let moved = |port: u16| {
            let moved = (i32::from(port) + offset).max(1);
            u16::try_from(moved).unwrap_or(u16::MAX)
        };
        Self {
            port: moved(self.port),
            replay_port: self.replay_port.map(moved),
            ..self.clone()
        }
    }

    /// How blocks are named.
    ///
    /// # Errors
    /// The template is of another tokenizer.
    pub fn naming(&self) -> Result<Naming, NoMark> {
        let salt = self.salt.clone();
        let Some(vocabulary) = self.vocabulary.clone() else {
            return Ok(Naming::Hash(salt));
        };
        let names = Names::new(
            vocabulary,
            self.template,
            &self.model,
            self.block_bytes,
            salt,
        )?;
        Ok(Naming::Text(Box::new(names)))
    }
}
