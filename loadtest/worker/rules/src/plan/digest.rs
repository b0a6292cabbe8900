// SPDX-License-Identifier: Apache-2.0
//! The identity of rules: a digest of an unambiguous encoding, every text with its length first.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{
    Action, Change, Condition, Filter, Lookup, Operand, Operator, Part, Pattern, Replace, Side,
    Test,
};

/// Changes with the meaning of any rule, so that identities of different releases differ.
const VERSION: &str = "weir-rules/1";

pub(crate) fn rules(created: &[Arc<str>], operators: &[Operator]) -> [u8; 16] {
    let mut code = Code::default();
    code.text(VERSION);
    code.list(created, |code, name| code.text(name));
    code.list(operators, |code, operator| {
        code.condition(&operator.condition);
        code.list(&operator.actions, Code::action);
        code.list(&operator.else_actions, Code::action);
    });
    let digest = Sha256::digest(&code.0);
    std::array::from_fn(|at| digest[at])
}

/// What a test asks, without `not`: two tests of equal encodings are each other's complement or equal.
pub(crate) fn question(test: &Test) -> Vec<u8> {
    let mut code = Code::default();
    code.text(&test.field);
    code.filter(&test.filter);
    code.0
}

#[derive(Default)]
struct Code(Vec<u8>);

impl Code {
    fn tag(&mut self, tag: u8) {
        self.0.push(tag);
    }

    fn count(&mut self, count: usize) {
        self.0.extend((count as u64).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.extend(text.as_bytes());
    }

    fn number(&mut self, number: f64) {
        self.0.extend(number.to_bits().to_le_bytes());
    }

    fn list<T>(&mut self, entries: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.count(entries.len());
        entries.iter().for_each(|entry| each(self, entry));
    }

    fn option<T>(&mut self, value: Option<T>, each: impl FnOnce(&mut Self, T)) {
        self.tag(u8::from(value.is_some()));
        if let Some(value) = value {
            each(self, value);
        }
    }

    fn operand(&mut self, operand: &Operand) {
        let (tag, text) = match operand {
            Operand::Text(text) => (0, text),
            Operand::Field(name) => (1, name),
        };
        self.tag(tag);
        self.text(text);
    }

    fn side<T>(&mut self, side: &Side<T>, each: impl FnOnce(&mut Self, &T)) {
        match side {
            Side::Static(value) => {
                self.tag(0);
                self.option(value.as_ref(), each);
            }
            Side::Field(name) => {
                self.tag(1);
                self.text(name);
            }
        }
    }

    fn pattern(&mut self, pattern: &Pattern) {
        self.text(&pattern.source);
        self.tag(u8::from(pattern.ignore_case));
    }

    fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::Constant(holds) => self.0.extend([0, u8::from(*holds)]),
            Condition::All(parts) => {
                self.tag(1);
                self.list(parts, Self::condition);
            }
            Condition::Any(parts) => {
                self.tag(2);
                self.list(parts, Self::condition);
            }
            Condition::Test(test) => {
                self.0.extend([3, u8::from(test.not)]);
                self.text(&test.field);
                self.filter(&test.filter);
            }
        }
    }

    fn filter(&mut self, filter: &Filter) {
        match filter {
            Filter::Empty => self.tag(0),
            Filter::Text {
                relation,
                value,
                ignore_case,
            } => {
                self.0.extend([1, *relation as u8, u8::from(*ignore_case)]);
                self.operand(value);
            }
            Filter::Number { relation, value } => {
                self.0.extend([2, *relation as u8]);
                self.side(value, |code, number| code.number(*number));
            }
            Filter::Regex(pattern) => {
                self.tag(3);
                self.pattern(pattern);
            }
            Filter::List(list) => {
                self.0.extend([4, u8::from(list.ignore_case)]);
                let mut texts: Vec<_> = list.texts.iter().collect();
                texts.sort_unstable();
                self.list(&texts, |code, text| code.text(text));
                self.list(&list.numbers, |code, number| code.number(*number));
            }
            Filter::Date { relation, value } => {
                self.0.extend([5, *relation as u8]);
                self.side(value, |code, moment| code.text(&moment.identity()));
            }
        }
    }

    fn action(&mut self, action: &Action) {
        match action {
            Action::RemoveItem => self.tag(0),
            Action::Change { field, change } => {
                self.tag(1);
                self.text(field);
                self.change(change);
            }
        }
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::Remove => self.tag(0),
            Change::Set(value) => {
                self.tag(1);
                self.operand(value);
            }
            Change::Case(case) => self.0.extend([2, *case as u8]),
            Change::Combine(values) => {
                self.tag(3);
                self.list(values, Self::operand);
            }
            Change::Number(arithmetic) => {
                self.0.extend([4, arithmetic.operation as u8]);
                self.option(arithmetic.decimals, Self::count);
                self.option(arithmetic.value.as_ref(), |code, value| {
                    code.side(value, |code, number| code.number(*number));
                });
            }
            Change::Split { separator, index } => {
                self.tag(5);
                self.text(separator);
                self.count(*index);
            }
            Change::Replace(replace) => self.replace(replace),
            Change::Lookup(lookup) => self.lookup(lookup),
        }
    }

    fn replace(&mut self, replace: &Replace) {
        match replace {
            Replace::Text {
                search,
                replacement,
            } => {
                self.tag(6);
                self.text(search);
                self.text(replacement);
            }
            Replace::Regex {
                search,
                replacement,
            } => {
                self.tag(7);
                self.pattern(search);
                self.list(replacement, |code, part| match part {
                    Part::Text(text) => {
                        code.tag(0);
                        code.text(text);
                    }
                    Part::Group(group) => {
                        code.tag(1);
                        code.count(*group);
                    }
                });
            }
        }
    }

    fn lookup(&mut self, lookup: &Lookup) {
        self.tag(8);
        let mut entries: Vec<_> = lookup.table.iter().collect();
        entries.sort_unstable();
        self.list(&entries, |code, (key, value)| {
            code.text(key);
            code.text(value);
        });
        self.option(lookup.default.as_ref(), |code, default| code.text(default));
    }
}
