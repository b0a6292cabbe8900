// SPDX-License-Identifier: Apache-2.0
//! Conditions that hold always or never.

use std::collections::HashMap;

use crate::plan::{Condition, Filter, Operand, Relation, Side, Test, TextRelation, digest};

/// A condition that holds for the same items, with what can be decided decided.
pub(super) fn fold(condition: Condition) -> Condition {
    match condition {
        Condition::Constant(_) => condition,
        Condition::Test(test) => match decide(&test) {
            Some(holds) => Condition::Constant(holds),
            None => Condition::Test(test),
        },
        Condition::All(parts) => join(parts, true, Condition::All),
        Condition::Any(parts) => join(parts, false, Condition::Any),
    }
}

/// Joins parts by AND (`neutral` is true) or OR (`neutral` is false).
fn join(parts: Vec<Condition>, neutral: bool, of: fn(Vec<Condition>) -> Condition) -> Condition {
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts {
        match fold(part) {
            Condition::Constant(holds) if holds == neutral => {}
            Condition::Constant(_) => return Condition::Constant(!neutral),
            part => kept.push(part),
        }
    }
    if complements(&kept) || (neutral && contradicts(&kept)) {
        return Condition::Constant(!neutral);
    }
    match kept.len() {
        0 => Condition::Constant(neutral),
        1 => kept.remove(0),
        _ => of(kept),
    }
}

/// A filter whose right side alone decides it.
fn decide(test: &Test) -> Option<bool> {
    let never = match &test.filter {
        Filter::Number {
            value: Side::Static(None),
            ..
        }
        | Filter::Date {
            value: Side::Static(None),
            ..
        } => true,
        Filter::List(list) => list.texts.is_empty() && list.numbers.is_empty(),
        _ => false,
    };
    never.then_some(test.not)
}

fn tests(parts: &[Condition]) -> impl Iterator<Item = &Test> {
    parts.iter().filter_map(|part| match part {
        Condition::Test(test) => Some(test),
        _ => None,
    })
}

/// Whether a test and its complement are both among the parts: never together, always one of them.
fn complements(parts: &[Condition]) -> bool {
    let mut asked = HashMap::new();
    tests(parts).any(|test| *asked.entry(digest::question(test)).or_insert(test.not) != test.not)
}

/// What the tests of one field leave possible.
struct Possible<'a> {
    empty: bool,
    /// Some test holds only for numbers.
    number: bool,
    above: f64,
    above_itself: bool,
    below: f64,
    below_itself: bool,
    text: Option<&'a str>,
}

/// Whether no value of some field passes all tests on it.
fn contradicts(parts: &[Condition]) -> bool {
    let mut fields: HashMap<&str, Possible<'_>> = HashMap::new();
    tests(parts).filter(|test| !test.not).any(|test| {
        let possible = fields.entry(&test.field).or_insert(Possible {
            empty: false,
            number: false,
            above: f64::NEG_INFINITY,
            above_itself: true,
            below: f64::INFINITY,
            below_itself: true,
            text: None,
        });
        possible.narrow(&test.filter)
    })
}

impl<'a> Possible<'a> {
    /// Whether nothing is possible any more once `filter` holds as well.
    fn narrow(&mut self, filter: &'a Filter) -> bool {
        match filter {
            Filter::Empty => self.empty = true,
            Filter::Number {
                relation,
                value: Side::Static(Some(bound)),
            } => self.bound(*relation, *bound),
            Filter::Number { .. } | Filter::Date { .. } => {
                self.number |= matches!(filter, Filter::Number { .. })
            }
            Filter::Text {
                relation: TextRelation::Equal,
                value: Operand::Text(text),
                ignore_case: false,
            } => {
                let before = self.text.replace(text);
                return before.is_some_and(|before| before != &**text);
            }
            _ => {}
        }
        let closed = self.above_itself && self.below_itself;
        let none = self.above > self.below || (self.above == self.below && !closed);
        none || (self.empty && self.number)
    }

    fn bound(&mut self, relation: Relation, bound: f64) {
        self.number = true;
        let itself = matches!(
            relation,
            Relation::Equal | Relation::GreaterEqual | Relation::LessEqual
        );
        let lower = matches!(
            relation,
            Relation::Equal | Relation::Greater | Relation::GreaterEqual
        );
        let upper = matches!(
            relation,
            Relation::Equal | Relation::Less | Relation::LessEqual
        );
        if lower && (bound > self.above || (bound == self.above && !itself)) {
            (self.above, self.above_itself) = (bound, itself);
        }
        if upper && (bound < self.below || (bound == self.below && !itself)) {
            (self.below, self.below_itself) = (bound, itself);
        }
    }
}
