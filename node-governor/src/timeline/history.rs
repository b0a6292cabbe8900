// SPDX-License-Identifier: Apache-2.0
//! What the files say, put together line by line. Times are seconds since the first line.

mod job;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

pub(super) use job::{Job, Stretch};

use super::line::{self, Line};
use super::{FILE, OLD_FILE};
use crate::regular;
use crate::root::core_list;

/// No line of ours is longer.
const LONGEST: u64 = 1 << 20;

/// Everything.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Milliseconds since 1970 of the first line.
    pub begun: Option<u64>,
    /// Seconds to the last one.
    pub length: f64,
    /// Its cores, as the last governor has seen them.
    pub machine: String,
    /// In milliseconds, of the last governor.
    pub target: Option<f64>,
    /// How many the service had from then on; not a number where that is not known.
    pub cores: Vec<(f64, f64)>,
    /// Times that these changed, by why.
    pub moves: BTreeMap<String, u64>,
    /// Cores that the service used in the time before.
    pub cpu: Vec<(f64, f64)>,
    /// In milliseconds.
    pub tail: Vec<(f64, f64)>,
    /// In which the mesh refused or was about to.
    pub pressed: Vec<(f64, f64)>,
    /// In the order in which they were seen.
    pub jobs: Vec<Job>,
    /// Sets of cores that jobs had.
    pub sets: Vec<String>,
    /// Governors that have started.
    pub starts: u64,
    /// Lines that say nothing.
    pub bad: u64,
    /// What the service has now.
    service: Option<line::Service>,
    pressed_since: Option<f64>,
}

impl History {
    /// Of the files in this folder; an error where there is none.
    pub(super) fn read(folder: &Path) -> io::Result<History> {
        let mut history = History::default();
        let mut missing = 0;
        for name in [OLD_FILE, FILE] {
            match regular::open(File::options().read(true), &folder.join(name)) {
                Ok(file) => history.lines(BufReader::new(file))?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => missing += 1,
                Err(error) => return Err(error),
            }
        }
        if missing == 2 {
            let reason = format!("{}: there is no {FILE} yet", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, reason));
        }
        history.stop(history.length);
        Ok(history)
    }

    fn lines(&mut self, mut file: impl BufRead) -> io::Result<()> {
        let mut text = Vec::new();
        loop {
            text.clear();
            if file.by_ref().take(LONGEST).read_until(b'\n', &mut text)? == 0 {
                return Ok(());
            }
            // Without its end it is being written just now.
            let is_whole = text.ends_with(b"\n");
            if text.trim_ascii().is_empty() {
                continue;
            }
            let good = serde_json::from_slice(&text).is_ok_and(|line| self.line(line));
            self.bad += u64::from(!good && is_whole);
        }
    }

    /// Whether it could be meant.
    fn line(&mut self, line: Line) -> bool {
        let begun = *self.begun.get_or_insert(line.at);
        // A clock that was set back does not move what has been.
        let at = (line.at.saturating_sub(begun) as f64 / 1e3).max(self.length);
        if let Some(start) = line.start {
            self.start(start, at);
        }
        self.length = at;
        let mut good = true;
        if let Some(service) = line.service {
            good &= self.serve(service, at);
        }
        for (name, job) in line.jobs {
            let known = self.jobs.iter_mut().find(|job| job.name == name);
            good &= known.is_some_and(|known| known.turn(job, at, &mut self.sets));
        }
        if let Some(sample) = line.sample {
            self.cpu.extend(sample.cpu.map(|cpu| (at, cpu)));
            self.tail.extend(sample.tail_ms.map(|ms| (at, ms)));
        }
        if line.end {
            self.stop(at);
        }
        good
    }

    fn start(&mut self, start: line::Start, at: f64) {
        if !start.goes_on {
            self.starts += 1;
            // The one before was killed some time after its last line.
            self.stop(self.length);
            if at > self.length {
                let gap = (at, f64::NAN);
                self.cpu.extend((!self.cpu.is_empty()).then_some(gap));
                self.tail.extend((!self.tail.is_empty()).then_some(gap));
            }
        }
        (self.machine, self.target) = (start.cores, start.target_ms);
        for named in start.jobs {
            match self.jobs.iter_mut().find(|job| job.name == named.name) {
                Some(job) => job.threads = named.threads,
                None => self.jobs.push(Job::new(named)),
            }
        }
    }

    fn serve(&mut self, service: line::Service, at: f64) -> bool {
        let Some(cores) = core_list(&service.cores) else {
            return false;
        };
        let count = cores.len() as f64;
        match (&self.service, self.cores.last()) {
            (Some(before), _) if before.cores == service.cores => {}
            (Some(_), _) => {
                *self.moves.entry(service.why.clone()).or_default() += 1;
                self.cores.push((at, count));
            }
            (None, Some(_)) => self.cores.extend([(at, f64::NAN), (at, count)]),
            (None, None) => self.cores.push((at, count)),
        }
        match (self.pressed_since, service.pressed) {
            (None, true) => self.pressed_since = Some(at),
            (Some(_), false) => self.relieved(at),
            _ => {}
        }
        self.service = Some(service);
        true
    }

    /// From here on nothing is known until a governor starts.
    fn stop(&mut self, at: f64) {
        for job in &mut self.jobs {
            job.close(at);
        }
        self.relieved(at);
        if let (Some(_), Some((_, count))) = (self.service.take(), self.cores.last().copied()) {
            self.cores.push((at, count));
        }
    }

    fn relieved(&mut self, at: f64) {
        let since = self.pressed_since.take();
        self.pressed.extend(since.map(|since| (since, at)));
    }
}

#[cfg(test)]
mod tests;
