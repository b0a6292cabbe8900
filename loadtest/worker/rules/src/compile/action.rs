// SPDX-License-Identifier: Apache-2.0
//! Actions are checked.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Compiler, replacement};
use crate::number;
use crate::plan::{Action, Arithmetic, Case, Change, Lookup, Operand, Operation, Replace, Side};
use crate::request::object::objects;
use crate::request::path::Path;
use crate::request::value::{Scalar, Table, Value, field_name, fits};
use crate::request::{ActionName, BadRequest, WrittenAction, at_most};

/// The field by which `remove` means the item.
const ALL: &str = "all";

/// The most digits after the point that a result may be given: more are noise in an f64.
const DECIMALS: usize = 15;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum CaseName {
    Capitalize,
    Lowercase,
    Uppercase,
    Titlecase,
    Trim,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
struct Calculation {
    operation: OperationName,
    #[serde(default)]
    value: Option<Box<RawValue>>,
    #[serde(default)]
    decimals: Option<usize>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OperationName {
    Add,
    Subtract,
    Multiply,
    Divide,
    Round,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
struct Splitting {
    separator: String,
    index: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
struct Replacing {
    search: String,
    replacement: String,
    #[serde(default)]
    regex: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
struct LookingUp {
    table: Table,
    #[serde(default)]
    default: Option<Box<RawValue>>,
}

objects!(Calculation, Splitting, Replacing, LookingUp);

impl Compiler<'_> {
    pub(super) fn actions(
        &mut self,
        path: &Path<'_>,
        written: &[WrittenAction],
    ) -> Result<Vec<Action>, BadRequest> {
        let one = |(at, action)| self.action(&path.index(at), action);
        written.iter().enumerate().map(one).collect()
    }

    fn action(&mut self, path: &Path<'_>, written: &WrittenAction) -> Result<Action, BadRequest> {
        let field = field_name(&path.key("field"), &written.field, self.limits)?;
        let at = path.key("value");
        let Some(value) = written.value.as_deref() else {
            return match written.action {
                ActionName::Remove if written.field == ALL => Ok(Action::RemoveItem),
                ActionName::Remove => Ok(Action::Change {
                    field,
                    change: Change::Remove,
                }),
                _ => Err(at.refuse("this action needs a value")),
            };
        };
        if written.field == ALL {
            return Err(path
                .key("field")
                .refuse("only `remove`, without a value, acts on `all`"));
        }
        let change = match written.action {
            ActionName::Remove => return Err(at.refuse("this action takes no value")),
            ActionName::Set => Change::Set(self.operand(&at, value)?),
            ActionName::TextTransform => Change::Case(case(&at, value)?),
            ActionName::Combine => Change::Combine(self.operands(&at, value)?),
            ActionName::Number => Change::Number(self.arithmetic(&at, value)?),
            ActionName::Split => self.split(&at, value)?,
            ActionName::Replace => Change::Replace(self.replace(&at, value)?),
            ActionName::Lookup => Change::Lookup(self.lookup(&at, value)?),
        };
        Ok(Action::Change { field, change })
    }

    fn operand(&self, at: &Path<'_>, json: &RawValue) -> Result<Operand, BadRequest> {
        Ok(match Value::read(at, json, self.limits)? {
            Value::Static(scalar) => Operand::Text(scalar.text),
            Value::Field(name) => Operand::Field(name),
        })
    }

    fn operands(&self, at: &Path<'_>, json: &RawValue) -> Result<Vec<Operand>, BadRequest> {
        let entries: Vec<Box<RawValue>> = at.read(json)?;
        if entries.is_empty() {
            return Err(at.refuse("names nothing to combine"));
        }
        at_most(at, entries.len(), self.limits.list_length)?;
        let one = |(index, entry)| self.operand(&at.index(index), entry);
        entries
            .iter()
            .map(|entry| &**entry)
            .enumerate()
            .map(one)
            .collect()
    }

    fn arithmetic(&self, at: &Path<'_>, json: &RawValue) -> Result<Arithmetic, BadRequest> {
        let written: Calculation = at.read(json)?;
        let (operation, decimals) = match (written.operation, written.decimals) {
            (OperationName::Add, decimals) => (Operation::Add, decimals),
            (OperationName::Subtract, decimals) => (Operation::Subtract, decimals),
            (OperationName::Multiply, decimals) => (Operation::Multiply, decimals),
            (OperationName::Divide, decimals) => (Operation::Divide, decimals),
            (OperationName::Round, decimals) => (Operation::Round, Some(decimals.unwrap_or(0))),
        };
        if decimals.is_some_and(|decimals| decimals > DECIMALS) {
            return Err(at
                .key("decimals")
                .refuse(format!("at most {DECIMALS} decimals are allowed")));
        }
        let at = at.key("value");
        let value = match (operation, written.value) {
            (Operation::Round, None) => None,
            (Operation::Round, Some(_)) => return Err(at.refuse("rounding takes no value")),
            (_, None) => return Err(at.refuse("this operation needs a value")),
            (_, Some(value)) => Some(self.amount(&at, &value)?),
        };
        Ok(Arithmetic {
            operation,
            value,
            decimals,
        })
    }

    fn amount(&self, at: &Path<'_>, json: &RawValue) -> Result<Side<f64>, BadRequest> {
        match Value::read(at, json, self.limits)? {
            Value::Field(name) => Ok(Side::Field(name)),
            Value::Static(scalar) => match number::read(&scalar.text) {
                None => Err(at.refuse("must be a number or a field")),
                number => Ok(Side::Static(number)),
            },
        }
    }

    fn split(&self, at: &Path<'_>, json: &RawValue) -> Result<Change, BadRequest> {
        let Splitting { separator, index } = at.read(json)?;
        let at = at.key("separator");
        fits(&at, &separator, self.limits)?;
        if separator.is_empty() {
            return Err(at.refuse("must not be empty"));
        }
        Ok(Change::Split {
            separator: separator.into(),
            index,
        })
    }

    fn replace(&mut self, at: &Path<'_>, json: &RawValue) -> Result<Replace, BadRequest> {
        let Replacing {
            search,
            replacement,
            regex,
        } = at.read(json)?;
        let (search_at, replacement_at) = (at.key("search"), at.key("replacement"));
        fits(&search_at, &search, self.limits)?;
        fits(&replacement_at, &replacement, self.limits)?;
        if search.is_empty() {
            return Err(search_at.refuse("must not be empty"));
        }
        if !regex {
            return Ok(Replace::Text {
                search: search.into(),
                replacement: replacement.into(),
            });
        }
        let search = self.pattern(&search_at, &search, false)?;
        let replacement = replacement::parts(&replacement_at, &replacement, &search.regex)?;
        Ok(Replace::Regex {
            search,
            replacement,
        })
    }

    fn lookup(&self, at: &Path<'_>, json: &RawValue) -> Result<Lookup, BadRequest> {
        let LookingUp {
            table: Table(written),
            default,
        } = at.read(json)?;
        let table_at = at.key("table");
        at_most(&table_at, written.len(), self.limits.table_entries)?;
        let scalar = |at: &Path<'_>, json: &RawValue| -> Result<Arc<str>, BadRequest> {
            Ok(Scalar::read(at, json, self.limits)?.text)
        };
        let default = default
            .map(|json| scalar(&at.key("default"), &json))
            .transpose()?;
        let mut table = std::collections::HashMap::with_capacity(written.len());
        for (key, json) in written {
            let value = scalar(&table_at.key(&key), &json)?;
            table.insert(key, value);
        }
        Ok(Lookup { table, default })
    }
}

fn case(at: &Path<'_>, json: &RawValue) -> Result<Case, BadRequest> {
    Ok(match at.read(json)? {
        CaseName::Capitalize => Case::Capitalize,
        CaseName::Lowercase => Case::Lowercase,
        CaseName::Uppercase => Case::Uppercase,
        CaseName::Titlecase => Case::Titlecase,
        CaseName::Trim => Case::Trim,
    })
}
