// SPDX-License-Identifier: Apache-2.0
//! Actions change columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, StringArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::zip::zip;
use arrow::compute::nullif;

use super::cells::{COLUMN_BYTES, Cells, TooLong, rewrite};
use super::items::Items;
use super::{Context, EvaluateError, filter, text};
use crate::number;
use crate::plan::{
    Action, Arithmetic, Change, Lookup, Operand, Operation, Operator, Replace, Side,
};

/// Performs an operator: its condition is evaluated once, before its actions.
pub(super) fn perform(
    operator: &Operator,
    items: &mut Items<'_>,
    context: &Context<'_>,
) -> Result<(), EvaluateError> {
    let holds = filter::holds(&operator.condition, items)?;
    // Without `else_actions` the complement is not needed. Actions on the items it does not hold for
    // cannot touch the others, so the order of the two lists does not matter.
    let otherwise = (!operator.else_actions.is_empty()).then(|| !&holds);
    let mut lists = vec![(&operator.actions, holds)];
    lists.extend(otherwise.map(|mask| (&operator.else_actions, mask)));
    // Removal may drop rows and so invalidate the other mask: it comes last.
    let mut removed: Option<BooleanBuffer> = None;
    for (actions, mask) in lists {
        let mask = items.living(mask);
        if !mask.has_true() {
            continue;
        }
        let changes = actions.iter().map_while(|action| match action {
            Action::RemoveItem => None,
            Action::Change { field, change } => Some((field, change)),
        });
        for (field, change) in changes {
            let task = Task {
                operator,
                field,
                mask: &mask,
                context,
            };
            task.change(change, items)?;
        }
        if actions
            .iter()
            .any(|action| matches!(action, Action::RemoveItem))
        {
            removed = Some(removed.map_or_else(|| mask.clone(), |before| &before | &mask));
        }
    }
    match removed {
        Some(mask) => Ok(items.remove(&mask)?),
        None => Ok(()),
    }
}

/// One change of one field of the items of a mask.
struct Task<'a> {
    operator: &'a Operator,
    field: &'a str,
    mask: &'a BooleanBuffer,
    context: &'a Context<'a>,
}

