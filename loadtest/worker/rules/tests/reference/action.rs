// SPDX-License-Identifier: Apache-2.0
//! Actions on one item.

use serde_json::Value;

use crate::Item;
use crate::filter::{number_of, text_of, value_of};

/// Whether the item is still there.
pub(crate) fn act(action: &Value, item: &mut Item) -> bool {
    let field = action["field"].as_str().unwrap().to_owned();
    let value = &action["value"];
    let before = item.get(&field).cloned();
    let after = match action["action"].as_str().unwrap() {
        "remove" if field == "all" => return false,
        "remove" => None,
        "set" => value_of(value, item),
        "texttransform" => before.map(|text| transformed(&text, value.as_str().unwrap())),
        "combine" => {
            let parts = value.as_array().unwrap().iter();
            Some(
                parts
                    .map(|part| value_of(part, item).unwrap_or_default())
                    .collect(),
            )
        }
        "number" => before.map(|text| calculated(&text, value, item).unwrap_or(text)),
        "split" => before.and_then(|text| {
            let parts: Vec<&str> = text.split(value["separator"].as_str().unwrap()).collect();
            parts
                .get(value["index"].as_u64().unwrap() as usize)
                .map(|part| (*part).to_owned())
        }),
        "replace" => before.map(|text| replaced(&text, value)),
        "lookup" => {
            let entry = before.as_ref().and_then(|text| value["table"].get(text));
            let found = entry.or(value.get("default")).map(text_of);
            found.or(before)
        }
        other => panic!("{other} is not known"),
    };
    match after {
        Some(text) => item.insert(field, text),
        None => item.remove(&field),
    };
    true
}

fn capitalized(word: &str, rest: fn(&str) -> String) -> String {
    match word.char_indices().nth(1) {
        Some((second, _)) => word[..second].to_uppercase() + &rest(&word[second..]),
        None => word.to_uppercase(),
    }
}

fn transformed(text: &str, case: &str) -> String {
    match case {
        "lowercase" => text.to_lowercase(),
        "uppercase" => text.to_uppercase(),
        "trim" => text.trim().to_owned(),
        "capitalize" => capitalized(text, str::to_owned),
        "titlecase" => {
            let mut title = String::new();
            let mut word = String::new();
            for letter in text.chars() {
                if letter.is_whitespace() {
                    title += &capitalized(&std::mem::take(&mut word), str::to_lowercase);
                    title.push(letter);
                } else {
                    word.push(letter);
                }
            }
            title + &capitalized(&word, str::to_lowercase)
        }
        other => panic!("{other} is not known"),
    }
}

fn calculated(text: &str, value: &Value, item: &Item) -> Option<String> {
    let left = number_of(text)?;
    let operation = value["operation"].as_str().unwrap();
    let right = || number_of(&value_of(&value["value"], item)?);
    let result = match operation {
        "add" => left + right()?,
        "subtract" => left - right()?,
        "multiply" => left * right()?,
        "divide" => left / right()?,
        _ => left,
    };
    let decimals = value["decimals"]
        .as_u64()
        .or((operation == "round").then_some(0));
    result.is_finite().then(|| match decimals {
        Some(decimals) => rounded(result, decimals as usize),
        None if result == 0.0 => "0".to_owned(),
        None => result.to_string(),
    })
}

/// The shortest decimal text of a number, as a whole number of the last decimal, rounded half up.
fn rounded(number: f64, decimals: usize) -> String {
    let text = number.abs().to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    if fraction.is_empty() {
        let sign = if number < 0.0 { "-" } else { "" };
        let zeros = "0".repeat(decimals);
        return if decimals == 0 {
            format!("{sign}{whole}")
        } else {
            format!("{sign}{whole}.{zeros}")
        };
    }
    // A half is decided by the first digit that is dropped, so twenty digits are enough.
    let digits: String = fraction
        .chars()
        .chain("0".repeat(20).chars())
        .take(20)
        .collect();
    let scaled: u128 = format!("{whole}{digits}").parse().unwrap();
    let unit = 10_u128.pow(20 - decimals as u32);
    let rounded = (scaled + unit / 2) / unit;
    let sign = if number < 0.0 && rounded > 0 { "-" } else { "" };
    let one = 10_u128.pow(decimals as u32);
    match decimals {
        0 => format!("{sign}{rounded}"),
        _ => format!("{sign}{}.{:0decimals$}", rounded / one, rounded % one),
    }
}

fn replaced(text: &str, value: &Value) -> String {
    let (search, replacement) = (
        value["search"].as_str().unwrap(),
        value["replacement"].as_str().unwrap(),
    );
    if value["regex"] == true {
        return regex::Regex::new(search)
            .unwrap()
            .replace_all(text, replacement)
            .into_owned();
    }
    text.replace(search, replacement)
}

/// Appends the fields that operators may add to items.
pub(crate) fn add_created(operators: &Value, columns: &mut Vec<String>) {
    for operator in operators.as_array().into_iter().flatten() {
        for list in ["actions", "else_actions"] {
            for action in operator[list].as_array().into_iter().flatten() {
                let name = action["action"].as_str().unwrap();
                let creates = matches!(name, "set" | "combine")
                    || (name == "lookup" && action["value"].get("default").is_some());
                let field = action["field"].as_str().unwrap();
                if creates && !columns.iter().any(|known| known == field) {
                    columns.push(field.to_owned());
                }
            }
        }
    }
}
