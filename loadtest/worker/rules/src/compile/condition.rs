// SPDX-License-Identifier: Apache-2.0
//! Conditions are checked.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::Compiler;
use crate::date::Moment;
use crate::number;
use crate::plan::{
    Condition, DateRelation, Filter, List, Operand, Relation, Side, Test, TextRelation,
};
use crate::request::path::Path;
use crate::request::value::{Scalar, Value, field_name};
use crate::request::{BadRequest, FilterName, Node, at_most};

impl Compiler<'_> {
    pub(super) fn nodes(
        &mut self,
        path: &Path<'_>,
        nodes: &[Node],
    ) -> Result<Vec<Condition>, BadRequest> {
        let one = |(at, node)| self.node(&path.index(at), node);
        nodes.iter().enumerate().map(one).collect()
    }

    /// A node holds if its own filter holds or any of its children does: the first rule of Listing 1
    /// (document 001) removes items whose price is missing *or* at most zero, and writes the second
    /// as a child of the first.
    fn node(&mut self, path: &Path<'_>, node: &Node) -> Result<Condition, BadRequest> {
        let own = Condition::Test(self.test(path, node)?);
        if node.children.is_empty() {
            return Ok(own);
        }
        let mut any = vec![own];
        any.extend(self.nodes(&path.key("children"), &node.children)?);
        Ok(Condition::Any(any))
    }

    fn test(&mut self, path: &Path<'_>, node: &Node) -> Result<Test, BadRequest> {
        let field = field_name(&path.key("field"), &node.field, self.limits)?;
        let cased = matches!(
            node.filter,
            FilterName::IsEqual
                | FilterName::IsNotEqual
                | FilterName::Contains
                | FilterName::NotContains
                | FilterName::StartsWith
                | FilterName::EndsWith
                | FilterName::MatchesRegex
                | FilterName::NotMatchesRegex
                | FilterName::InList
                | FilterName::NotInList
        );
        if node.ignore_case.is_some() && !cased {
            return Err(path
                .key("ignore_case")
                .refuse("only filters on text have it"));
        }
        let filter = self.filter(path, node)?;
        let not = matches!(
            node.filter,
            FilterName::IsNotEmpty
                | FilterName::IsNotEqual
                | FilterName::NotContains
                | FilterName::NotMatchesRegex
                | FilterName::NotInList
        );
        Ok(Test { field, not, filter })
    }

    fn filter(&mut self, path: &Path<'_>, node: &Node) -> Result<Filter, BadRequest> {
        let ignore_case = node.ignore_case.unwrap_or(false);
        let at = &path.key("value");
        let text = |relation| self.text(at, node, relation, ignore_case);
        let number = |relation| self.number(at, node, relation);
        let date = |relation| self.date(at, node, relation);
        match node.filter {
            FilterName::IsEmpty | FilterName::IsNotEmpty => match node.value {
                Some(_) => Err(at.refuse("this filter takes no value")),
                None => Ok(Filter::Empty),
            },
            FilterName::IsEqual | FilterName::IsNotEqual => self.equal(at, node, ignore_case),
            FilterName::IsGreaterThan => number(Relation::Greater),
            FilterName::IsGreaterEqual => number(Relation::GreaterEqual),
            FilterName::IsLessThan => number(Relation::Less),
            FilterName::IsLessEqual => number(Relation::LessEqual),
            FilterName::Contains | FilterName::NotContains => text(TextRelation::Contains),
            FilterName::StartsWith => text(TextRelation::StartsWith),
            FilterName::EndsWith => text(TextRelation::EndsWith),
            FilterName::MatchesRegex | FilterName::NotMatchesRegex => {
                self.regex(at, node, ignore_case)
            }
            FilterName::InList | FilterName::NotInList => self.list(at, node, ignore_case),
            FilterName::IsBefore => date(DateRelation::Before),
            FilterName::IsAfter => date(DateRelation::After),
            FilterName::IsOn => date(DateRelation::On),
        }
    }

    fn value(&self, at: &Path<'_>, node: &Node) -> Result<Value, BadRequest> {
        Value::read(at, needed(at, node)?, self.limits)
    }

    /// A number that stands in the request compares as a number, everything else as text.
    fn equal(&self, at: &Path<'_>, node: &Node, ignore_case: bool) -> Result<Filter, BadRequest> {
        match self.value(at, node)? {
            Value::Static(Scalar {
                number: Some(number),
                ..
            }) => Ok(Filter::Number {
                relation: Relation::Equal,
                value: Side::Static(Some(number)),
            }),
            value => Ok(text_filter(value, TextRelation::Equal, ignore_case)),
        }
    }

    fn text(
        &self,
        at: &Path<'_>,
        node: &Node,
        relation: TextRelation,
        ignore_case: bool,
    ) -> Result<Filter, BadRequest> {
        Ok(text_filter(self.value(at, node)?, relation, ignore_case))
    }

    fn number(&self, at: &Path<'_>, node: &Node, relation: Relation) -> Result<Filter, BadRequest> {
        let value = match self.value(at, node)? {
            Value::Static(scalar) => Side::Static(number::read(&scalar.text)),
            Value::Field(name) => Side::Field(name),
        };
        Ok(Filter::Number { relation, value })
    }

    fn date(
        &self,
        at: &Path<'_>,
        node: &Node,
        relation: DateRelation,
    ) -> Result<Filter, BadRequest> {
        let value = match self.value(at, node)? {
            Value::Static(scalar) => Side::Static(Moment::read(&scalar.text)),
            Value::Field(name) => Side::Field(name),
        };
        Ok(Filter::Date { relation, value })
    }

    fn regex(
        &mut self,
        at: &Path<'_>,
        node: &Node,
        ignore_case: bool,
    ) -> Result<Filter, BadRequest> {
        match self.value(at, node)? {
            Value::Static(Scalar { text, number: None }) => {
                self.pattern(at, &text, ignore_case).map(Filter::Regex)
            }
            _ => Err(at.refuse("must be a text: the regular expression")),
        }
    }

    fn list(&self, at: &Path<'_>, node: &Node, ignore_case: bool) -> Result<Filter, BadRequest> {
        let entries: Vec<Box<RawValue>> = at.read(needed(at, node)?)?;
        at_most(at, entries.len(), self.limits.list_length)?;
        let mut list = List {
            texts: HashSet::new(),
            numbers: Vec::new(),
            ignore_case,
        };
        for (index, entry) in entries.iter().enumerate() {
            let Scalar { text, number } = Scalar::read(&at.index(index), entry, self.limits)?;
            match number {
                Some(number) => list.numbers.push(number),
                None if ignore_case => drop(list.texts.insert(text.to_lowercase().into())),
                None => drop(list.texts.insert((*text).into())),
            }
        }
        list.numbers.sort_unstable_by(f64::total_cmp);
        list.numbers.dedup();
        Ok(Filter::List(list))
    }
}

fn needed<'a>(at: &Path<'_>, node: &'a Node) -> Result<&'a RawValue, BadRequest> {
    node.value
        .as_deref()
        .ok_or_else(|| at.refuse("this filter needs a value"))
}

fn text_filter(value: Value, relation: TextRelation, ignore_case: bool) -> Filter {
    let value = match value {
        Value::Static(scalar) if ignore_case => Operand::Text(scalar.text.to_lowercase().into()),
        Value::Static(scalar) => Operand::Text(scalar.text),
        Value::Field(name) => Operand::Field(name),
    };
    Filter::Text {
        relation,
        value,
        ignore_case,
    }
}
