// SPDX-License-Identifier: Apache-2.0
//! A row for each way, a column for each figure.

use anyhow::{Context, Result};
use weir_report::Table;

use crate::bench::inference::run::Run;
use crate::bench::inference::way::Way;
use crate::bench::section::NO_SPREAD;
use weir_report::{Spread, digits};

/// None where a way has no such figure.
type Figure<'a> = dyn Fn(&Run) -> Option<f64> + 'a;

pub(super) struct Column<'a> {
    name: String,
    figure: Box<Figure<'a>>,
}

impl<'a> Column<'a> {
    pub(super) fn of(name: &str, figure: impl Fn(&Run) -> f64 + 'a) -> Self {
        Self::if_any(name, move |run| Some(figure(run)))
    }

    pub(super) fn if_any(name: &str, figure: impl Fn(&Run) -> Option<f64> + 'a) -> Self {
        Self {
            name: name.to_owned(),
            figure: Box::new(figure),
        }
    }

    fn cell(&self, runs: &[Run], way: Way) -> Result<String> {
        let rounds = runs.iter().filter(|run| run.way == way);
        cell_of(rounds.map(|run| (self.figure)(run)))
    }
}

/// The rounds' figures; nothing where one of them has none.
pub(super) fn cell_of(figures: impl IntoIterator<Item = Option<f64>>) -> Result<String> {
    match figures.into_iter().collect::<Option<Vec<f64>>>() {
        Some(figures) => Ok(cell(Spread::of(&figures).context(NO_SPREAD)?)),
        None => Ok("-".to_owned()),
    }
}

/// Of all runs that are of a way.
pub(super) fn of(columns: &[Column<'_>], ways: &[Way], runs: &[Run]) -> Result<Table> {
    let row = |way: Way| {
        let cells = columns.iter().map(|column| column.cell(runs, way));
        let name = Ok(way.name().to_owned());
        std::iter::once(name).chain(cells).collect()
    };
    let names = columns.iter().map(|column| column.name.clone());
    Ok(Table {
        header: std::iter::once("way".to_owned()).chain(names).collect(),
        rows: ways.iter().copied().map(row).collect::<Result<_>>()?,
    })
}

/// One round has no spread.
pub(super) fn cell(spread: Spread) -> String {
    match spread.least == spread.most {
        true => digits(spread.median),
        false => spread.to_string(),
    }
}
