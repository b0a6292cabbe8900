// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;

/// Shared data as Envoy keeps it, but that each key counts its own writes.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct SharedData(BTreeMap<String, (Vec<u8>, u32)>);

impl SharedData {
    pub(crate) fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        self.0.get(key).cloned()
    }

    /// Says whether it wrote. The first write of a key does, whatever its `cas`.
    pub(crate) fn set(&mut self, key: &str, value: &[u8], cas: Option<u32>) -> bool {
        let written = self.0.get(key).map(|(_, written)| *written);
        if let (Some(written), Some(cas)) = (written, cas)
            && cas != written
        {
            return false;
        }
        let written = written.unwrap_or(0) + 1;
        self.0.insert(key.into(), (value.to_vec(), written));
        true
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }
}
