// SPDX-License-Identifier: Apache-2.0
//! What a host has in its cache: the same for ever.

use serde_json::{Value, json};

/// The keys of host `number` of `hosts`.
pub(crate) fn of_host(number: usize, hosts: usize, keys: usize) -> Vec<String> {
    (number..keys)
        .step_by(hosts.max(1))
        .map(|key| format!("key-{key}"))
        .collect()
}

/// The answer to `GET /cache?QUERY`: everything, or nothing new to whoever knows it.
pub(crate) fn page(keys: &[String], epoch: u64, query: &str) -> Value {
    let known = query == format!("since=1&epoch={epoch}");
    let added = if known { &[] } else { keys };
    json!({"version": 1, "epoch": epoch, "reset": !known, "added": added, "removed": []})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_in_one_cache() {
        let all: Vec<String> = (0..3).flat_map(|host| of_host(host, 3, 10)).collect();
        assert_eq!(all.len(), 10);
        assert_eq!(of_host(1, 3, 10), ["key-1", "key-4", "key-7"]);
    }

    #[test]
    fn who_knows_everything_is_told_nothing() {
        let keys = of_host(0, 2, 3);
        assert_eq!(page(&keys, 7, "")["added"], json!(["key-0", "key-2"]));
        assert_eq!(page(&keys, 7, "since=1&epoch=6")["reset"], true);
        let page = page(&keys, 7, "since=1&epoch=7");
        assert_eq!(
            (&page["reset"], &page["added"]),
            (&json!(false), &json!([]))
        );
    }
}
