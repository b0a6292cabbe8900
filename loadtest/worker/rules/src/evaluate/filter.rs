// SPDX-License-Identifier: Apache-2.0
//! Which items a condition holds for.

use std::cmp::Ordering;

use arrow::array::{Array, BooleanArray, Datum, Float64Array, StringArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp;
use arrow::compute::{contains, ends_with, starts_with};
use arrow::error::ArrowError;

use super::EvaluateError;
use super::items::Items;
use super::lower::TooLong;
use crate::date::Moment;
use crate::plan::{
    Condition, DateRelation, Filter, List, Operand, Pattern, Relation, Side, Test, TextRelation,
};

/// A mask of the items that `condition` holds for.
pub(super) fn holds(
    condition: &Condition,
    items: &mut Items<'_>,
) -> Result<BooleanBuffer, EvaluateError> {
    match condition {
        Condition::Constant(holds) => Ok(constant(*holds, items)),
        Condition::Test(test) => {
            let mask = asked(test, items)?;
            Ok(if test.not { !&mask } else { mask })
        }
        Condition::All(parts) => {
            let mut mask = constant(true, items);
            for part in parts {
                mask &= &holds(part, items)?;
                if !mask.has_true() {
                    break;
                }
            }
            Ok(mask)
        }
        Condition::Any(parts) => {
            let mut mask = constant(false, items);
            for part in parts {
                mask |= &holds(part, items)?;
                if !mask.has_false() {
                    break;
                }
            }
            Ok(mask)
        }
    }
}

fn constant(holds: bool, items: &Items<'_>) -> BooleanBuffer {
    if holds {
        BooleanBuffer::new_set(items.rows())
    } else {
        BooleanBuffer::new_unset(items.rows())
    }
}

/// The test without its `not`.
fn asked(test: &Test, items: &mut Items<'_>) -> Result<BooleanBuffer, EvaluateError> {
    let Some(column) = items.find(&test.field) else {
        return Ok(constant(matches!(test.filter, Filter::Empty), items));
    };
    match &test.filter {
        Filter::Empty => Ok(empty(items.text(column))),
        Filter::Text {
            relation,
            value,
            ignore_case,
        } => {
            let mask = texts(items, column, *relation, value, *ignore_case);
            mask.map_err(|error| error.of(&test.field))
        }
        Filter::Number { relation, value } => Ok(numbers(items, column, *relation, value)?),
        Filter::Regex(pattern) => matches_regex(items, column, pattern),
        Filter::List(list) => {
            in_list(items, column, list).map_err(|_| TextError::TooLong.of(&test.field))
        }
        Filter::Date { relation, value } => Ok(dates(items, column, *relation, value)),
    }
}

/// Where the mask is set and not null.
fn present(mask: BooleanArray) -> BooleanBuffer {
    let (values, nulls) = mask.into_parts();
    match nulls {
        Some(nulls) => &values & nulls.inner(),
        None => values,
    }
}

/// No kernel: Arrow's `length` would make a column of numbers first.
fn empty(column: &StringArray) -> BooleanBuffer {
    let offsets = column.value_offsets();
    let empty = BooleanBuffer::collect_bool(column.len(), |row| offsets[row] == offsets[row + 1]);
    match column.nulls() {
        Some(nulls) => &empty | &!nulls.inner(),
        None => empty,
    }
}

/// Why texts could not be compared.
enum TextError {
    TooLong,
    Arrow(ArrowError),
}

impl From<TooLong> for TextError {
    fn from(_: TooLong) -> Self {
        TextError::TooLong
    }
}

impl TextError {
    fn of(self, field: &str) -> EvaluateError {
        match self {
            TextError::TooLong => EvaluateError::ColumnTooLong {
                operator: "ignoring case".to_owned(),
                field: field.to_owned(),
            },
            TextError::Arrow(error) => EvaluateError::Arrow(error),
        }
    }
}

fn texts(
    items: &mut Items<'_>,
    column: usize,
    relation: TextRelation,
    value: &Operand,
    ignore_case: bool,
) -> Result<BooleanBuffer, TextError> {
    let other = match value {
        Operand::Text(text) => {
            let scalar = StringArray::new_scalar(&**text);
            return match ignore_case {
                true => compare_texts(&*items.lowered(column)?, relation, &scalar),
                false => compare_texts(items.text(column), relation, &scalar),
            };
        }
        Operand::Field(name) => items.find(name),
    };
    let Some(other) = other else {
        return Ok(constant(false, items));
    };
    if ignore_case {
        let (column, other) = (items.lowered(column)?, items.lowered(other)?);
        return compare_texts(&*column, relation, &*other);
    }
    compare_texts(items.text(column), relation, items.text(other))
}

fn compare_texts(
    left: &dyn Datum,
    relation: TextRelation,
    right: &dyn Datum,
) -> Result<BooleanBuffer, TextError> {
    let mask = match relation {
        TextRelation::Equal => cmp::eq(left, right),
        TextRelation::Contains => contains(left, right),
        TextRelation::StartsWith => starts_with(left, right),
        TextRelation::EndsWith => ends_with(left, right),
    };
    mask.map(present).map_err(TextError::Arrow)
}

fn numbers(
    items: &mut Items<'_>,
    column: usize,
    relation: Relation,
    value: &Side<f64>,
) -> Result<BooleanBuffer, ArrowError> {
    let left = items.numbers(column);
    match value {
        Side::Static(None) => Ok(constant(false, items)),
        Side::Static(Some(number)) => {
            compare_numbers(&left, relation, &Float64Array::new_scalar(*number))
        }
        Side::Field(name) => match items.find(name) {
            Some(other) => compare_numbers(&left, relation, &*items.numbers(other)),
            None => Ok(constant(false, items)),
        },
    }
}

/// Arrow orders floats totally, which differs from numbers only in what `number::read` never gives.
fn compare_numbers(
    left: &Float64Array,
    relation: Relation,
    right: &dyn Datum,
) -> Result<BooleanBuffer, ArrowError> {
    let mask = match relation {
        Relation::Equal => cmp::eq(left, right),
        Relation::Greater => cmp::gt(left, right),
        Relation::GreaterEqual => cmp::gt_eq(left, right),
        Relation::Less => cmp::lt(left, right),
        Relation::LessEqual => cmp::lt_eq(left, right),
    };
    mask.map(present)
}

/// No kernel: Arrow's compiles the pattern for each batch, without the limits set on it. A large
/// expression takes long on a long text, so `stop` is looked at for each.
fn matches_regex(
    items: &Items<'_>,
    column: usize,
    pattern: &Pattern,
) -> Result<BooleanBuffer, EvaluateError> {
    let mask = rows(items.text(column), |text| {
        !items.stopped() && pattern.regex.is_match(text)
    });
    if items.stopped() {
        Err(EvaluateError::Stopped)
    } else {
        Ok(mask)
    }
}

/// No kernel: Arrow has none for a set.
fn in_list(items: &mut Items<'_>, column: usize, list: &List) -> Result<BooleanBuffer, TooLong> {
    let mut mask = if list.texts.is_empty() {
        constant(false, items)
    } else if list.ignore_case {
        rows(&*items.lowered(column)?, |text| list.texts.contains(text))
    } else {
        rows(items.text(column), |text| list.texts.contains(text))
    };
    if !list.numbers.is_empty() {
        let numbers = items.numbers(column);
        let known = |number: f64| {
            list.numbers
                .binary_search_by(|listed| listed.total_cmp(&number))
                .is_ok()
        };
        mask |= &BooleanBuffer::collect_bool(numbers.len(), |row| {
            numbers.is_valid(row) && known(numbers.value(row))
        });
    }
    Ok(mask)
}

fn rows(column: &StringArray, holds: impl Fn(&str) -> bool) -> BooleanBuffer {
    BooleanBuffer::collect_bool(column.len(), |row| {
        column.is_valid(row) && holds(column.value(row))
    })
}

/// No kernel: some of the dates are days and some are instants.
fn dates(
    items: &mut Items<'_>,
    column: usize,
    relation: DateRelation,
    value: &Side<Moment>,
) -> BooleanBuffer {
    let related = |left: &Moment, right: &Moment| match relation {
        DateRelation::Before => left.compare(right) == Ordering::Less,
        DateRelation::After => left.compare(right) == Ordering::Greater,
        DateRelation::On => left.same_day(right),
    };
    let left = items.moments(column);
    match value {
        Side::Static(None) => constant(false, items),
        Side::Static(Some(right)) => BooleanBuffer::collect_bool(left.len(), |row| {
            left[row].is_some_and(|left| related(&left, right))
        }),
        Side::Field(name) => {
            let Some(other) = items.find(name) else {
                return constant(false, items);
            };
            let right = items.moments(other);
            let both = |row: usize| left[row].as_ref().zip(right[row].as_ref());
            BooleanBuffer::collect_bool(left.len(), |row| {
                both(row).is_some_and(|(left, right)| related(left, right))
            })
        }
    }
}

/// Items of a batch that have `text`, in lower case, somewhere in one of `columns`.
pub(crate) fn search(
    items: &mut Items<'_>,
    columns: impl Iterator<Item = usize>,
    text: &str,
) -> Result<BooleanBuffer, EvaluateError> {
    let scalar = StringArray::new_scalar(text);
    let mut mask = constant(false, items);
    for column in columns {
        let lowered = items
            .lowered(column)
            .map_err(|error| TextError::from(error).of("search"))?;
        mask |= &compare_texts(&*lowered, TextRelation::Contains, &scalar)
            .map_err(|error| error.of("search"))?;
        if !mask.has_false() {
            break;
        }
    }
    Ok(mask)
}
