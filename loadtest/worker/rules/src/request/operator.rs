// SPDX-License-Identifier: Apache-2.0
//! Operators as written.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::object::objects;
use super::path::Path;
use super::{BadRequest, Request};
use crate::limits::Limits;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Operator {
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) condition: Vec<Node>,
    #[serde(default)]
    pub(crate) actions: Vec<WrittenAction>,
    #[serde(default)]
    pub(crate) else_actions: Vec<WrittenAction>,
}

/// One entry of a condition. It holds if its own filter or any child holds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Node {
    pub(crate) field: String,
    pub(crate) filter: FilterName,
    #[serde(default)]
    pub(crate) value: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) ignore_case: Option<bool>,
    #[serde(default)]
    pub(crate) children: Vec<Node>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FilterName {
    IsEmpty,
    IsNotEmpty,
    IsEqual,
    IsNotEqual,
    IsGreaterThan,
    IsGreaterEqual,
    IsLessThan,
    IsLessEqual,
    Contains,
    NotContains,
    StartsWith,
    EndsWith,
    MatchesRegex,
    NotMatchesRegex,
    InList,
    NotInList,
    IsBefore,
    IsAfter,
    IsOn,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct WrittenAction {
    pub(crate) field: String,
    pub(crate) action: ActionName,
    #[serde(default)]
    pub(crate) value: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ActionName {
    Remove,
    Set,
    #[serde(rename = "texttransform")]
    TextTransform,
    Combine,
    Number,
    Split,
    Replace,
    Lookup,
}

objects!(Operator, Node, WrittenAction);

/// What is left of the limits while a request is counted.
struct Left<'a> {
    limits: &'a Limits,
    operators: usize,
    conditions: usize,
    actions: usize,
}

/// Counts operators, conditions and actions and refuses the first one too many.
pub(super) fn count(request: &Request, limits: &Limits) -> Result<(), BadRequest> {
    let mut left = Left {
        limits,
        operators: limits.operators,
        conditions: limits.conditions,
        actions: limits.actions,
    };
    let lists = [
        ("shared_operators", &request.shared_operators),
        ("operators", &request.operators),
    ];
    for (name, operators) in lists {
        let path = Path::Root.key(name);
        for (at, operator) in operators.iter().enumerate() {
            left.operator(&path.index(at), operator)?;
        }
    }
    Ok(())
}

impl Left<'_> {
    fn operator(&mut self, path: &Path<'_>, operator: &Operator) -> Result<(), BadRequest> {
        take(
            &mut self.operators,
            1,
            path,
            "operators",
            self.limits.operators,
        )?;
        let actions = [
            ("actions", &operator.actions),
            ("else_actions", &operator.else_actions),
        ];
        for (name, actions) in actions {
            take(
                &mut self.actions,
                actions.len(),
                &path.key(name),
                "actions",
                self.limits.actions,
            )?;
        }
        self.nodes(&path.key("condition"), &operator.condition, 1)
    }

    fn nodes(&mut self, path: &Path<'_>, nodes: &[Node], depth: usize) -> Result<(), BadRequest> {
        if nodes.is_empty() {
            return Ok(());
        }
        if depth > self.limits.condition_depth {
            let deepest = self.limits.condition_depth;
            return Err(path.refuse(format!(
                "is nested deeper than the {deepest} levels allowed"
            )));
        }
        take(
            &mut self.conditions,
            nodes.len(),
            path,
            "conditions",
            self.limits.conditions,
        )?;
        for (at, node) in nodes.iter().enumerate() {
            self.nodes(&path.index(at).key("children"), &node.children, depth + 1)?;
        }
        Ok(())
    }
}

fn take(
    left: &mut usize,
    used: usize,
    path: &Path<'_>,
    what: &str,
    limit: usize,
) -> Result<(), BadRequest> {
    *left = left.checked_sub(used).ok_or_else(|| {
        path.refuse(format!(
            "goes over the {limit} {what} that a request may have"
        ))
    })?;
    Ok(())
}
