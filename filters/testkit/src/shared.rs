// SPDX-License-Identifier: Apache-2.0
//! What VMs share: key-value data with compare-and-set, and queues.

use std::collections::{BTreeMap, VecDeque};

use crate::abi::Status;

/// Shared data: by VM id, then by key. Nothing is ever deleted, as in Envoy's ABI 0.2.1.
#[derive(Debug, Default)]
pub(crate) struct SharedData {
    values: BTreeMap<(String, Vec<u8>), (Vec<u8>, u32)>,
    last_cas: u32,
}

impl SharedData {
    pub(crate) fn get(&self, vm_id: &str, key: &[u8]) -> Result<(Vec<u8>, u32), Status> {
        self.values
            .get(&(vm_id.to_owned(), key.to_vec()))
            .cloned()
            .ok_or(Status::NotFound)
    }

    /// A `cas` of 0 is unconditional, and so is the first write of a key whatever its `cas`.
    pub(crate) fn set(
        &mut self,
        vm_id: &str,
        key: &[u8],
        value: Vec<u8>,
        cas: u32,
    ) -> Result<(), Status> {
        let slot = (vm_id.to_owned(), key.to_vec());
        if let Some((_, current)) = self.values.get(&slot)
            && cas != 0
            && cas != *current
        {
            return Err(Status::CasMismatch);
        }
        self.last_cas += 1;
        self.values.insert(slot, (value, self.last_cas));
        Ok(())
    }

    pub(crate) fn keys(&self, vm_id: &str) -> Vec<Vec<u8>> {
        self.values
            .keys()
            .filter(|(id, _)| id == vm_id)
            .map(|(_, key)| key.clone())
            .collect()
    }
}

/// Shared queues: any VM may add to one, the last that registered it is told.
#[derive(Debug, Default)]
pub(crate) struct SharedQueues {
    tokens: BTreeMap<(String, String), u32>,
    queues: BTreeMap<u32, Queue>,
}

#[derive(Debug)]
struct Queue {
    items: VecDeque<Vec<u8>>,
    vm: u64,
    root: u32,
    /// Items added that the VM has not been told of.
    untold: usize,
}

impl SharedQueues {
    pub(crate) fn register(&mut self, vm_id: &str, name: &str, vm: u64, root: u32) -> u32 {
        let next = self.tokens.len() as u32 + 1;
        let token = *self
            .tokens
            .entry((vm_id.to_owned(), name.to_owned()))
            .or_insert(next);
        let queue = self.queues.entry(token).or_insert(Queue {
            items: VecDeque::new(),
            vm,
            root,
            untold: 0,
        });
        (queue.vm, queue.root) = (vm, root);
        token
    }

    pub(crate) fn resolve(&self, vm_id: &str, name: &str) -> Result<u32, Status> {
        self.tokens
            .get(&(vm_id.to_owned(), name.to_owned()))
            .copied()
            .ok_or(Status::NotFound)
    }

    pub(crate) fn enqueue(&mut self, token: u32, item: Vec<u8>) -> Result<(), Status> {
        let queue = self.queues.get_mut(&token).ok_or(Status::NotFound)?;
        queue.items.push_back(item);
        queue.untold += 1;
        Ok(())
    }

    pub(crate) fn dequeue(&mut self, token: u32) -> Result<Vec<u8>, Status> {
        let queue = self.queues.get_mut(&token).ok_or(Status::NotFound)?;
        queue.items.pop_front().ok_or(Status::Empty)
    }

    /// One notification that is due to this VM: the root context and the queue.
    pub(crate) fn take_untold(&mut self, vm: u64) -> Option<(u32, u32)> {
        let (token, queue) = self
            .queues
            .iter_mut()
            .find(|(_, queue)| queue.vm == vm && queue.untold > 0)?;
        queue.untold -= 1;
        Some((queue.root, *token))
    }
}
