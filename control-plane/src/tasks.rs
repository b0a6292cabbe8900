// SPDX-License-Identifier: Apache-2.0
//! The tasks without which the process is of no use.

use std::collections::BTreeMap;

use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

/// Tasks that last as long as the process: the end of one is the end of all, or it would go on with news that
/// stands still. They end when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    set: JoinSet<()>,
    names: BTreeMap<Id, &'static str>,
}

impl Tasks {
    /// Starts one.
    pub(crate) fn start(
        &mut self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let handle = self.set.spawn(task);
        self.names.insert(handle.id(), name);
    }

    /// Waits for `shutdown`. The error names a task that has ended before.
    pub(crate) async fn last(mut self, shutdown: &CancellationToken) -> anyhow::Result<()> {
        let ended = tokio::select! {
            // In this order: at the end they end.
            biased;
            () = shutdown.cancelled() => return Ok(()),
            ended = self.set.join_next_with_id() => ended,
        };
        let (id, why) = match ended {
            None => anyhow::bail!("no task was started"),
            Some(Ok((id, ()))) => (id, "it has ended by itself".to_owned()),
            Some(Err(error)) => (error.id(), error.to_string()),
        };
        let name = self.names.get(&id).copied().unwrap_or_default();
        anyhow::bail!("task {name}: {why}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn end_of(task: impl Future<Output = ()> + Send + 'static) -> String {
        let mut tasks = Tasks::default();
        tasks.start("lasting", std::future::pending());
        tasks.start("other", task);
        let ended = tasks.last(&CancellationToken::new()).await;
        ended.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn the_end_of_any_task_is_an_error_that_names_it() {
        assert_eq!(end_of(async {}).await, "task other: it has ended by itself");
        let panicked = end_of(async { panic!("as it should") }).await;
        assert!(
            panicked.starts_with("task other: ") && panicked.contains("as it should"),
            "{panicked}"
        );
    }

    #[tokio::test]
    async fn at_the_end_of_the_process_tasks_may_end() {
        let mut tasks = Tasks::default();
        tasks.start("a", async {});
        let shutdown = CancellationToken::new();
        shutdown.cancel();
        assert!(tasks.last(&shutdown).await.is_ok());
    }
}
