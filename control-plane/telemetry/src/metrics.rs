// SPDX-License-Identifier: Apache-2.0
//! A page of metrics in OpenTelemetry's model, by its specification's "Prometheus and OpenMetrics Compatibility".
//!
//! ```text
//!  counter NAME_total ──> monotonic sum NAME       histogram ──> histogram with explicit bounds
//!  gauge, info, unknown ──> gauge                  all cumulative, from the beginning of the process
//! ```

use std::borrow::Cow;

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
    metric, number_data_point,
};
use weir_exposition::Series;

/// Unix time in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    /// The beginning of the process: counters were 0.
    pub(crate) start: u64,
    pub(crate) now: u64,
}

/// The page's metrics. What cannot be read is left out: it is our own page, and tests read all of it.
pub(crate) fn metrics(page: &str, period: Period) -> Vec<Metric> {
    let families =
        page.split_inclusive('\n')
            .fold(Vec::new(), |mut families: Vec<Family<'_>>, line| {
                let word = |kind: &str| line.strip_prefix(kind)?.trim_end().split_once(' ');
                if let Some((name, help)) = word("# HELP ") {
                    families.push(Family {
                        name,
                        help,
                        ..Family::default()
                    });
                } else if let (Some((_, kind)), Some(family)) =
                    (word("# TYPE "), families.last_mut())
                {
                    family.kind = kind;
                } else if let (false, Some(family)) = (line.starts_with('#'), families.last_mut()) {
                    family
                        .samples
                        .extend(weir_exposition::lines(line).filter_map(|line| line.read().ok()));
                }
                families
            });
    families
        .into_iter()
        .filter_map(|family| family.metric(period))
        .collect()
}

#[derive(Debug, Default)]
struct Family<'a> {
    name: &'a str,
    help: &'a str,
    kind: &'a str,
    samples: Vec<(Series<'a>, f64)>,
}

impl Family<'_> {
    fn metric(self, period: Period) -> Option<Metric> {
        let cumulative = AggregationTemporality::Cumulative.into();
        let data = match self.kind {
            "counter" => metric::Data::Sum(Sum {
                data_points: self.points(period.start, period.now),
                aggregation_temporality: cumulative,
                is_monotonic: true,
            }),
            "histogram" => metric::Data::Histogram(Histogram {
                data_points: self.histograms(period),
                aggregation_temporality: cumulative,
            }),
            // A gauge has no beginning.
            _ => metric::Data::Gauge(Gauge {
                data_points: self.points(0, period.now),
            }),
        };
        (!self.samples.is_empty()).then(|| Metric {
            name: self.name.to_owned(),
            description: self.help.to_owned(),
            data: Some(data),
            ..Metric::default()
        })
    }

    fn points(&self, start: u64, now: u64) -> Vec<NumberDataPoint> {
        let point = |(series, value): &(Series<'_>, f64)| NumberDataPoint {
            attributes: attributes(&series.labels),
            start_time_unix_nano: start,
            time_unix_nano: now,
            value: Some(number_data_point::Value::AsDouble(*value)),
            ..NumberDataPoint::default()
        };
        self.samples.iter().map(point).collect()
    }

    /// A histogram's samples stand together: its buckets from the lowest on, its sum and its count, in any order of the
    /// three.
    fn histograms(&self, period: Period) -> Vec<HistogramDataPoint> {
        let mut points: Vec<(Vec<&Label<'_>>, HistogramDataPoint)> = Vec::new();
        for (series, value) in &self.samples {
            let labels: Vec<_> = series
                .labels
                .iter()
                .filter(|(name, _)| *name != "le")
                .collect();
            if points.last().is_none_or(|(last, _)| *last != labels) {
                let point = HistogramDataPoint {
                    attributes: attributes(labels.iter().copied()),
                    start_time_unix_nano: period.start,
                    time_unix_nano: period.now,
                    ..HistogramDataPoint::default()
                };
                points.push((labels, point));
            }
            let Some((_, point)) = points.last_mut() else {
                continue;
            };
            match series.name.strip_prefix(self.name) {
                Some("_sum") => point.sum = Some(*value),
                Some("_count") => point.count = *value as u64,
                Some("_bucket") => {
                    // Buckets count what is below too, there; here each counts its own.
                    let below: u64 = point.bucket_counts.iter().sum();
                    point
                        .bucket_counts
                        .push((*value as u64).saturating_sub(below));
                    let bound = series.label("le").and_then(|bound| bound.parse().ok());
                    point
                        .explicit_bounds
                        .extend(bound.filter(|bound: &f64| bound.is_finite()));
                }
                _ => {}
            }
        }
        points.into_iter().map(|(_, point)| point).collect()
    }
}

type Label<'a> = (&'a str, Cow<'a, str>);

fn attributes<'a>(labels: impl IntoIterator<Item = &'a Label<'a>>) -> Vec<KeyValue> {
    let attribute =
        |(name, value): &Label<'_>| attribute((*name).to_owned(), value.clone().into_owned());
    labels.into_iter().map(attribute).collect()
}

