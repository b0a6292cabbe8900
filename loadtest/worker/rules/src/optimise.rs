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

#[cfg(test)]
mod tests {
    use crate::limits::Limits;
    use crate::request::Request;

    /// How many operators and actions are left of one's own `operators`.
    fn left(operators: &str, output: &str) -> (usize, usize) {
        let body = format!(
            r#"{{"session_id": "s", "project_id": 1, "operators": [{operators}] {output}}}"#
        );
        let request = Request::parse(body.as_bytes(), &Limits::default()).unwrap();
        let own = request.compile(&Limits::default(), true).unwrap().own;
        let actions =
            |operator: &crate::plan::Operator| operator.actions.len() + operator.else_actions.len();
        (own.operators.len(), own.operators.iter().map(actions).sum())
    }

    /// Whether `{act} if nodes else {act, act}` is known to hold (1 action), not to (2), or neither (3).
    fn actions_left(nodes: &str) -> usize {
        let set = r#"{"field": "x", "action": "set", "value": 1}"#;
        let case = r#"{"field": "x", "action": "texttransform", "value": "trim"}"#;
        let operator = format!(
            r#"{{"condition": [{nodes}], "actions": [{set}], "else_actions": [{set}, {case}]}}"#
        );
        left(&operator, "").1
    }

    fn node(filter: &str, value: &str) -> String {
        let value = if value.is_empty() {
            String::new()
        } else {
            format!(r#", "value": {value}"#)
        };
        format!(r#"{{"field": "f", "filter": "{filter}"{value}}}"#)
    }

    #[test]
    fn conditions_that_cannot_hold_are_found() {
        let never = [
            vec![node("is_empty", ""), node("is_not_empty", "")],
            vec![node("is_greater_than", r#""much""#)],
            vec![node("is_on", "\"soon\"")],
            vec![node("in_list", "[]")],
            vec![node("is_greater_than", "3"), node("is_less_than", "3")],
            vec![node("is_greater_than", "3"), node("is_equal", "3")],
            vec![node("is_greater_equal", "3"), node("is_less_than", "3")],
            vec![node("is_equal", "2"), node("is_greater_equal", "3")],
            vec![node("is_equal", "\"a\""), node("is_equal", "\"b\"")],
            vec![node("is_empty", ""), node("is_less_than", "3")],
            vec![node("contains", "\"a\""), node("not_contains", "\"a\"")],
        ];
        for nodes in never {
            assert_eq!(actions_left(&nodes.join(",")), 2, "{nodes:?}");
        }
    }

    #[test]
    fn conditions_that_always_hold_are_found() {
        assert_eq!(actions_left(""), 1);
        assert_eq!(actions_left(&node("not_in_list", "[]")), 1);
        let child = r#"{"field": "f", "filter": "is_empty", "children": [{"field": "f", "filter": "is_not_empty"}]}"#;
        assert_eq!(actions_left(child), 1);
    }

    #[test]
    fn conditions_that_may_hold_are_kept() {
        let may = [
            vec![node("is_empty", "")],
            vec![node("is_greater_equal", "3"), node("is_less_equal", "3")],
            vec![node("is_equal", "3"), node("is_equal", "\"3.0\"")],
            vec![node("is_less_than", "3"), node("is_less_than", "4")],
            vec![node("contains", "\"a\""), node("not_contains", "\"b\"")],
            vec![node("is_not_equal", "\"a\""), node("is_not_equal", "\"b\"")],
        ];
        for nodes in may {
            assert_eq!(actions_left(&nodes.join(",")), 3, "{nodes:?}");
        }
    }

    #[test]
    fn writes_that_nothing_reads_are_left_out() {
        let set = |field: &str| {
            format!(r#"{{"actions": [{{"field": "{field}", "action": "set", "value": 1}}]}}"#)
        };
        let copy = r#"{"actions": [{"field": "b", "action": "set", "value": {"type": "field", "value": "a"}}]}"#;
        let tested = r#"{"condition": [{"field": "a", "filter": "is_empty"}], "actions": [{"field": "all", "action": "remove"}]}"#;
        assert_eq!(left(&set("a"), "").0, 1);
        assert_eq!(left(&set("a"), r#", "omit": ["a"]"#).0, 0);
        assert_eq!(left(&set("a"), r#", "fields": ["b"]"#).0, 0);
        assert_eq!(
            left(&set("a"), r#", "omit": ["a"], "sort": [{"field": "a"}]"#).0,
            1
        );
        assert_eq!(
            left(&set("a"), r#", "omit": ["a"], "search": {"text": "x"}"#).0,
            1
        );
        assert_eq!(
            left(
                &set("a"),
                r#", "omit": ["a"], "search": {"text": "x", "fields": ["b"]}"#
            )
            .0,
            0
        );
        assert_eq!(
            left(&format!("{}, {copy}", set("a")), r#", "omit": ["a"]"#).0,
            2
        );
        assert_eq!(
            left(&format!("{}, {copy}", set("a")), r#", "omit": ["a", "b"]"#).0,
            0
        );
        assert_eq!(
            left(&format!("{}, {tested}", set("a")), r#", "omit": ["a"]"#).0,
            2
        );
        assert_eq!(
            left(&format!("{tested}, {}", set("a")), r#", "omit": ["a"]"#).0,
            1
        );
        // The second write replaces what the first one wrote.
        assert_eq!(left(&format!("{}, {}", set("a"), set("a")), "").0, 1);
    }

    #[test]
    fn nothing_follows_the_removal_of_items() {
        let all = r#"{"actions": [{"field": "all", "action": "remove"}, {"field": "a", "action": "set", "value": 1}]}"#;
        assert_eq!(left(&format!("{all}, {all}"), ""), (1, 1));
    }
}
