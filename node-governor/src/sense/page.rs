// SPDX-License-Identifier: Apache-2.0
//! The service's latency from a histogram on a page of metrics, as Prometheus and Envoy show it: from what the
//! buckets have gained in the last while.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use weir_exposition::{Series, lines};

use crate::config::{Page, Tail};
use crate::sensed::{self, Nanos};

/// Client libraries make a dozen, Envoy twenty.
const MOST_BOUNDS: usize = 512;

/// A histogram as it was shown of late.
#[derive(Debug)]
pub struct Histogram {
    page: Page,
    quantile: f64,
    history: History,
}

impl Histogram {
    /// Nothing was shown yet.
    pub fn new(page: Page, settings: &Tail) -> Self {
        Self {
            page,
            quantile: settings.quantile,
            history: History {
                window: settings.window,
                pages: VecDeque::new(),
            },
        }
    }

    /// From the page as it is now; none until two pages follow one another. A page that is silent or says nonsense is
    /// an error, and a fresh start. A tail above the last bound is an error, too: it may be late or not, and policies
    /// would learn from a made-up number.
    pub fn tail(&mut self, now: Nanos, page: Result<String>) -> Result<Option<sensed::Tail>> {
        let buckets = page.and_then(|text| {
            buckets(&text, &self.page.metric).context("no such histogram, or no numbers in it")
        });
        let (buckets, unknown) = match buckets {
            Ok(buckets) => (Some(buckets), None),
            Err(error) => (None, Some(error)),
        };
        let gain = self.history.add(now, buckets, self.quantile);
        if let Some(error) = unknown {
            return Err(error);
        }
        let (bound, requests) = match gain {
            None => return Ok(None),
            Some(Gain::Nothing) => (0.0, 0),
            Some(Gain::Requests(bound, requests)) => (bound, requests),
            Some(Gain::Above(bound)) => bail!("slower than the histogram's last bound, {bound}"),
        };
        Ok(Some(sensed::Tail {
            latency: Duration::try_from_secs_f64(bound * self.page.unit)?,
            requests,
            at: now,
        }))
    }
}

/// What came between two pages.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Gain {
    Nothing,
    /// The quantile, and how many there were.
    Requests(f64, u64),
    /// The quantile is above the last bound, 0 where there is none.
    Above(f64),
}

/// Upper bounds, ascending, each with the count of those no slower.
type Buckets = Vec<(f64, f64)>;

/// Pages of the last while.
#[derive(Debug)]
struct History {
    window: Duration,
    pages: VecDeque<(sensed::Nanos, Buckets)>,
}

impl History {
    /// What came since the oldest page; none where nothing is known, or the counters began again.
    fn add(&mut self, now: sensed::Nanos, buckets: Option<Buckets>, quantile: f64) -> Option<Gain> {
        let Some(buckets) = buckets else {
            self.pages.clear();
            return None;
        };
        let follows = |(_, last): &(_, Buckets)| {
            let pairs = last.iter().zip(&buckets);
            last.len() == buckets.len()
                && pairs
                    .into_iter()
                    .all(|(old, new)| old.0 == new.0 && old.1 <= new.1)
        };
        if !self.pages.back().is_none_or(follows) {
            self.pages.clear();
        }
        self.pages.push_back((now, buckets));
        while self.pages.len() > 2 && now.since(self.pages[1].0) >= self.window {
            self.pages.pop_front();
        }
        if self.pages.len() < 2 {
            return None;
        }
        let (first, last) = (&self.pages.front()?.1, &self.pages.back()?.1);
        let gained: Buckets = first
            .iter()
            .zip(last)
            .map(|(old, new)| (new.0, new.1 - old.1))
            .collect();
        of(&gained, quantile)
    }
}

