// SPDX-License-Identifier: Apache-2.0
//! Search, sort, selection and NDJSON of whole items.

use std::cmp::Ordering;

use serde_json::Value;

use crate::Item;
use crate::filter::number_of;

fn names(list: &Value) -> Option<Vec<String>> {
    let names = list.as_array()?.iter();
    Some(
        names
            .map(|name| name.as_str().unwrap().to_owned())
            .collect(),
    )
}

pub(crate) fn write(request: &Value, columns: &[String], mut items: Vec<Item>) -> String {
    if let Some(text) = request["search"]["text"]
        .as_str()
        .filter(|text| !text.is_empty())
    {
        let fields = names(&request["search"]["fields"]);
        let text = text.to_lowercase();
        items.retain(|item| {
            let searched =
                |name: &String| fields.as_ref().is_none_or(|fields| fields.contains(name));
            item.iter()
                .any(|(name, value)| searched(name) && value.to_lowercase().contains(&text))
        });
    }
    // The last key first: each stable sort keeps the order of the ones before for equal items.
    for key in request["sort"].as_array().into_iter().flatten().rev() {
        items.sort_by(|one, two| compare(key, one, two));
    }
    let omit = names(&request["omit"]).unwrap_or_default();
    let mut fields = names(&request["fields"]).unwrap_or_else(|| columns.to_vec());
    fields.retain(|field| !omit.contains(field));
    let mut lines = String::new();
    for item in items {
        let entry = |field: &String| {
            let value = item.get(field)?;
            Some(format!(
                "{}:{}",
                Value::from(field.as_str()),
                Value::from(value.as_str())
            ))
        };
        let entries: Vec<String> = fields.iter().filter_map(entry).collect();
        lines += &format!("{{{}}}\n", entries.join(","));
    }
    lines
}

fn compare(key: &Value, one: &Item, two: &Item) -> Ordering {
    let field = key["field"].as_str().unwrap();
    let present = if key["as"] == "number" {
        let number = |item: &Item| number_of(item.get(field)?);
        order(number(one), number(two), |one, two| {
            one.partial_cmp(two).unwrap()
        })
    } else {
        order(one.get(field), two.get(field), |one, two| {
            one.as_bytes().cmp(two.as_bytes())
        })
    };
    match present {
        Ok(order) if key["order"] == "descending" => order.reverse(),
        Ok(order) | Err(order) => order,
    }
}

/// `Err` where a side is absent, which is last in either order.
fn order<T>(
    one: Option<T>,
    two: Option<T>,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Result<Ordering, Ordering> {
    match (one, two) {
        (Some(one), Some(two)) => Ok(compare(&one, &two)),
        (one, two) => Err(one.is_none().cmp(&two.is_none())),
    }
}
