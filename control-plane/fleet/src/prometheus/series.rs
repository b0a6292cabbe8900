// SPDX-License-Identifier: Apache-2.0
//! One figure of one host, from its series.

use std::time::Duration;

use weir_promql::Series;

use super::figure::Figure;

/// Number of business classes.
const CLASSES: usize = weir_policy::CLASSES as usize;
/// Of a series by class: which one it is.
const CLASS_LABEL: &str = "priority";
/// 2^53: beyond it a number has no ones, and no host so many jobs or seconds.
const TOO_LARGE: f64 = 9_007_199_254_740_992.0;

/// Numbers of a figure, none of them negative, infinite or NaN: one, or one a class.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Read(Vec<f64>);

impl Read {
    pub(super) fn counts(&self) -> Vec<u32> {
        self.0.iter().map(|jobs| jobs.round() as u32).collect()
    }

    pub(super) fn count(&self) -> u32 {
        self.0.iter().sum::<f64>().ceil() as u32
    }

    pub(super) fn micros(&self) -> Vec<u64> {
        self.0
            .iter()
            .map(|seconds| (seconds * 1e6) as u64)
            .collect()
    }

    pub(super) fn duration(&self) -> Duration {
        Duration::try_from_secs_f64(self.0.iter().sum()).unwrap_or(Duration::MAX)
    }
}

/// None where the host has no series. The error is the reason, in the same words for the same trouble.
pub(super) fn read(figure: Figure, series: &[&Series]) -> Result<Option<Read>, String> {
    if !figure.is_by_class() {
        return match series {
            [] => Ok(None),
            [one] => Ok(Some(Read(vec![number(one)?]))),
            _ => Err("two series for one host".to_owned()),
        };
    }
    let mut classes: Vec<Option<f64>> = Vec::new();
    for series in series {
        let class = class(series)?;
        let value = number(series)?;
        if classes.len() <= class {
            classes.resize(class + 1, None);
        }
        if classes[class].replace(value).is_some() {
            return Err(format!("two series of priority {class} for one host"));
        }
    }
    let numbers = classes.into_iter().map(Option::unwrap_or_default);
    let numbers: Vec<f64> = numbers.collect();
    Ok((!numbers.is_empty()).then_some(Read(numbers)))
}

/// Without the label jobs count as the most important.
fn class(series: &Series) -> Result<usize, String> {
    let Some(text) = series.labels.get(CLASS_LABEL) else {
        return Ok(0);
    };
    let class = text.parse::<usize>().ok().filter(|class| *class < CLASSES);
    class.ok_or_else(|| {
        let text: String = text.chars().take(40).collect();
        format!("priority {text:?} is not in 0 to {}", CLASSES - 1)
    })
}

fn number(series: &Series) -> Result<f64, String> {
    let value = series.value.map_err(|error| error.to_string())?;
    let wrong = match value {
        value if value.is_nan() => "NaN",
        value if value.is_infinite() => "infinite",
        value if value < 0.0 => "negative",
        value if value >= TOO_LARGE => "too large to be true",
        value => return Ok(value),
    };
    Err(wrong.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn series(priority: Option<&str>, value: f64) -> Series {
        let label = priority.map(|text| (CLASS_LABEL.to_owned(), text.to_owned()));
        Series {
            labels: label.into_iter().collect(),
            value: Ok(value),
        }
    }

    fn said(figure: Figure, list: &[Series]) -> Result<Option<Read>, String> {
        read(figure, &list.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_queue_is_by_class_and_classes_without_a_series_are_empty() {
        let list = [series(Some("16"), 2.0), series(Some("0"), 1.0)];
        let queue = said(Figure::Queued, &list).unwrap().unwrap().counts();
        assert_eq!((queue.len(), queue[0], queue[16]), (17, 1, 2));
        assert_eq!(queue.iter().sum::<u32>(), 3);
        let all = said(Figure::Queued, &[series(None, 5.0)]).unwrap().unwrap();
        assert_eq!(all.counts(), [5]);
        assert_eq!(said(Figure::Queued, &[]), Ok(None));
    }

    #[test]
    fn two_series_for_one_figure_are_none() {
        let two = [series(None, 1.0), series(None, 1.0)];
        assert_eq!(
            said(Figure::InProgress, &two),
            Err("two series for one host".into())
        );
        let reason = said(Figure::Work, &two).unwrap_err();
        assert_eq!(reason, "two series of priority 0 for one host");
    }

    #[test]
    fn a_class_that_does_not_exist_is_refused() {
        for text in ["32", "-1", "high", ""] {
            let reason = said(Figure::Queued, &[series(Some(text), 1.0)]).unwrap_err();
            assert_eq!(reason, format!("priority {text:?} is not in 0 to 31"));
        }
    }

    #[test]
    fn numbers_that_no_host_can_mean_are_named() {
        for (value, reason) in [
            (f64::NAN, "NaN"),
            (f64::INFINITY, "infinite"),
            (f64::NEG_INFINITY, "infinite"),
            (-0.1, "negative"),
            (1e16, "too large to be true"),
        ] {
            assert_eq!(
                said(Figure::InProgress, &[series(None, value)]),
                Err(reason.into())
            );
        }
    }

    proptest! {
        #[test]
        fn any_number_is_read_or_refused(value: f64) {
            for figure in Figure::ALL {
                if let Ok(Some(read)) = said(figure, &[series(None, value)]) {
                    prop_assert!((0.0..TOO_LARGE).contains(&value));
                    prop_assert!(read.duration() < Duration::MAX);
                    prop_assert_eq!(u64::from(read.count()), value.ceil().min(f64::from(u32::MAX)) as u64);
                }
            }
        }
    }
}