/// Even within a bucket, as Prometheus' `histogram_quantile`.
fn of(buckets: &[(f64, f64)], quantile: f64) -> Option<Gain> {
    let total = buckets.last()?.1;
    if total < 1.0 {
        return Some(Gain::Nothing);
    }
    let rank = quantile * total;
    let index = buckets.iter().position(|(_, count)| *count >= rank)?;
    let (below, before) = match index {
        0 => (0.0, 0.0),
        _ => buckets[index - 1],
    };
    let (bound, count) = buckets[index];
    if bound == f64::INFINITY {
        return Some(Gain::Above(below));
    }
    let value = match bound.is_finite() && count > before {
        true => below + (bound - below) * (rank - before) / (count - before),
        false => below,
    };
    (value.is_finite() && value >= 0.0).then_some(Gain::Requests(value, total as u64))
}

/// Those of every series that has the metric's name and its labels, added up; none where one is no number, or
/// where there are more bounds than any histogram needs.
fn buckets(page: &str, metric: &str) -> Option<Buckets> {
    let wanted = Series::parse(metric).ok()?;
    let mut buckets: Buckets = Vec::new();
    for line in lines(page).filter(|line| line.name.strip_suffix("_bucket") == Some(wanted.name)) {
        let (found, count) = line.read().ok()?;
        let mut labels = wanted.labels.iter();
        if !labels.all(|label| found.labels.contains(label)) {
            continue;
        }
        let bound: f64 = found.label("le")?.parse().ok()?;
        if bound.is_nan() || !count.is_finite() {
            return None;
        }
        match buckets.binary_search_by(|(other, _)| other.total_cmp(&bound)) {
            Ok(at) => buckets[at].1 += count,
            Err(_) if buckets.len() == MOST_BOUNDS => return None,
            Err(at) => buckets.insert(at, (bound, count)),
        }
    }
    (!buckets.is_empty()).then_some(buckets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sensed::Nanos;

    fn page(counts: [u64; 3]) -> String {
        let [fast, slow, all] = counts;
        format!(
            "# TYPE rq histogram\nrq_bucket{{c=\"a\",le=\"0.1\"}} {fast}\nrq_bucket{{c=\"a\",le=\"0.2\"}} {slow}\nrq_bucket{{c=\"a\",le=\"+Inf\"}} {all}\nrq_bucket{{c=\"b\",le=\"0.1\"}} 7\nrq_sum 9\nrq2_bucket{{le=\"0.1\"}} 5\n"
        )
    }

    fn second(second: u64) -> Nanos {
        Nanos(second * 1_000_000_000)
    }

    fn histogram() -> Histogram {
        let settings = Tail {
            source: crate::config::TailSource::Calls,
            quantile: 0.5,
            window: Duration::from_secs(10),
            every: Duration::from_secs(1),
        };
        let page = Page {
            address: ([127, 0, 0, 1], 1).into(),
            path: "/".into(),
            metric: "rq{c=\"a\"}".into(),
            unit: 1.0,
        };
        Histogram::new(page, &settings)
    }

    fn history() -> History {
        History {
            window: Duration::from_secs(10),
            pages: VecDeque::new(),
        }
    }

    fn add(history: &mut History, at: u64, counts: [u64; 3]) -> Option<Gain> {
        let read = buckets(&page(counts), "rq{c=\"a\"}");
        history.add(second(at), read, 0.5)
    }

    #[test]
    fn only_what_came_in_the_window_counts() {
        let mut history = history();
        assert_eq!(add(&mut history, 1, [1000, 1000, 1000]), None);
        // Ten between 0.1 and 0.2: the fifth is in the middle.
        let gain = add(&mut history, 2, [1000, 1010, 1010]).unwrap();
        assert!(
            matches!(gain, Gain::Requests(tail, 10) if (tail - 0.15).abs() < 1e-9),
            "{gain:?}"
        );
        for at in 3..30 {
            add(&mut history, at, [1000, 1010, 1010]);
        }
        let silence = add(&mut history, 30, [1000, 1010, 1010]);
        assert_eq!(silence, Some(Gain::Nothing));
        let gain = add(&mut history, 31, [1000, 1010, 1020]);
        assert_eq!(gain, Some(Gain::Above(0.2)));
    }

    #[test]
    fn above_the_last_bound_there_is_no_latency_and_the_next_page_has_one() {
        let mut histogram = histogram();
        let mut tail = |at, counts| histogram.tail(second(at), Ok(page(counts)));
        assert_eq!(tail(1, [0, 0, 0]).unwrap(), None);
        let error = tail(2, [0, 4, 10]).unwrap_err().to_string();
        assert!(error.contains("last bound, 0.2"), "{error}");
        let latency = tail(3, [20, 24, 30]).unwrap().unwrap().latency;
        assert!(latency <= Duration::from_millis(100), "{latency:?}");
    }

    #[test]
    fn a_histogram_with_no_bound_has_no_latency() {
        assert_eq!(of(&[(f64::INFINITY, 9.0)], 0.5), Some(Gain::Above(0.0)));
    }

    #[test]
    fn a_counter_that_begins_again_and_a_page_that_fails_are_no_measurement() {
        let mut history = history();
        add(&mut history, 1, [5, 10, 10]);
        assert_eq!(add(&mut history, 2, [1, 1, 1]), None);
        assert!(add(&mut history, 3, [2, 2, 2]).is_some());
        assert_eq!(history.add(second(4), None, 0.5), None);
        assert_eq!(add(&mut history, 5, [9, 9, 9]), None);
    }

    #[test]
    fn until_two_pages_follow_one_another_it_is_not_known_whether_there_were_requests() {
        let mut histogram = histogram();
        let mut tail = |at, text: Option<[u64; 3]>| {
            let text = text.map(page).context("no answer");
            let tail = histogram.tail(second(at), text);
            tail.ok().flatten().map(|tail| tail.requests)
        };
        // Every other answer is late, so that no two follow one another.
        for at in 0..4 {
            assert_eq!(tail(2 * at, Some([10 * at, 20 * at, 30 * at])), None);
            assert_eq!(tail(2 * at + 1, None), None);
        }
        assert_eq!(tail(8, Some([50, 100, 150])), None);
        assert_eq!(tail(9, Some([50, 100, 150])), Some(0));
        assert_eq!(tail(10, Some([60, 100, 160])), Some(10));
        assert_eq!(tail(11, Some([1, 1, 1])), None, "began again");
    }

    #[test]
    fn nonsense_is_no_histogram() {
        assert_eq!(buckets("rq_bucket{le=\"0.1\"} NaN\n", "rq"), None);
        assert_eq!(buckets("rq_bucket{le=\"x\"} 1\n", "rq"), None);
        assert_eq!(buckets("rq_bucket{} 1\n", "rq"), None);
        assert_eq!(buckets("", "rq"), None);
        let sum = buckets(
            "rq_bucket{a=\"1\",le=\"1\"} 1\nrq_bucket{le=\"1\"} 2 123\n",
            "rq",
        );
        assert_eq!(sum, Some(vec![(1.0, 3.0)]));
        let many: String = (0..=MOST_BOUNDS)
            .map(|bound| format!("rq_bucket{{le=\"{bound}\"}} 1\n"))
            .collect();
        assert_eq!(buckets(&many, "rq"), None);
    }

    #[test]
    fn an_exemplars_value_is_no_count() {
        let page =
            "rq_bucket{le=\"0.1\"} 8 # {trace_id=\"x\"} 0.067\nrq_bucket {le=\"+Inf\"} 9 # {} 1\n";
        let expected = vec![(0.1, 8.0), (f64::INFINITY, 9.0)];
        assert_eq!(buckets(page, "rq"), Some(expected));
    }

    #[test]
    fn a_label_is_known_by_its_whole_name_and_value() {
        let read = |labels: &str| {
            let line = format!("rq_bucket{{{labels}}} 1\n");
            buckets(&line, "rq{c=\"a\"}")
        };
        let one = Some(vec![(2.0, 1.0)]);
        assert_eq!(read("role=\"x\",c=\"a\",title=\"9\",le=\"2\""), one);
        assert_eq!(read("c=\"a\", le=\"2\","), one);
        assert_eq!(read("q=\"\\\",le=\\\"7}\",c=\"a\",le=\"2\""), one);
        assert_eq!(read("xc=\"a\",le=\"2\""), None);
        assert_eq!(read("c=\"ab\",le=\"2\""), None);
    }
}
