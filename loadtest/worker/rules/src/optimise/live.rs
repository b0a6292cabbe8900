// SPDX-License-Identifier: Apache-2.0
//! Writes to fields that nothing reads afterwards.

use std::collections::HashSet;
use std::sync::Arc;

use crate::plan::{Action, Condition, Operator, Output};

/// Fields whose value may still matter: all but some, or only some.
#[derive(Clone)]
struct Live<'a> {
    all: bool,
    except: HashSet<&'a str>,
}

impl<'a> Live<'a> {
    /// What the search, the sorting and the output read.
    fn after(output: &'a Output) -> Self {
        let omitted = output.omit.iter().map(|name| &**name).collect();
        let mut live = match &output.fields {
            Some(_) => Self {
                all: false,
                except: HashSet::new(),
            },
            None => Self {
                all: true,
                except: omitted,
            },
        };
        for field in output.fields.iter().flatten() {
            if output.omit.binary_search(field).is_err() {
                live.insert(field);
            }
        }
        output.sort.iter().for_each(|key| live.insert(&key.field));
        match output.search.as_ref().map(|search| &search.fields) {
            Some(Some(fields)) => fields.iter().for_each(|field| live.insert(field)),
            Some(None) => {
                live = Self {
                    all: true,
                    except: HashSet::new(),
                }
            }
            None => {}
        }
        live
    }

    fn contains(&self, field: &str) -> bool {
        self.all != self.except.contains(field)
    }

    fn insert(&mut self, field: &'a str) {
        if self.all {
            self.except.remove(field);
        } else {
            self.except.insert(field);
        }
    }

    fn remove(&mut self, field: &'a str) {
        if self.all {
            self.except.insert(field);
        } else {
            self.except.remove(field);
        }
    }

    /// What is live in either.
    fn or(self, other: Self) -> Self {
        let both = |one: &HashSet<&'a str>, two: &HashSet<&'a str>| {
            one.intersection(two).copied().collect()
        };
        let except = match (self.all, other.all) {
            (true, true) => both(&self.except, &other.except),
            (true, false) => self.except.difference(&other.except).copied().collect(),
            (false, true) => other.except.difference(&self.except).copied().collect(),
            (false, false) => self.except.union(&other.except).copied().collect(),
        };
        Self {
            all: self.all || other.all,
            except,
        }
    }
}

/// The operators without actions whose field no later condition, value, search, sort or output reads.
pub(crate) fn without_dead_writes(operators: Vec<Operator>, output: &Output) -> Vec<Operator> {
    // One backward pass marks, so that the names it borrows outlive it; a forward pass drops.
    let mut live = Live::after(output);
    let mut marks = Vec::with_capacity(operators.len());
    for operator in operators.iter().rev() {
        let (actions, before) = mark(&operator.actions, live.clone());
        let (else_actions, otherwise) = mark(&operator.else_actions, live);
        live = match operator.condition {
            Condition::Constant(true) => before,
            _ => before.or(otherwise),
        };
        if actions.contains(&true) || else_actions.contains(&true) {
            operator.condition.reads(&mut |field| live.insert(field));
        }
        marks.push((actions, else_actions));
    }
    marks.reverse();
    let keep = |(operator, (actions, else_actions)): (Operator, (Vec<bool>, Vec<bool>))| {
        let operator = Operator {
            actions: marked(operator.actions, &actions),
            else_actions: marked(operator.else_actions, &else_actions),
            ..operator
        };
        let idle = operator.actions.is_empty() && operator.else_actions.is_empty();
        (!idle).then_some(operator)
    };
    operators.into_iter().zip(marks).filter_map(keep).collect()
}

/// Which actions matter if `live` is read after them, and what is read from before them on.
fn mark<'a>(actions: &'a [Action], mut live: Live<'a>) -> (Vec<bool>, Live<'a>) {
    let mut marks: Vec<bool> = actions
        .iter()
        .rev()
        .map(|action| match action {
            Action::RemoveItem => {
                // Of an item that is removed nothing is read any more.
                live = Live {
                    all: false,
                    except: HashSet::new(),
                };
                true
            }
            Action::Change { field, .. } if !live.contains(field) => false,
            Action::Change { field, change } => {
                if !change.reads_itself() {
                    live.remove(field);
                }
                change.reads(&mut |field: &'a Arc<str>| live.insert(field));
                true
            }
        })
        .collect();
    marks.reverse();
    (marks, live)
}

fn marked(actions: Vec<Action>, marks: &[bool]) -> Vec<Action> {
    let kept = |(action, mark): (Action, &bool)| mark.then_some(action);
    actions.into_iter().zip(marks).filter_map(kept).collect()
}
