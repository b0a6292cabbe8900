// SPDX-License-Identifier: Apache-2.0
//! A host's figures on its page: gauges and the totals of histograms. Strict about the lines of the named metrics;
//! other lines are not looked at.

use weir_exposition::{Line, lines};

use super::window::Totals;
use crate::config::Scrape;

/// Number of business classes.
const CLASSES: usize = weir_policy::CLASSES as usize;

/// What a page says of the named metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Jobs running or queued: the sum where the metric has several label sets.
    pub in_progress: Option<u32>,
    /// Jobs queued by business class; without the label they count as the most important.
    pub queued: Option<Vec<u32>>,
    /// Cores in use.
    pub busy_cores: Option<u32>,
    /// Core time that jobs are expected to need still, in microseconds, by business class.
    pub work: Option<Vec<u64>>,
    /// Of the queuing delay.
    pub delay: Option<Totals>,
    /// The host wants no new requests. A host without such a figure never says so.
    pub draining: bool,
    /// One sentence a figure that is missing or refused.
    pub complaints: Vec<String>,
}

/// By the label's value, where there is one.
type Samples = Vec<(Option<String>, f64)>;

/// Reads a page.
pub fn read(page: &str, names: &Scrape) -> Page {
    let sum = format!("{}_sum", names.queuing_delay);
    let count = format!("{}_count", names.queuing_delay);
    let mut in_progress = Gathered::of(&names.in_progress);
    let mut queued = Gathered::of(&names.queued);
    let mut busy_cores = Gathered::of(&names.busy_cores);
    let mut work = Gathered::of(&names.work);
    let (mut seconds, mut jobs) = (Gathered::of(&sum), Gathered::of(&count));
    let mut draining = Gathered::of(&names.draining);
    for line in lines(page) {
        for metric in [
            &mut in_progress,
            &mut queued,
            &mut busy_cores,
            &mut work,
            &mut seconds,
            &mut jobs,
            &mut draining,
        ] {
            if metric.name == line.name {
                metric.take(&line, &names.queued_priority_label);
            }
        }
    }
    let mut complaints = Vec::new();
    let mut figure = |result: Result<Samples, String>| match result {
        Ok(samples) => Some(samples),
        Err(complaint) => {
            complaints.push(complaint);
            None
        }
    };
    let total = |samples: Samples| samples.iter().map(|(_, value)| value).sum::<f64>();
    let in_progress = figure(in_progress.samples()).map(|samples| total(samples) as u32);
    let queued = figure(queued.samples());
    let queued = queued.map(|samples| by_class(&names.queued, samples));
    let queued = queued.and_then(|classes| {
        let classes = classes.map_err(|complaint| figure(Err(complaint))).ok()?;
        Some(classes.into_iter().map(|jobs| jobs as u32).collect())
    });
    // Few hosts tell these, and nobody misses them; but what is told is to be read.
    let busy_cores = busy_cores.told().and_then(&mut figure);
    let work = work.told().and_then(&mut figure);
    let work = work.and_then(|samples| {
        let classes = by_class(&names.work, samples);
        classes.map_err(|complaint| figure(Err(complaint))).ok()
    });
    let micros = |seconds: f64| (seconds * 1e6) as u64;
    let seconds = figure(seconds.samples()).map(total);
    let delay = seconds.zip(figure(jobs.samples()).map(total));
    let draining = draining.told().and_then(&mut figure);
    Page {
        in_progress,
        queued,
        busy_cores: busy_cores.map(|samples| total(samples) as u32),
        work: work.map(|work| work.into_iter().map(micros).collect()),
        delay: delay.map(|(seconds, jobs)| Totals { seconds, jobs }),
        draining: draining.is_some_and(|samples| total(samples) > 0.0),
        complaints,
    }
}

fn by_class(name: &str, samples: Samples) -> Result<Vec<f64>, String> {
    let mut sums = Vec::new();
    for (label, value) in samples {
        let class = match &label {
            None => 0,
            Some(label) => label
                .parse::<usize>()
                .ok()
                .filter(|class| *class < CLASSES)
                .ok_or_else(|| {
                    format!(
                        "{name}: priority {:?} is not in 0 to {}",
                        cut(label),
                        CLASSES - 1
                    )
                })?,
        };
        if sums.len() <= class {
            sums.resize(class + 1, 0.0);
        }
        sums[class] += value;
    }
    Ok(sums)
}

/// The samples of one metric.
struct Gathered<'a> {
    name: &'a str,
    samples: Result<Samples, String>,
}

impl<'a> Gathered<'a> {
    fn of(name: &'a str) -> Self {
        Self {
            name,
            samples: Ok(Vec::new()),
        }
    }

    /// Adds a line of the metric.
    fn take(&mut self, line: &Line<'_>, label: &str) {
        let Ok(samples) = &mut self.samples else {
            return;
        };
        match sample(line, label) {
            Ok(sample) => samples.push(sample),
            Err(reason) => self.samples = Err(format!("{}: {reason}", self.name)),
        }
    }

    /// Nothing where the page does not have the metric.
    fn told(self) -> Option<Result<Samples, String>> {
        let absent = self.samples.as_ref().is_ok_and(Vec::is_empty);
        (!absent).then_some(self.samples)
    }

    fn samples(self) -> Result<Samples, String> {
        match self.samples {
            Ok(samples) if samples.is_empty() => Err(format!("{}: not on the page", self.name)),
            samples => samples,
        }
    }
}

/// The label's value, if there, and the sample's.
fn sample(line: &Line<'_>, label: &str) -> Result<(Option<String>, f64), String> {
    let (series, value) = line.read().map_err(|fault| fault.to_string())?;
    // Also refuses what no host can mean: 2^53 jobs.
    if !(0.0..9_007_199_254_740_992.0).contains(&value) {
        return Err(format!("{value} is not a count"));
    }
    Ok((series.label(label).map(str::to_owned), value))
}

fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests;
