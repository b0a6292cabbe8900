// SPDX-License-Identifier: Apache-2.0
//! Energy and good answers by class.

use std::fmt;

use super::{Family, Labels};
use crate::book::energy::{EnergyBook, OTHER, SHARED};
use crate::energy;

pub(super) fn write(family: &mut Family<'_, '_>, book: &EnergyBook) -> fmt::Result {
    let mut classes = book.by_class();
    let answers = classes.iter().map(|(class, functions)| {
        let good: u64 = functions.iter().map(|function| book.good[*function]).sum();
        (class, good)
    });
    family.counters(
        "class_good_answers",
        "Calls of the class's hot functions that ended, within `good_within` where that is configured",
        answers
            .filter(|(_, good)| *good > 0)
            .map(|(class, good)| (vec![("class", (*class).to_owned())], good as f64)),
    )?;
    classes.push((OTHER, vec![energy::OTHER]));
    classes.push((SHARED, vec![energy::SHARED]));
    let series = classes.iter().flat_map(|(class, parts)| {
        let joules = book.ledger.steps.iter().map(move |(khz, joules)| {
            let labels: Labels = vec![
                ("class", (*class).to_owned()),
                ("hertz", (f64::from(khz.0) * 1000.0).to_string()),
                ("source", book.source.name().to_owned()),
            ];
            (labels, parts.iter().map(|part| joules[*part]).sum::<f64>())
        });
        joules.filter(|(_, joules)| *joules > 0.0)
    });
    family.counters(
        "class_joules",
        "Energy by class and frequency, attributed by time in state: `rapl` divides what RAPL's packages counted, `model` is MODELLED. `other`: busy without a hot call; `shared`: idle cores and the rest of the package",
        series,
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::book::energy::{Class, EnergyBook, Source};
    use crate::book::{Book, Shared};
    use crate::energy::{Ledger, PARTS, SHARED};
    use crate::frequency::Khz;
    use crate::sensed::{Finished, Nanos, Sensed};

    #[test]
    fn functions_of_a_class_are_added_up_and_late_answers_are_not_good() {
        let class = |name: &str, millis: Option<u64>| Class {
            name: name.to_owned(),
            good_within: millis.map(Duration::from_millis),
        };
        let call = |function, millis| Finished {
            function,
            core: 0,
            took: Duration::from_millis(millis),
            at: Nanos(0),
        };
        let mut joules = [0.0; PARTS];
        (joules[0], joules[2], joules[SHARED]) = (1.0, 2.0, 4.0);
        let mut energy = EnergyBook {
            classes: vec![
                class("high", Some(10)),
                class("low", None),
                class("high", None),
            ],
            source: Source::Rapl,
            ledger: Ledger {
                steps: vec![(Khz(2_000_000), joules)],
            },
            ..EnergyBook::default()
        };
        energy.answered(&Sensed {
            finished: vec![
                call(0, 9),
                call(0, 11),
                call(2, 500),
                call(1, 1),
                call(99, 1),
            ],
            ..Sensed::default()
        });
        let mut page = String::new();
        let registry = crate::metrics::registry(Shared::new(Book {
            energy,
            ..Book::default()
        }));
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        for line in [
            "weir_governor_class_good_answers_total{class=\"high\"} 2.0",
            "weir_governor_class_good_answers_total{class=\"low\"} 1.0",
            "weir_governor_class_joules_total{class=\"high\",hertz=\"2000000000\",source=\"rapl\"} 3.0",
            "weir_governor_class_joules_total{class=\"shared\",hertz=\"2000000000\",source=\"rapl\"} 4.0",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
        assert!(
            !page.contains("joules_total{class=\"low\""),
            "it had nothing"
        );
    }
}
