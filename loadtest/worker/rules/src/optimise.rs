// SPDX-License-Identifier: Apache-2.0
//! Steps that cannot change the output are left out (document 001, section 3.3, step 3).
//!
//! [`fold`] looks at conditions alone, so equal shared rules stay equal and sharable, whatever
//! channel they came with. [`without_dead_writes`] looks at the output that one channel asked for,
//! so it may only touch that channel's own rules: a shared result serves channels with other outputs.
//!
//! A write that is left out cannot fail either: a request may succeed optimised that would
//! otherwise have made a value too long for the limits.

mod condition;
mod live;

use crate::plan::{Action, Condition, Operator};

pub(crate) use live::without_dead_writes;

/// Decides conditions that hold always or never, and drops operators that do nothing.
pub(crate) fn fold(operators: Vec<Operator>) -> Vec<Operator> {
    let mut folded = Vec::with_capacity(operators.len());
    for operator in operators {
        let operator = decided(operator);
        if operator.actions.is_empty() && operator.else_actions.is_empty() {
            continue;
        }
        let removes_all = matches!(operator.condition, Condition::Constant(true))
            && matches!(operator.actions.last(), Some(Action::RemoveItem));
        folded.push(operator);
        if removes_all {
            break;
        }
    }
    folded
}

/// An operator whose condition is decided keeps one list of actions, which it always performs.
fn decided(mut operator: Operator) -> Operator {
    operator.condition = condition::fold(operator.condition);
    match operator.condition {
        Condition::Constant(true) => operator.else_actions = Vec::new(),
        Condition::Constant(false) => {
            operator.condition = Condition::Constant(true);
            operator.actions = std::mem::take(&mut operator.else_actions);
        }
        _ => {}
    }
    until_removed(&mut operator.actions);
    until_removed(&mut operator.else_actions);
    operator
}

/// Nothing can be done to an item that is removed.
fn until_removed(actions: &mut Vec<Action>) {
    let removal = actions
        .iter()
        .position(|action| matches!(action, Action::RemoveItem));
    if let Some(at) = removal {
        actions.truncate(at + 1);
    }
}
