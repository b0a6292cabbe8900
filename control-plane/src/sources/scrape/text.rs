// SPDX-License-Identifier: Apache-2.0
//! A host's figures on its page: gauges and the totals of histograms. Strict about the lines of the named metrics;
//! other lines are not looked at.

use weir_exposition::{Line, lines};

use super::window::Totals;
use crate::config::Scrape;

/// Number of business classes.
const CLASSES: usize = weir_policy::CLASSES as usize;
/// No machine has more.
const MOST_CORES: f64 = 4096.0;

/// The figures of the named metrics on a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Jobs running or queued: the sum where metrics have several label sets.
    pub in_progress: Option<u32>,
    /// Jobs queued by business class; without the label they count as the most important.
    pub queued: Option<Vec<u32>>,
    /// Cores in use.
    pub busy_cores: Option<u32>,
    /// Core time that jobs are expected to need still, in microseconds, by business class.
    pub work: Option<Vec<u64>>,
    /// Thousandths of a core that the host has.
    pub millicores: Option<u32>,
    /// Of the queuing delay.
    pub delay: Option<Totals>,
    /// Of the time in which prompts are read.
    pub reading: Option<Totals>,
    /// Whether the host wants no new requests. A host without such a figure never says so.
    pub draining: Option<bool>,
    /// One sentence a figure that is missing or refused.
    pub complaints: Vec<String>,
}

/// By the label's value, where there is one.
type Samples = Vec<(Option<String>, f64)>;

/// Reads a page.
pub fn read(page: &str, names: &Scrape) -> Page {
    let gathered = Gathered::of(page, names);
    let mut complaints = Complaints::default();
    let total = |samples: Samples| samples.iter().map(|(_, value)| value).sum::<f64>();
    let micros = |seconds: f64| (seconds * 1e6) as u64;
    let in_progress = complaints.sort(gathered.in_progress.samples());
    let queued = gathered.queued.samples();
    let queued = queued.and_then(|samples| by_class(&names.queued, samples));
    let queued = complaints.sort(queued);
    let in_progress = in_progress
        .map(total)
        .and_then(|jobs| match names.adds_queued {
            true => Some(jobs + queued.as_ref()?.iter().sum::<f64>()),
            false => Some(jobs),
        });
    // Few hosts tell these, and nobody misses them; but what is told is to be read.
    let busy_cores = gathered.busy_cores.told();
    let busy_cores = busy_cores.and_then(|told| complaints.sort(told));
    let work = gathered.work.told();
    let work = work.map(|told| told.and_then(|samples| by_class(&names.work, samples)));
    let work = work.and_then(|told| complaints.sort(told));
    let cores = gathered.cores.told();
    let cores = cores.map(|told| told.and_then(|samples| millicores(&names.cores, total(samples))));
    let millicores = cores.and_then(|told| complaints.sort(told));
    let seconds = complaints.sort(gathered.seconds.samples()).map(total);
    let jobs = complaints.sort(gathered.jobs.samples()).map(total);
    let reading = [gathered.reading, gathered.prompts].map(|metric| {
        let told = metric.told().and_then(|told| complaints.sort(told));
        told.map(total)
    });
    let draining = gathered.draining.told();
    let draining = draining.and_then(|told| complaints.sort(told));
    Page {
        in_progress: in_progress.map(|jobs| jobs as u32),
        queued: queued.map(|queued| queued.into_iter().map(|jobs| jobs as u32).collect()),
        busy_cores: busy_cores.map(|samples| total(samples) as u32),
        work: work.map(|work| work.into_iter().map(micros).collect()),
        millicores,
        delay: seconds
            .zip(jobs)
            .map(|(seconds, jobs)| Totals { seconds, jobs }),
        reading: match reading {
            [Some(seconds), Some(jobs)] => Some(Totals { seconds, jobs }),
            _ => None,
        },
        draining: draining.map(|samples| total(samples) > 0.0),
        complaints: complaints.0,
    }
}

/// One sentence a figure that is missing or refused.
#[derive(Default)]
struct Complaints(Vec<String>);

impl Complaints {
    /// The figure, or a complaint of it.
    fn sort<T>(&mut self, figure: Result<T, String>) -> Option<T> {
        figure.map_err(|complaint| self.0.push(complaint)).ok()
    }
}

fn millicores(name: &str, cores: f64) -> Result<u32, String> {
    match (cores * 1000.0).round() {
        millicores if millicores >= 1.0 && cores <= MOST_CORES => Ok(millicores as u32),
        _ => Err(format!(
            "{name}: {cores} is not in 0.001 to {MOST_CORES} cores"
        )),
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

/// The samples of the named metrics.
struct Gathered {
    in_progress: Metric,
    queued: Metric,
    busy_cores: Metric,
    work: Metric,
    cores: Metric,
    /// Of the queuing delay, as `jobs`.
    seconds: Metric,
    jobs: Metric,
    /// Of the time in which prompts are read, as `prompts`.
    reading: Metric,
    prompts: Metric,
    draining: Metric,
}

impl Gathered {
    fn of(page: &str, names: &Scrape) -> Self {
        let mut gathered = Self {
            in_progress: Metric::named(&names.in_progress),
            queued: Metric::named(&names.queued),
            busy_cores: Metric::named(&names.busy_cores),
            work: Metric::named(&names.work),
            cores: Metric::named(&names.cores),
            seconds: Metric::named(&format!("{}_sum", names.queuing_delay)),
            jobs: Metric::named(&format!("{}_count", names.queuing_delay)),
            reading: Metric::named(&format!("{}_sum", names.reading)),
            prompts: Metric::named(&format!("{}_count", names.reading)),
            draining: Metric::named(&names.draining),
        };
        for line in lines(page) {
            for metric in gathered.metrics() {
                if metric.name == line.name {
                    metric.take(&line, &names.queued_priority_label);
                }
            }
        }
        gathered
    }

    fn metrics(&mut self) -> [&mut Metric; 10] {
        [
            &mut self.in_progress,
            &mut self.queued,
            &mut self.busy_cores,
            &mut self.work,
            &mut self.cores,
            &mut self.seconds,
            &mut self.jobs,
            &mut self.reading,
            &mut self.prompts,
            &mut self.draining,
        ]
    }
}

/// The samples of one metric.
struct Metric {
    name: String,
    samples: Result<Samples, String>,
}

impl Metric {
    fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
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

    /// Where rows have the label, and some have it empty, these are the sum of the others, and count alone: SGLang
    /// writes them so where it schedules by priority.
    fn samples(self) -> Result<Samples, String> {
        let mut samples = self.samples?;
        if samples.is_empty() {
            return Err(format!("{}: not on the page", self.name));
        }
        let is_sum = |(label, _): &(Option<String>, f64)| label.as_deref() == Some("");
        if samples.iter().any(is_sum) {
            samples.retain(is_sum);
            // As Prometheus has it, an empty label is none.
            samples.iter_mut().for_each(|(label, _)| *label = None);
        }
        Ok(samples)
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