pub(crate) fn attribute(key: String, value: String) -> KeyValue {
    let value = AnyValue {
        value: Some(any_value::Value::StringValue(value)),
    };
    KeyValue {
        key,
        value: Some(value),
        ..KeyValue::default()
    }
}

/// Messages of so many points at most, or of one metric that has more: receivers limit a message's size.
pub(crate) fn packed(metrics: Vec<Metric>, most: usize) -> Vec<Vec<Metric>> {
    let mut packs: Vec<(usize, Vec<Metric>)> = Vec::new();
    for metric in metrics {
        let size = size(&metric);
        match packs.last_mut().filter(|(filled, _)| filled + size <= most) {
            Some((filled, pack)) => {
                *filled += size;
                pack.push(metric);
            }
            None => packs.push((size, vec![metric])),
        }
    }
    packs.into_iter().map(|(_, pack)| pack).collect()
}

fn size(metric: &Metric) -> usize {
    match &metric.data {
        Some(metric::Data::Gauge(gauge)) => gauge.data_points.len(),
        Some(metric::Data::Sum(sum)) => sum.data_points.len(),
        Some(metric::Data::Histogram(histogram)) => histogram.data_points.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# HELP jobs Jobs by how they ended.
# TYPE jobs counter
jobs_total{outcome=\"done\"} 7
jobs_total{outcome=\"fa\\\"iled\"} 1
# HELP wait_seconds How long.
# TYPE wait_seconds histogram
# UNIT wait_seconds seconds
wait_seconds_sum{class=\"0\"} 2.5
wait_seconds_count{class=\"0\"} 4
wait_seconds_bucket{le=\"0.1\",class=\"0\"} 1
wait_seconds_bucket{le=\"1.0\",class=\"0\"} 3 # {receipt=\"9\"} 0.4
wait_seconds_bucket{le=\"+Inf\",class=\"0\"} 4
wait_seconds_sum{class=\"16\"} 0.0
wait_seconds_count{class=\"16\"} 0
wait_seconds_bucket{le=\"+Inf\",class=\"16\"} 0
# HELP up Whether.
# TYPE up gauge
up 1
# HELP idle Nothing.
# TYPE idle gauge
# EOF
";

    const PERIOD: Period = Period { start: 1, now: 2 };

    fn found() -> Vec<Metric> {
        metrics(PAGE, PERIOD)
    }

    #[test]
    fn a_family_without_samples_is_none_and_names_lose_their_suffix() {
        let names: Vec<_> = found().into_iter().map(|metric| metric.name).collect();
        assert_eq!(names, ["jobs", "wait_seconds", "up"]);
    }

    #[test]
    fn a_counter_is_a_monotonic_sum_from_the_beginning() {
        let metric = found().swap_remove(0);
        assert_eq!(metric.description, "Jobs by how they ended.");
        let Some(metric::Data::Sum(sum)) = metric.data else {
            panic!("{metric:?}")
        };
        assert!(sum.is_monotonic);
        assert_eq!(
            sum.aggregation_temporality,
            AggregationTemporality::Cumulative as i32
        );
        let [done, failed] = &*sum.data_points else {
            panic!("{sum:?}")
        };
        assert_eq!((done.start_time_unix_nano, done.time_unix_nano), (1, 2));
        assert_eq!(done.value, Some(number_data_point::Value::AsDouble(7.0)));
        assert_eq!(
            failed.attributes,
            [attribute("outcome".into(), "fa\"iled".into())]
        );
    }

    #[test]
    fn a_histograms_buckets_count_their_own() {
        let metric = found().swap_remove(1);
        let Some(metric::Data::Histogram(histogram)) = metric.data else {
            panic!("{metric:?}")
        };
        let [some, none] = &*histogram.data_points else {
            panic!("{histogram:?}")
        };
        assert_eq!((some.count, some.sum), (4, Some(2.5)));
        assert_eq!(some.explicit_bounds, [0.1, 1.0]);
        assert_eq!(some.bucket_counts, [1, 2, 1]);
        assert_eq!(some.attributes, [attribute("class".into(), "0".into())]);
        assert_eq!((none.count, &*none.bucket_counts), (0, &[0][..]));
    }

    #[test]
    fn a_gauge_has_no_beginning() {
        let metric = found().swap_remove(2);
        let Some(metric::Data::Gauge(gauge)) = metric.data else {
            panic!("{metric:?}")
        };
        assert_eq!(gauge.data_points[0].start_time_unix_nano, 0);
    }

    #[test]
    fn messages_have_so_many_points_at_most() {
        let sizes = |most| -> Vec<usize> { packed(found(), most).iter().map(Vec::len).collect() };
        assert_eq!(sizes(5), [3]);
        assert_eq!(sizes(3), [1, 2]);
        assert_eq!(sizes(1), [1, 1, 1]);
        assert!(packed(Vec::new(), 5).is_empty());
    }
}
