// SPDX-License-Identifier: Apache-2.0
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;

use super::Params;
use crate::Occupancy;

/// Clients that credits are counted of; others get one credit each. With so many everybody has one anyway: hosts that
/// hold more requests at a time than this are none of Weir's.
const MAX_CLIENTS: usize = 4096;
/// A client that has sent nothing for so long has no credits any more: twice as long as callers by default believe in
/// theirs.
const SILENT_FOR: Duration = Duration::from_secs(10);
/// A round, the paper's RTT, is as long as a request runs, within these: credits that change oftener than requests end
/// reach nobody, and a round of seconds would let a surge grow for seconds.
const ROUND: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(100));

/// The credits of one host.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    /// Credits that there are to be.
    total: f64,
    /// Credits that clients have.
    issued: u64,
    clients: BTreeMap<u64, Client>,
    /// When the round began.
    since: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Client {
    credits: u32,
    heard: Duration,
}

impl Pool {
    /// Moves the pool by the delay that one more request would have, once a round (section 4.1 of the paper). It is as
    /// large as the host has cores at least.
    pub fn renew(
        &mut self,
        params: &Params,
        host: &Occupancy,
        (in_flight, cores): (u64, u32),
        now: Duration,
    ) {
        let least = f64::from(cores);
        self.total = self.total.max(least);
        let (Some(run), Some(delay)) = (host.run(), host.wait(in_flight, cores)) else {
            return;
        };
        if now.saturating_sub(self.since) < run.clamp(ROUND.0, ROUND.1) {
            return;
        }
        self.since = now;
        self.forget_silent(now);
        let over = delay.as_secs_f64() / params.target.as_secs_f64().max(1e-9) - 1.0;
        let moved = match over < 0.0 {
            true => self.total + (params.alpha * self.clients.len() as f64).max(1.0),
            false => self.total * (1.0 - params.beta * over).max(0.5),
        };
        // More than are there when it refuses could not be used.
        let waiting = params.longest().as_secs_f64() / run.as_secs_f64().max(1e-9);
        let most = least * (1.0 + waiting);
        self.total = moved.clamp(least, most.max(least));
    }

    /// The new credits of a client that wants to have so many requests at the host: in proportion to demand, with what
    /// nobody has asked for on top (section 4.2), and no fewer than its share of the pool if it wants that many. One at
    /// least.
    pub fn grant(&mut self, client: u64, demand: u32, now: Duration) -> u32 {
        let known = self.clients.get(&client).map(|client| client.credits);
        if known.is_none() && self.clients.len() >= MAX_CLIENTS {
            return 1;
        }
        let had = u64::from(known.unwrap_or(0));
        let clients = (self.clients.len() + usize::from(known.is_none())).max(1) as u64;
        let total = self.total as u64;
        let available = total.saturating_sub(self.issued);
        let wanted = u64::from(demand).saturating_add((available / clients).max(1));
        let most = match self.issued.cmp(&total) {
            Ordering::Less => had.saturating_add(available),
            Ordering::Equal => had,
            Ordering::Greater => had.saturating_sub(1),
        };
        let credits = wanted.min(most.max(total / clients)).max(1);
        let credits = u32::try_from(credits).unwrap_or(u32::MAX);
        self.issued = self.issued.saturating_sub(had) + u64::from(credits);
        let heard = now;
        self.clients.insert(client, Client { credits, heard });
        credits
    }

    /// Credits that clients have.
    pub fn issued(&self) -> u64 {
        self.issued
    }

    /// Credits that there are to be.
    pub fn total(&self) -> u64 {
        self.total as u64
    }

    fn forget_silent(&mut self, now: Duration) {
        let issued = &mut self.issued;
        self.clients.retain(|_, client| {
            let is_heard = now.saturating_sub(client.heard) < SILENT_FOR;
            if !is_heard {
                *issued = issued.saturating_sub(client.credits.into());
            }
            is_heard
        });
    }
}

#[cfg(test)]
mod tests;
