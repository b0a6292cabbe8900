// SPDX-License-Identifier: Apache-2.0
//! Whether all contestants make the same of the same items. The order of fields may differ.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use super::cost;
use super::engine;
use super::items::{Items, write_result};
use super::programs::Programs;
use super::sets::RuleSet;

/// Fails with the first item that a program makes otherwise than the engine.
pub(super) fn check(set: &RuleSet, items: &Items, programs: &Programs) -> Result<()> {
    let ours = items.folder().join("ours.out");
    let plan = engine::compile(set.request.as_bytes(), true)?;
    write_result(&plan, &engine::apply(&plan, &items.feed)?, &ours)?;
    for program in programs.iter() {
        let script = program.install(set, items.folder())?;
        let theirs = items.folder().join("theirs.out");
        let output = Stdio::from(File::create(&theirs)?);
        cost::of_program(&mut program.command(&script, &items.file, output))?;
        same(&ours, &theirs).with_context(|| {
            format!(
                "{}, {} (right) against the engine (left)",
                set.name, program.name
            )
        })?;
        std::fs::remove_file(theirs)?;
    }
    Ok(std::fs::remove_file(ours)?)
}

fn same(left: &Path, right: &Path) -> Result<()> {
    let mut left = BufReader::new(File::open(left)?).lines();
    let mut right = BufReader::new(File::open(right)?).lines();
    for line in 1.. {
        let (left, right) = (left.next().transpose()?, right.next().transpose()?);
        match (left, right) {
            (None, None) => break,
            (Some(left), Some(right)) => {
                same_item(&left, &right).with_context(|| format!("item {line}"))?
            }
            (left, right) => bail!("item {line}: {left:?} against {right:?}"),
        }
    }
    Ok(())
}

fn same_item(left: &str, right: &str) -> Result<()> {
    let (left, right): (Map<String, Value>, Map<String, Value>) =
        (serde_json::from_str(left)?, serde_json::from_str(right)?);
    let differs = |key: &&String| left.get(*key) != right.get(*key);
    match left.keys().chain(right.keys()).find(differs) {
        Some(key) => bail!("`{key}`: {:?} against {:?}", left.get(key), right.get(key)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::sets;

    #[test]
    fn engine_jq_and_python_make_the_same_of_each_item() {
        let programs = Programs::find().unwrap();
        for seed in 1..4 {
            let items = Items::make(400, seed).unwrap();
            for set in &sets::ALL {
                check(set, &items, &programs).unwrap();
                let plan = engine::compile(set.request.as_bytes(), true).unwrap();
                let left = engine::apply(&plan, &items.feed).unwrap().items();
                assert!((200..400).contains(&left), "{}: {left} items", set.name);
            }
        }
    }

    #[test]
    fn a_difference_is_told() {
        let error = |left, right| same_item(left, right).unwrap_err().to_string();
        assert!(same_item(r#"{"a":"1","b":"2"}"#, r#"{"b":"2","a":"1"}"#).is_ok());
        let text = error(r#"{"a":"1","b":"2"}"#, r#"{"b":"3","a":"1"}"#);
        assert_eq!(text, r#"`b`: Some(String("2")) against Some(String("3"))"#);
        assert!(error("{}", r#"{"a":""}"#).starts_with("`a`: None"));
    }

    #[test]
    fn a_program_that_stops_early_differs() {
        let folder = tempfile::tempdir().unwrap();
        let (left, right) = (folder.path().join("left"), folder.path().join("right"));
        std::fs::write(&left, "{}\n{\"a\":\"b\"}\n").unwrap();
        std::fs::write(&right, "{}\n").unwrap();
        let error = same(&left, &right).unwrap_err().to_string();
        assert!(error.starts_with("item 2: Some("), "{error}");
    }
}
