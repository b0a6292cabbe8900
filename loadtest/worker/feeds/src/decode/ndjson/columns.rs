// SPDX-License-Identifier: Apache-2.0
//! The columns of one segment, while they grow.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringBuilder};

use crate::decode::{Budget, Refused};

/// Arrow's offsets are 32-bit: the text of a column in one batch.
const MAX_COLUMN_BYTES: usize = i32::MAX as usize;

/// A finished segment.
pub(super) struct Parsed {
    pub(super) names: Vec<Arc<str>>,
    pub(super) columns: Vec<ArrayRef>,
    pub(super) rows: usize,
}

struct Column {
    name: Arc<str>,
    /// Shorter than the rows so far when the last items had no such field; filled when it is next
    /// seen, so that a row costs what it has and not what other rows have.
    values: StringBuilder,
    rows: usize,
}

pub(super) struct Columns<'a> {
    budget: &'a Budget<'a>,
    columns: Vec<Column>,
    places: HashMap<Arc<str>, usize>,
    rows: usize,
    /// The column after the last one set: most items have the order of the one before.
    next: usize,
    /// Not yet on the budget.
    cells: u64,
    text: u64,
}

impl<'a> Columns<'a> {
    pub(super) fn new(budget: &'a Budget<'a>) -> Self {
        Self {
            budget,
            columns: Vec::new(),
            places: HashMap::new(),
            rows: 0,
            next: 0,
            cells: 0,
            text: 0,
        }
    }

    /// Where the field `name` of the current item goes.
    pub(super) fn place(&mut self, name: &str) -> Result<usize, Refused> {
        let place = match self.columns.get(self.next) {
            Some(column) if *column.name == *name => self.next,
            _ => match self.places.get(name) {
                Some(place) => *place,
                None => self.add(name)?,
            },
        };
        self.next = place + 1;
        match self.columns[place].rows > self.rows {
            true => Err(Refused::bad(format!("the field {name:?} is there twice"))),
            false => Ok(place),
        }
    }

    fn add(&mut self, name: &str) -> Result<usize, Refused> {
        self.budget.check_columns(self.columns.len() + 1)?;
        self.budget.check_name(name)?;
        let name: Arc<str> = name.into();
        let place = self.columns.len();
        self.places.insert(Arc::clone(&name), place);
        self.columns.push(Column {
            name,
            values: StringBuilder::new(),
            rows: 0,
        });
        Ok(place)
    }

    /// The value at `place` of the current item.
    pub(super) fn set(&mut self, place: usize, value: Option<&str>) -> Result<(), Refused> {
        let column = &mut self.columns[place];
        let bytes = value.map_or(0, str::len);
        self.budget.check_value(&column.name, bytes)?;
        if column.values.values_slice().len() + bytes > MAX_COLUMN_BYTES {
            let reason = format!("the field {:?} has too much text for a batch", column.name);
            return Err(Refused::TooLarge(reason));
        }
        self.cells += (self.rows + 1 - column.rows) as u64;
        self.text += bytes as u64;
        column.fill(self.rows);
        column.values.append_option(value);
        column.rows += 1;
        Ok(())
    }

    /// The current item is complete.
    pub(super) fn end_row(&mut self) -> Result<(), Refused> {
        self.rows += 1;
        self.next = 0;
        let (cells, text) = (self.cells, self.text);
        (self.cells, self.text) = (0, 0);
        self.budget.add_cells(cells, text)
    }

    pub(super) fn finish(mut self) -> Result<Parsed, Refused> {
        let rows = self.rows;
        let missing = |column: &Column| (rows - column.rows) as u64;
        self.budget
            .add_cells(self.columns.iter().map(missing).sum(), 0)?;
        let name = |column: &Column| Arc::clone(&column.name);
        let names = self.columns.iter().map(name).collect();
        let columns = self.columns.iter_mut().map(|column| column.finish(rows));
        let columns = columns.collect();
        Ok(Parsed {
            names,
            columns,
            rows,
        })
    }
}

impl Column {
    fn fill(&mut self, rows: usize) {
        self.values.append_nulls(rows - self.rows);
        self.rows = rows;
    }

    fn finish(&mut self, rows: usize) -> ArrayRef {
        self.fill(rows);
        let mut array = self.values.finish();
        // Builders grow by doubling; a feed stays in the cache for long.
        array.shrink_to_fit();
        Arc::new(array)
    }
}
