// SPDX-License-Identifier: Apache-2.0
//! Waits that end: with what was waited for, or with a failure that says what that was and what was there instead.

use std::fmt::Display;
use std::future::Future;
use std::thread;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};
use tonic::{Status, Streaming};

/// What has not come by then never will: it makes a defect a failure instead of a hang, and is far more than the
/// busiest machine takes.
const LIMIT: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(10);

/// What a look finds, in the end. Until then it says what is there instead.
pub(crate) async fn until<T, S: Display>(
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T, S>,
) -> T {
    let mut last = None;
    let found = async {
        loop {
            match look().await {
                Ok(found) => return found,
                Err(seen) => last = Some(seen),
            }
            sleep(PAUSE).await;
        }
    };
    match timeout(LIMIT, found).await {
        Ok(found) => found,
        Err(_) => panic!("waited in vain for {what}{}", instead(last)),
    }
}

/// The same where nothing else is to go on meanwhile.
pub(crate) fn until_there<T, S: Display>(what: &str, mut look: impl FnMut() -> Result<T, S>) -> T {
    let began = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if began.elapsed() > LIMIT => {
                panic!("waited in vain for {what}{}", instead(Some(seen)))
            }
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// What comes by itself.
pub(crate) async fn within<T>(what: &str, comes: impl Future<Output = T>) -> T {
    let came = timeout(LIMIT, comes).await;
    came.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

fn instead(seen: Option<impl Display>) -> String {
    seen.map_or_else(String::new, |seen| format!("; there is {seen:#}"))
}

/// The status that a stream ends with, after all its messages.
pub(crate) async fn end<M>(stream: &mut Streaming<M>) -> Status {
    let ends = async {
        loop {
            match stream.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("ended without a status"),
                Err(status) => return status,
            }
        }
    };
    within("the end of a stream", ends).await
}
