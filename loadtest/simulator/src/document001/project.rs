// SPDX-License-Identifier: Apache-2.0
//! A customer's project: data, channels and schedule.

use rand::RngExt;
use rand::rngs::SmallRng;

use super::Params;
use crate::draws::normal;

const DAY: f64 = 86_400.0;

#[derive(Debug)]
pub(super) struct Project {
    /// Against the median project's.
    pub(super) size: f64,
    pub(super) channels: u32,
    /// Seconds between runs.
    pub(super) every: f64,
    /// When in that time.
    pub(super) offset: f64,
    /// Of the data, and of what is known of it.
    pub(super) version: u32,
}

impl Project {
    fn draw(params: &Params, rng: &mut SmallRng) -> Self {
        let kind: f64 = rng.random();
        let [quarter, hour, four] = [
            params.quarter_share,
            params.hour_share,
            params.four_hours_share,
        ];
        let every = match kind {
            kind if kind < quarter => 900.0,
            kind if kind < quarter + hour => 3600.0,
            kind if kind < quarter + hour + four => 4.0 * 3600.0,
            _ => DAY,
        };
        let offset = rng.random::<f64>() * every;
        let piled = rng.random::<f64>() < params.piled_share;
        // Full hours are twice as popular as quarters.
        let step = if rng.random_ratio(2, 3) {
            3600.0
        } else {
            900.0
        };
        let tail: f64 = 1.0 - rng.random::<f64>();
        let channels = tail.powf(-1.0 / params.channel_tail);
        Self {
            size: (params.size_sigma * normal(rng)).exp(),
            channels: channels.min(params.channels_max) as u32,
            every,
            offset: match piled {
                true => (offset / step).floor() * step,
                false => offset,
            },
            version: 0,
        }
    }

    /// Scheduled requests of a day.
    fn requests(&self) -> f64 {
        DAY / self.every * f64::from(self.channels)
    }
}

/// Projects that together ask for so much a day.
pub(super) fn draw(params: &Params, requests: f64, rng: &mut SmallRng) -> Vec<Project> {
    let (mut projects, mut sum) = (Vec::new(), 0.0);
    while sum < requests {
        let project = Project::draw(params, rng);
        sum += project.requests();
        projects.push(project);
    }
    projects
}
