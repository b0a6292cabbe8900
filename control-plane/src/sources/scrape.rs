// SPDX-License-Identifier: Apache-2.0
//! The figures of a host from its Prometheus page.

mod text;
mod window;

use super::{Target, Ticker, Way};
use crate::config::Scrape;
use std::time::Instant;

use weir_fleet::Update;
use weir_fleet::figures::{Figures, Scraped};
use weir_fleet::poll::{Fault, PollError};

pub use text::{Page, read};
pub use window::Window;

/// Polls until dropped.
pub async fn run(target: Target, at: String, scrape: Scrape) {
    let mut ticker = Ticker::new(scrape.poll.interval);
    let mut window = Window::default();
    loop {
        ticker.tick().await;
        let asked = tokio::time::Instant::now().into_std();
        let page = page(&target.way, &at, &scrape).await;
        let result = page.map(|page| scraped(page, &mut window, asked));
        let (cluster, host) = (target.cluster.clone(), target.host.clone());
        let update = Update::Scraped {
            cluster,
            host,
            asked,
            result,
        };
        if target.updates.send(update.into()).await.is_err() {
            return;
        }
    }
}

/// The page of one host, as it is now.
pub(super) async fn page(way: &Way, at: &str, scrape: &Scrape) -> Result<Page, PollError> {
    let body = way.fetch(at, &scrape.poll.path, &scrape.poll).await?;
    let text = std::str::from_utf8(&body).map_err(|error| {
        let detail = format!("not UTF-8 from byte {}", error.valid_up_to());
        PollError::new(Fault::BadBody, detail)
    })?;
    Ok(read(text, scrape))
}

/// What a page and those before it say.
pub fn scraped(page: Page, window: &mut Window, now: Instant) -> Scraped {
    let idle = match (&page.queued, page.in_progress) {
        (Some(queued), _) => Some(queued.iter().all(|jobs| *jobs == 0)),
        (None, Some(0)) => Some(true),
        (None, _) => None,
    };
    let queuing_delay = window.step(page.delay, idle, now);
    let read = window.read(page.reading);
    let wrote = window.wrote(page.writing);
    let Page {
        in_progress,
        queued,
        busy_cores,
        work,
        millicores,
        draining,
        complaints,
        delay_is_late,
        ..
    } = page;
    Scraped {
        figures: Figures {
            in_progress,
            queued,
            queuing_delay,
            delay_is_late,
            busy_cores,
            work,
        },
        left_queue: window.left(),
        read,
        wrote,
        millicores,
        draining: draining.unwrap_or(false),
        complaints,
    }
}
