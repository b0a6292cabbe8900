// SPDX-License-Identifier: Apache-2.0
//! The log, for tests of it.

use std::fs::File;
use std::io::Read;

use tracing::Dispatch;
use tracing::subscriber::{NoSubscriber, with_default};

/// The log of a test.
pub(crate) struct Log(File);

impl Log {
    /// Calls `test` with its log, without times.
    pub(crate) fn of(test: impl FnOnce(&Self)) {
        // While there is one subscriber alone, a place in the code that another thread comes by first is taken to be
        // without any, on all threads.
        let _second = Dispatch::new(NoSubscriber::new());
        let file = tempfile::NamedTempFile::new().unwrap();
        let log = Self(file.reopen().unwrap());
        let subscriber = tracing_subscriber::fmt()
            .with_writer(file.into_file())
            .with_ansi(false)
            .with_target(false)
            .without_time()
            .finish();
        with_default(subscriber, || test(&log));
    }

    /// The lines since the last call.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut text = String::new();
        (&self.0).read_to_string(&mut text).unwrap();
        text.lines().map(|line| line.trim().to_owned()).collect()
    }
}