impl Task<'_> {
    fn change(&self, change: &Change, items: &mut Items<'_>) -> Result<(), EvaluateError> {
        // What creates a field has a column for it; to all else a field of no item is nothing.
        let Some(column) = items.find(self.field) else {
            return Ok(());
        };
        let values: ArrayRef = match change {
            Change::Remove => nullif(items.column(column), &self.array())?,
            Change::Set(value) => self.set(items, column, value)?,
            other => Arc::new(
                self.rewritten(other, items, column)
                    .map_err(|error| self.refused(error))?,
            ),
        };
        if items.stopped() {
            return Err(EvaluateError::Stopped);
        }
        items.replace(column, values);
        self.context.check(items)
    }

    fn array(&self) -> BooleanArray {
        BooleanArray::from(self.mask.clone())
    }

    fn refused(&self, error: TooLong) -> EvaluateError {
        let (operator, field) = (self.operator.label.to_string(), self.field.to_owned());
        match error {
            TooLong::Value => EvaluateError::ValueTooLong {
                operator,
                field,
                limit: self.context.limits.value_bytes,
            },
            TooLong::Column => EvaluateError::ColumnTooLong { operator, field },
        }
    }

    fn set(
        &self,
        items: &Items<'_>,
        column: usize,
        value: &Operand,
    ) -> Result<ArrayRef, EvaluateError> {
        let (before, all) = (items.column(column), !self.mask.has_false());
        let longest = |bytes: usize| match bytes + bytes_of(items.text(column)) {
            0..=COLUMN_BYTES => Ok(()),
            _ => Err(self.refused(TooLong::Column)),
        };
        match value {
            Operand::Text(text) => {
                longest(text.len() * items.rows())?;
                if all {
                    return Ok(Arc::new(StringArray::new_repeated(&**text, items.rows())));
                }
                Ok(zip(
                    &self.array(),
                    &StringArray::new_scalar(&**text),
                    before,
                )?)
            }
            Operand::Field(name) => match items.find(name) {
                None => Ok(nullif(before, &self.array())?),
                Some(other) if all => Ok(Arc::clone(items.column(other))),
                Some(other) => {
                    longest(bytes_of(items.text(other)))?;
                    Ok(zip(&self.array(), items.column(other), before)?)
                }
            },
        }
    }

    /// Changes that have no kernel, or none that leaves the other items alone in one pass.
    fn rewritten(
        &self,
        change: &Change,
        items: &mut Items<'_>,
        column: usize,
    ) -> Result<StringArray, TooLong> {
        let text = items.text(column);
        match change {
            Change::Case(case) => {
                self.present(text, |value, cells| text::case(value, *case, cells))
            }
            Change::Replace(Replace::Text {
                search,
                replacement,
            }) => self.present(text, |value, cells| {
                text::replace(value, search, replacement, cells)
            }),
            Change::Replace(Replace::Regex {
                search,
                replacement,
            }) => self.present(text, |value, cells| {
                text::replace_regex(value, search, replacement, self.context.stop, cells)
            }),
            Change::Split { separator, index } => self.each(text, |_, value, cells| {
                cells.keep(value.and_then(|value| value.split(&**separator).nth(*index)))
            }),
            Change::Lookup(lookup) => {
                self.each(text, |_, value, cells| cells.keep(found(lookup, value)))
            }
            Change::Combine(values) => self.combine(items, column, values),
            Change::Number(arithmetic) => self.arithmetic(items, column, arithmetic),
            Change::Remove | Change::Set(_) => Ok(text.clone()),
        }
    }

    fn each(
        &self,
        column: &StringArray,
        write: impl FnMut(usize, Option<&str>, &mut Cells) -> Result<(), TooLong>,
    ) -> Result<StringArray, TooLong> {
        rewrite(column, self.mask, self.context.limits.value_bytes, write)
    }

    /// Rewrites the values that are there.
    fn present(
        &self,
        column: &StringArray,
        write: impl Fn(&str, &mut Cells) -> Result<(), TooLong>,
    ) -> Result<StringArray, TooLong> {
        self.each(column, |_, value, cells| {
            match value {
                Some(value) => {
                    write(value, cells)?;
                    cells.end();
                }
                None => cells.absent(),
            }
            Ok(())
        })
    }

    fn combine(
        &self,
        items: &Items<'_>,
        column: usize,
        values: &[Operand],
    ) -> Result<StringArray, TooLong> {
        let sources: Vec<Source<'_>> = values
            .iter()
            .map(|value| Source::of(value, items))
            .collect();
        self.each(items.text(column), |row, _, cells| {
            for source in &sources {
                match source {
                    Source::Text(text) => cells.write(text)?,
                    Source::Column(column) if column.is_valid(row) => {
                        cells.write(column.value(row))?
                    }
                    Source::Column(_) => {}
                }
            }
            cells.end();
            Ok(())
        })
    }

    fn arithmetic(
        &self,
        items: &mut Items<'_>,
        column: usize,
        arithmetic: &Arithmetic,
    ) -> Result<StringArray, TooLong> {
        let left = items.numbers(column);
        let right = match &arithmetic.value {
            Some(Side::Field(name)) => items.find(name).map(|other| items.numbers(other)),
            _ => None,
        };
        let right = |row: usize| match &arithmetic.value {
            None => Some(0.0),
            Some(Side::Static(number)) => *number,
            Some(Side::Field(_)) => right
                .as_ref()
                .filter(|right| right.is_valid(row))
                .map(|right| right.value(row)),
        };
        self.each(items.text(column), |row, value, cells| {
            let left = left.is_valid(row).then(|| left.value(row));
            match left
                .zip(right(row))
                .and_then(|(left, right)| calculated(arithmetic.operation, left, right))
            {
                Some(result) => {
                    cells.write(&number::write(result, arithmetic.decimals))?;
                    cells.end();
                    Ok(())
                }
                None => cells.keep(value),
            }
        })
    }
}

/// Part of a combined value.
enum Source<'a> {
    Text(&'a str),
    Column(&'a StringArray),
}

impl<'a> Source<'a> {
    fn of(value: &'a Operand, items: &'a Items<'_>) -> Self {
        match value {
            Operand::Text(text) => Source::Text(text),
            Operand::Field(name) => match items.find(name) {
                Some(column) => Source::Column(items.text(column)),
                None => Source::Text(""),
            },
        }
    }
}

fn bytes_of(column: &StringArray) -> usize {
    let offsets = column.value_offsets();
    offsets[column.len()].abs_diff(offsets[0]) as usize
}

/// What the table has for a value; without that, the default; without that, the value itself.
fn found<'a>(lookup: &'a Lookup, value: Option<&'a str>) -> Option<&'a str> {
    let entry = value.and_then(|value| lookup.table.get(value));
    entry
        .or(lookup.default.as_ref())
        .map(|text| &**text)
        .or(value)
}

/// `None` where the result is no finite number.
fn calculated(operation: Operation, left: f64, right: f64) -> Option<f64> {
    let result = match operation {
        Operation::Add => left + right,
        Operation::Subtract => left - right,
        Operation::Multiply => left * right,
        Operation::Divide => left / right,
        Operation::Round => left,
    };
    result.is_finite().then_some(result)
}
