// SPDX-License-Identifier: Apache-2.0
//! A workload that is sent while its hosts are looked at.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use weir_stage::busy::Busy;
use weir_stage::processes::Processes;

use crate::driver;
use crate::replay::{Replay, Replayed};
use crate::sampler::{self, Sample, Sampler, Sights};

/// What came of it, and what was seen meanwhile.
pub(crate) struct Watched {
    pub(crate) replayed: Replayed,
    /// Share of the machine's cores' time, in 0..=1.
    pub(crate) busy: Option<f64>,
    pub(crate) samples: Vec<Sample>,
}

impl Replay<'_> {
    /// As [`Self::send`], of requests that come for so long. The folder gets [`sampler::FILE`], too; `tell` is told what
    /// happens.
    pub(crate) fn send_watched(
        &self,
        processes: &mut Processes,
        folder: &Path,
        sights: Sights,
        lasts: Duration,
        mut tell: impl FnMut(&str),
    ) -> Result<Watched> {
        let sending = |sent: Duration| match lasts.checked_sub(sent) {
            Some(_) => format!("sending, {} of {} s", sent.as_secs(), lasts.as_secs()),
            None => "waiting for the last answers".to_owned(),
        };
        let (busy, sampler) = (Busy::start(), Sampler::start(sights));
        let replayed = self.send(processes, "replay", folder, |sent| tell(&sending(sent)))?;
        let (busy, samples) = (busy.share(), sampler.end()?);
        driver::write_lines(&folder.join(sampler::FILE), &samples)?;
        Ok(Watched {
            replayed,
            busy,
            samples,
        })
    }
}
