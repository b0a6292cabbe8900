// SPDX-License-Identifier: Apache-2.0
//! The figures of a host from its Prometheus page.

mod text;
mod window;

use std::time::Duration;

use tokio::time::Instant;

use super::{Fault, PollError, Target, Ticker};
use crate::config::Scrape;
use crate::state::Update;

pub use text::{Page, read};
pub use window::Window;

/// What is known of a host's load. A figure that the host does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Jobs running or queued.
    pub in_progress: Option<u32>,
    /// Jobs queued by business class.
    pub queued: Option<Vec<u32>>,
    /// Mean wait in the queue over the last window.
    pub queuing_delay: Option<Duration>,
    /// Cores in use.
    pub busy_cores: Option<u32>,
    /// Core time that its jobs are expected to need still, in microseconds, by business class.
    pub work: Option<Vec<u64>>,
}

/// A page that could be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scraped {
    /// What it says.
    pub figures: Figures,
    /// Jobs that left its queue since the page before, as it counts them, and the time between the pages.
    pub left_queue: Option<(f64, Duration)>,
    /// The host wants no new requests.
    pub draining: bool,
    /// What it should say and does not.
    pub complaints: Vec<String>,
}

/// Polls until dropped.
pub async fn run(target: Target, at: String, scrape: Scrape) {
    let mut ticker = Ticker::new(scrape.poll.interval);
    let mut window = Window::default();
    loop {
        ticker.tick().await;
        let asked = Instant::now();
        let result = target
            .fetch(&at, &scrape.poll.path, &scrape.poll)
            .await
            .and_then(|body| {
                let page = std::str::from_utf8(&body).map_err(|error| {
                    PollError::new(
                        Fault::BadBody,
                        format!("not UTF-8 from byte {}", error.valid_up_to()),
                    )
                })?;
                Ok(scraped(read(page, &scrape), &mut window, asked))
            });
        let (cluster, host) = (target.cluster.clone(), target.host.clone());
        if target
            .updates
            .send(Update::Scraped {
                cluster,
                host,
                asked,
                result,
            })
            .await
            .is_err()
        {
            return;
        }
    }
}

/// What a page and those before it say.
pub fn scraped(page: Page, window: &mut Window, now: Instant) -> Scraped {
    let idle = match (&page.queued, page.in_progress) {
        (Some(queued), _) => Some(queued.iter().all(|jobs| *jobs == 0)),
        (None, Some(0)) => Some(true),
        (None, _) => None,
    };
    let queuing_delay = window.step(page.delay, idle, now);
    let Page {
        in_progress,
        queued,
        busy_cores,
        work,
        draining,
        complaints,
        ..
    } = page;
    Scraped {
        figures: Figures {
            in_progress,
            queued,
            queuing_delay,
            busy_cores,
            work,
        },
        left_queue: window.left(),
        draining,
        complaints,
    }
}
