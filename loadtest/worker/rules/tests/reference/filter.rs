// SPDX-License-Identifier: Apache-2.0
//! Conditions on one item.

use std::cmp::Ordering;

use serde_json::Value;

use crate::Item;

/// A node holds if its own filter or any of its children does.
pub(crate) fn node_holds(node: &Value, item: &Item) -> bool {
    let children = node["children"].as_array().cloned().unwrap_or_default();
    filter_holds(node, item) || children.iter().any(|child| node_holds(child, item))
}

pub(crate) fn text_of(scalar: &Value) -> String {
    scalar
        .as_str()
        .map_or_else(|| scalar.to_string(), str::to_owned)
}

/// The text of a value: of the request or of a field.
pub(crate) fn value_of(value: &Value, item: &Item) -> Option<String> {
    match value["type"].as_str() {
        Some("field") => item.get(value["value"].as_str().unwrap()).cloned(),
        Some(_) => Some(text_of(&value["value"])),
        None => Some(text_of(value)),
    }
}

/// The number that stands in the request as a JSON number.
fn literal_number(value: &Value) -> Option<f64> {
    let scalar = if value.is_object() {
        if value["type"] == "field" {
            return None;
        }
        &value["value"]
    } else {
        value
    };
    scalar.as_f64()
}

pub(crate) fn number_of(text: &str) -> Option<f64> {
    text.trim()
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
}

fn filter_holds(node: &Value, item: &Item) -> bool {
    let name = node["filter"].as_str().unwrap();
    let opposite = match name {
        "is_not_empty" => Some("is_empty"),
        "is_not_equal" => Some("is_equal"),
        "not_contains" => Some("contains"),
        "not_matches_regex" => Some("matches_regex"),
        "not_in_list" => Some("in_list"),
        _ => None,
    };
    if let Some(opposite) = opposite {
        let mut node = node.clone();
        node["filter"] = Value::from(opposite);
        return !filter_holds(&node, item);
    }
    let Some(own) = item.get(node["field"].as_str().unwrap()) else {
        return name == "is_empty";
    };
    if name == "is_empty" {
        return own.is_empty();
    }
    let ignore_case = node["ignore_case"] == true;
    let cased = |text: &str| {
        if ignore_case {
            text.to_lowercase()
        } else {
            text.to_owned()
        }
    };
    let value = &node["value"];
    if name == "in_list" {
        let same = |entry: &Value| match entry.as_f64() {
            Some(number) => number_of(own) == Some(number),
            None => cased(own) == cased(&text_of(entry)),
        };
        return value.as_array().unwrap().iter().any(same);
    }
    let Some(other) = value_of(value, item) else {
        return false;
    };
    match name {
        "is_equal" => match literal_number(value) {
            Some(number) => number_of(own) == Some(number),
            None => cased(own) == cased(&other),
        },
        "contains" => cased(own).contains(&cased(&other)),
        "starts_with" => cased(own).starts_with(&cased(&other)),
        "ends_with" => cased(own).ends_with(&cased(&other)),
        "matches_regex" => {
            let flags = if ignore_case { "(?i)" } else { "" };
            regex::Regex::new(&format!("{flags}{other}"))
                .unwrap()
                .is_match(own)
        }
        "is_before" | "is_after" | "is_on" => dates_relate(name, own, &other),
        _ => number_of(own)
            .zip(number_of(&other))
            .is_some_and(|(own, other)| match name {
                "is_greater_than" => own > other,
                "is_greater_equal" => own >= other,
                "is_less_than" => own < other,
                "is_less_equal" => own <= other,
                _ => panic!("{name} is not known"),
            }),
    }
}

/// Day since 1970 and, for a date-time, nanoseconds since 1970.
fn date_of(text: &str) -> Option<(i64, Option<i128>)> {
    let text = text.trim();
    let utc = |date: jiff::civil::Date| date.at(0, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC).ok();
    if text.len() == 10 {
        let midnight = utc(jiff::civil::Date::strptime("%Y-%m-%d", text).ok()?)?;
        return Some((midnight.timestamp().as_second().div_euclid(86_400), None));
    }
    // RFC 3339 lets letters be small.
    let text = text.to_ascii_uppercase().replace('Z', "+00:00");
    let instant = jiff::Timestamp::strptime("%Y-%m-%dT%H:%M:%S%.f%:z", text).ok()?;
    Some((
        instant.as_second().div_euclid(86_400),
        Some(instant.as_nanosecond()),
    ))
}

fn dates_relate(name: &str, own: &str, other: &str) -> bool {
    let Some(((day, instant), (other_day, other_instant))) = date_of(own).zip(date_of(other))
    else {
        return false;
    };
    let order = match (instant, other_instant) {
        (Some(instant), Some(other)) => instant.cmp(&other),
        _ => day.cmp(&other_day),
    };
    match name {
        "is_before" => order == Ordering::Less,
        "is_after" => order == Ordering::Greater,
        _ => day == other_day,
    }
}
