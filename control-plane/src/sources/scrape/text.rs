// SPDX-License-Identifier: Apache-2.0
//! A host's figures on its page: gauges and the totals of histograms. Strict about the lines of the named metrics;
//! other lines are not looked at.

use std::borrow::Cow;

use weir_exposition::{Line, Series, lines};

use super::window::Totals;
use crate::config::Scrape;

/// Number of business classes.
const CLASSES: usize = weir_policy::CLASSES as usize;
/// No machine has more.
const MOST_CORES: f64 = 4096.0;
/// No count is as large: 2^53.
const MOST: f64 = 9_007_199_254_740_992.0;

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
    /// It is that of jobs whose answers are done.
    pub delay_is_late: bool,
    /// Of the time in which prompts are read.
    pub reading: Option<Totals>,
    /// Of the time in which answers are written.
    pub writing: Option<Totals>,
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
    let delay = gathered.delay.map(|metric| {
        let samples = metric.and_then(|metric| complaints.sort(metric.samples()));
        samples.map(total)
    });
    let [reading, writing] = [gathered.reading, gathered.writing].map(|sum_and_count| {
        sum_and_count.map(|metric| {
            let told = metric.told().and_then(|told| complaints.sort(told));
            told.map(total)
        })
    });
    let draining = gathered.draining.told();
    let draining = draining.and_then(|told| complaints.sort(told));
    Page {
        in_progress: in_progress.map(|jobs| jobs as u32),
        queued: queued.map(|queued| queued.into_iter().map(|jobs| jobs as u32).collect()),
        busy_cores: busy_cores.map(|samples| total(samples) as u32),
        work: work.map(|work| work.into_iter().map(micros).collect()),
        millicores,
        delay: totals(delay),
        delay_is_late: names.delay_is_late,
        reading: totals(reading),
        writing: totals(writing),
        draining: draining.map(|samples| total(samples) > 0.0),
        complaints: complaints.0,
    }
}

fn totals(sum_and_count: [Option<f64>; 2]) -> Option<Totals> {
    let [Some(seconds), Some(jobs)] = sum_and_count else {
        return None;
    };
    Some(Totals { seconds, jobs })
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
    /// Sum and count of the queuing delay.
    delay: [Option<Metric>; 2],
    /// Sum and count of the time in which prompts are read.
    reading: [Metric; 2],
    /// The same of answers that are written.
    writing: [Metric; 2],
    draining: Metric,
}

impl Gathered {
    fn of(page: &str, names: &Scrape) -> Self {
        let whole = |name: &String| Metric::named(name, "");
        let mut gathered = Self {
            in_progress: whole(&names.in_progress),
            queued: Metric {
                floors: names.floors_queued,
                ..whole(&names.queued)
            },
            busy_cores: whole(&names.busy_cores),
            work: whole(&names.work),
            cores: whole(&names.cores),
            delay: ["_sum", "_count"].map(|part| {
                let name = names.queuing_delay.as_ref();
                name.map(|name| Metric::named(name, part))
            }),
            reading: ["_sum", "_count"].map(|part| Metric::named(&names.reading, part)),
            writing: ["_sum", "_count"].map(|part| Metric::named(&names.writing, part)),
            draining: whole(&names.draining),
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

    fn metrics(&mut self) -> impl Iterator<Item = &mut Metric> {
        let always = [
            &mut self.in_progress,
            &mut self.queued,
            &mut self.busy_cores,
            &mut self.work,
            &mut self.cores,
            &mut self.draining,
        ];
        let prompts = self.reading.iter_mut().chain(&mut self.writing);
        let delay = self.delay.iter_mut().flatten();
        always.into_iter().chain(prompts).chain(delay)
    }
}

/// The samples of one metric that have its labels.
struct Metric {
    /// With the labels, for complaints.
    written: String,
    name: String,
    labels: Vec<(String, String)>,
    /// Fewer than none are none.
    floors: bool,
    samples: Result<Samples, String>,
}

impl Metric {
    /// Of a name, perhaps with labels. `part` goes behind the name.
    fn named(written: &str, part: &str) -> Self {
        let (name, labels) = match Series::parse(written) {
            Ok(series) => (series.name, series.labels),
            Err(_) => (written, Vec::new()),
        };
        let rest = written.strip_prefix(name).unwrap_or_default();
        let owned = |(label, value): (&str, Cow<'_, str>)| (label.to_owned(), value.into_owned());
        Self {
            written: format!("{name}{part}{rest}"),
            name: format!("{name}{part}"),
            labels: labels.into_iter().map(owned).collect(),
            floors: false,
            samples: Ok(Vec::new()),
        }
    }

    /// Adds a line of the metric.
    fn take(&mut self, line: &Line<'_>, label: &str) {
        match (self.sample(line, label), &mut self.samples) {
            (Ok(sample), Ok(samples)) => samples.extend(sample),
            (Err(reason), samples) => *samples = Err(format!("{}: {reason}", self.written)),
            (Ok(_), Err(_)) => {}
        }
    }

    /// The label's value, if there, and the sample's; none where the sample has other labels.
    fn sample(
        &self,
        line: &Line<'_>,
        label: &str,
    ) -> Result<Option<(Option<String>, f64)>, String> {
        let (series, value) = line.read().map_err(|fault| fault.to_string())?;
        let mut labels = self.labels.iter();
        if !labels.all(|(label, value)| series.label(label) == Some(value)) {
            return Ok(None);
        }
        let value = match self.floors && (-MOST..0.0).contains(&value) {
            true => 0.0,
            false => value,
        };
        if !(0.0..MOST).contains(&value) {
            return Err(format!("{value} is not a count"));
        }
        Ok(Some((series.label(label).map(str::to_owned), value)))
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
            return Err(format!("{}: not on the page", self.written));
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

fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests;
