// SPDX-License-Identifier: Apache-2.0
//! The same header work in Envoy's Lua: who has the key is written into the script.

use std::fmt::Write;
use std::net::SocketAddr;

use crate::bench::request::case::key;
use crate::sidecar::DESTINATION;

/// As many as Weir names by default.
const NAMED: usize = 3;

pub(super) fn script(hosts: &[SocketAddr], keys: usize) -> String {
    let mut script = String::from("local held = {\n");
    for number in 0..keys {
        let named = hosts.iter().cycle().skip(number % hosts.len().max(1));
        let named: Vec<String> = named.take(NAMED).map(SocketAddr::to_string).collect();
        let _ = writeln!(script, "  [\"{}\"] = \"{}\",", key(number), named.join(","));
    }
    let _ = write!(
        script,
        r#"}}
function envoy_on_request(handle)
  local headers = handle:headers()
  local key = headers:get("x-weir-key")
  local priority = headers:get("x-weir-priority")
  local user = headers:get("x-weir-user")
  local hosts = key and held[key]
  if hosts and priority and user then
    headers:replace("{DESTINATION}", hosts)
  else
    headers:remove("{DESTINATION}")
  end
end
"#
    );
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_followed_by_its_holder_first() {
        let hosts = [1, 2, 3, 4].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let script = script(&hosts, 5);
        let line = r#"["key-3"] = "127.0.0.1:4,127.0.0.1:1,127.0.0.1:2""#;
        assert!(script.contains(line), "{script}");
        assert!(script.contains(r#"["key-4"] = "127.0.0.1:1,"#), "{script}");
    }
}
