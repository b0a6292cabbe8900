// SPDX-License-Identifier: Apache-2.0
//! One form for what means the same to Consul.

use std::hash::Hasher;

use serde_json::{Map, Value};
use siphasher::sip::SipHasher13;

/// Strings that hold JSON.
const DOCUMENTS: [&str; 2] = ["Configuration", "EnvoyClusterJSON"];

/// Consul answers with every field of its own, most of them empty, and with documents as they were written: empty
/// fields are left out here, and documents are values.
pub(crate) fn normal(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter_map(|(name, value)| {
                let value = match document(name, value) {
                    Some(document) => document,
                    None => normal(value),
                };
                (!is_empty(&value)).then(|| (name.clone(), value))
            });
            Value::Object(fields.collect())
        }
        Value::Array(all) => Value::Array(all.iter().map(normal).collect()),
        Value::String(text) => Value::String(text.trim().to_owned()),
        other => other.clone(),
    }
}

fn document(name: &str, value: &Value) -> Option<Value> {
    let text = value.as_str().filter(|_| DOCUMENTS.contains(&name))?;
    serde_json::from_str(text).ok()
}

/// What Consul writes for a field that nobody has set.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(all) => all.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
    }
}

/// 16 hexadecimal digits of values. Nobody is kept out by it: it tells a change by hand.
pub(crate) fn digest<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    let mut hasher = SipHasher13::new_with_keys(0, 0);
    for value in values {
        hasher.write(sorted(value).to_string().as_bytes());
    }
    format!("{:016x}", hasher.finish())
}

/// Whether a map keeps its order is another crate's choice.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name.clone(), sorted(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(all) => Value::Array(all.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_fields_and_the_layout_of_documents_mean_nothing() {
        let short = json!({"Name": "a", "Configuration": "{\"b\":false,\"a\":1}"});
        let long = json!({"Name": "a", "Required": false, "Arguments": {"X": null}, "List": [],
            "Configuration": "{ \"a\": 1,\n \"b\": false }\n"});
        assert_eq!(normal(&short), normal(&long));
    }

    #[test]
    fn a_digest_is_of_values_whatever_the_order_of_their_fields_and_stays_over_releases() {
        let of = |text| digest([&serde_json::from_str(text).unwrap()]);
        assert_eq!(of(r#"{"b": {}, "a": 1}"#), of(r#"{"a": 1, "b": {}}"#));
        assert_ne!(of(r#"{"b": {}, "a": 1}"#), of(r#"{"a": 1}"#));
        assert_eq!(of(r#"{"a": 1}"#), "f09b7e3add5e7062");
    }
}
