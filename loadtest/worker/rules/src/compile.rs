// SPDX-License-Identifier: Apache-2.0
//! Requests are checked and put into the form that is evaluated.

use std::collections::HashSet;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use crate::limits::Limits;
use crate::optimise;
use crate::plan::{Action, Condition, Key, Operator, Output, Pattern, Plan, Rules, Sought};
use crate::request::path::Path;
use crate::request::value::{field_name, fits};
use crate::request::{self, BadRequest, Request, at_most};

mod action;
mod condition;
mod replacement;

impl Request {
    /// Checks the meaning of what was written and compiles it. With `optimise`, steps that cannot
    /// change the output are left out (document 001, section 3.3, step 3).
    ///
    /// # Errors
    /// The path and the reason.
    pub fn compile(&self, limits: &Limits, optimise: bool) -> Result<Plan, BadRequest> {
        let mut compiler = Compiler { limits, regexes: 0 };
        let root = Path::Root;
        let mut shared =
            compiler.operators(&root.key("shared_operators"), &self.shared_operators)?;
        let mut own = compiler.operators(&root.key("operators"), &self.operators)?;
        let output = compiler.output(self)?;
        let (shared_created, own_created) = (created(&shared), created(&own));
        at_most(
            &root,
            shared_created.len() + own_created.len(),
            limits.columns,
        )?;
        if optimise {
            shared = optimise::fold(shared);
            own = optimise::without_dead_writes(optimise::fold(own), &output);
        }
        Ok(Plan {
            shared: Rules::new(shared_created, shared),
            own: Rules::new(own_created, own),
            output,
            cache: self.cache,
        })
    }
}

/// Fields that actions may add to items, in the order of the actions.
fn created(operators: &[Operator]) -> Arc<[Arc<str>]> {
    let mut seen = HashSet::new();
    let mut names = Vec::new();
    let actions = operators
        .iter()
        .flat_map(|operator| operator.actions.iter().chain(&operator.else_actions));
    for action in actions {
        if let Action::Change { field, change } = action
            && change.creates()
            && seen.insert(field)
        {
            names.push(Arc::clone(field));
        }
    }
    names.into()
}

/// Compiles the parts of one request.
struct Compiler<'a> {
    limits: &'a Limits,
    regexes: usize,
}

impl Compiler<'_> {
    fn operators(
        &mut self,
        path: &Path<'_>,
        written: &[request::Operator],
    ) -> Result<Vec<Operator>, BadRequest> {
        let one = |(at, operator)| self.operator(&path.index(at), operator);
        written.iter().enumerate().map(one).collect()
    }

    fn operator(
        &mut self,
        path: &Path<'_>,
        written: &request::Operator,
    ) -> Result<Operator, BadRequest> {
        let label = match &written.name {
            Some(name) => {
                fits(&path.key("name"), name, self.limits)?;
                format!("{path} {name:?}")
            }
            None => path.to_string(),
        };
        Ok(Operator {
            label: label.into(),
            condition: Condition::All(self.nodes(&path.key("condition"), &written.condition)?),
            actions: self.actions(&path.key("actions"), &written.actions)?,
            else_actions: self.actions(&path.key("else_actions"), &written.else_actions)?,
        })
    }

    fn pattern(
        &mut self,
        path: &Path<'_>,
        source: &str,
        ignore_case: bool,
    ) -> Result<Pattern, BadRequest> {
        self.regexes += 1;
        let Limits {
            regexes,
            regex_pattern_bytes,
            regex_compiled_bytes,
            ..
        } = *self.limits;
        if self.regexes > regexes {
            return Err(path.refuse(format!(
                "goes over the {regexes} regular expressions that a request may have"
            )));
        }
        if source.len() > regex_pattern_bytes {
            return Err(path.refuse(format!(
                "a regular expression may have at most {regex_pattern_bytes} bytes"
            )));
        }
        let regex = RegexBuilder::new(source)
            .case_insensitive(ignore_case)
            .size_limit(regex_compiled_bytes)
            .dfa_size_limit(regex_compiled_bytes)
            .build()
            .map_err(|error| path.refuse(refused(&error)))?;
        Ok(Pattern {
            regex,
            source: source.into(),
            ignore_case,
        })
    }

    fn names(&self, path: &Path<'_>, names: &[String]) -> Result<Vec<Arc<str>>, BadRequest> {
        let mut seen = HashSet::new();
        let mut known = Vec::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            let path = path.index(at);
            if !seen.insert(name) {
                return Err(path.refuse(format!("the field {name:?} stands here twice")));
            }
            known.push(field_name(&path, name, self.limits)?);
        }
        Ok(known)
    }

    fn output(&self, written: &Request) -> Result<Output, BadRequest> {
        let root = Path::Root;
        let mut omit = self.names(&root.key("omit"), &written.omit)?;
        omit.sort_unstable();
        let fields = match &written.fields {
            Some(fields) => Some(self.names(&root.key("fields"), fields)?),
            None => None,
        };
        let sort = root.key("sort");
        let key = |(at, key): (usize, &request::SortKey)| {
            let field = field_name(&sort.index(at).key("field"), &key.field, self.limits)?;
            Ok(Key {
                field,
                order: key.order,
                read_as: key.read_as,
            })
        };
        Ok(Output {
            search: self.search(&root.key("search"), written.search.as_ref())?,
            sort: written
                .sort
                .iter()
                .enumerate()
                .map(key)
                .collect::<Result<_, _>>()?,
            fields,
            omit,
            format: written.format,
        })
    }

    fn search(
        &self,
        path: &Path<'_>,
        written: Option<&request::Search>,
    ) -> Result<Option<Sought>, BadRequest> {
        let Some(search) = written else {
            return Ok(None);
        };
        fits(&path.key("text"), &search.text, self.limits)?;
        let fields = match &search.fields {
            Some(fields) => Some(self.names(&path.key("fields"), fields)?),
            None => None,
        };
        let sought = Sought {
            text: search.text.to_lowercase().into(),
            fields,
        };
        Ok((!search.text.is_empty()).then_some(sought))
    }
}

/// What the regex crate says, in one line.
fn refused(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(limit) => {
            format!("the regular expression takes over {limit} bytes once compiled: repeat less")
        }
        other => {
            let text = other.to_string();
            let reason = text.lines().last().unwrap_or_default();
            format!(
                "not a regular expression: {}",
                reason.trim_start_matches("error: ")
            )
        }
    }
}

/// The number of a group that is written as a number or a name.
fn group(regex: &Regex, name: &str) -> Option<usize> {
    match name.parse::<usize>() {
        Ok(number) => (number < regex.captures_len()).then_some(number),
        Err(_) => regex.capture_names().position(|group| group == Some(name)),
    }
}
