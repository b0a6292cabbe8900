// SPDX-License-Identifier: Apache-2.0
//! Configurations that are refused: Envoy then keeps the old one.

use weir_testkit::{Error, LogLevel};

use weir_harness::{A, Chosen, Proxy, RULES, ask, keeper, table, up};

#[test]
fn each_bad_configuration_is_refused_with_field_and_reason_and_the_old_one_goes_on() {
    let long = format!(r#"{{"control_cluster":"{}"}}"#, "x".repeat(121));
    let many = (0..65)
        .map(|n| format!(r#""c{n}":{{}}"#))
        .collect::<Vec<_>>()
        .join(",");
    let many = format!(r#"{{"clusters":{{{many}}}}}"#);
    let bad = [
        ("{", "EOF while parsing"),
        ("[]", "a list where an object is due"),
        (r#"{"tick_ms":5}"#, "unknown field `tick_ms`"),
        (r#"{"clusters":{"a":{"keys":{}}}}"#, "unknown field `keys`"),
        (
            r#"{"clusters":{"a":{"key":{"cookie":"x"}}}}"#,
            "unknown variant `cookie`",
        ),
        (r#"{"clusters":{"a":{"user":"header"}}}"#, "invalid type"),
        (r#"{"trust":"everybody"}"#, "unknown variant `everybody`"),
        (
            r#"{"control_cluster":""}"#,
            "control_cluster: \"\" is not 1 to 120 ASCII",
        ),
        (&long, "control_cluster:"),
        (r#"{"control_cluster":"wéir"}"#, "control_cluster:"),
        (&many, "clusters: 65 are more than the limit of 64"),
        (r#"{"clusters":{"*":{}}}"#, "clusters.*.table: is needed"),
        (
            r#"{"clusters":{"a":{"table":""}}}"#,
            "clusters.a.table: is not 1 to 255 bytes",
        ),
        (
            r#"{"clusters":{"a":{"key":{"header":"X-Key"}}}}"#,
            "clusters.a.key.header: \"X-Key\"",
        ),
        (
            r#"{"clusters":{"a":{"key":{"path":"/no/key"}}}}"#,
            "clusters.a.key.path:",
        ),
        (
            r#"{"clusters":{"a":{"user":{"header":":path"}}}}"#,
            "clusters.a.user.header:",
        ),
        (
            r#"{"clusters":{"a":{"priority_header":""}}}"#,
            "clusters.a.priority_header:",
        ),
        (
            r#"{"priorities":{"low":32}}"#,
            "priorities.low: 32 is not in 0..=31",
        ),
        (r#"{"priorities":{"low":-1}}"#, "invalid value"),
        (
            r#"{"default_priority":"mid"}"#,
            "default_priority: \"mid\" is not one of priorities",
        ),
        (r#"{"tick":"9ms"}"#, "tick: \"9ms\" is not in 10ms..=1000ms"),
        (r#"{"tick":50}"#, "invalid type"),
        (
            r#"{"lease":"61s"}"#,
            "lease: \"61s\" is not in 500ms..=60000ms",
        ),
        (
            r#"{"lease":"1m"}"#,
            "lease: \"1m\" is not a number with ms or s",
        ),
        (r#"{"lease":"99999999999999999999s"}"#, "lease:"),
        (
            r#"{"report_interval":"50ms"}"#,
            "report_interval: \"50ms\" is not in",
        ),
    ];
    let proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    let vm = proxy.worker();
    for (configuration, expected) in bad {
        vm.take_logs();
        let refused = vm.configure(configuration);
        let callback = "proxy_on_configure";
        assert!(
            matches!(refused, Err(Error::Refused { callback: at }) if at == callback),
            "{configuration}: {refused:?}"
        );
        let logged = vm.logs_at(LogLevel::Error).join(" ");
        assert!(logged.starts_with("plugin configuration: "), "{logged}");
        assert!(logged.contains(expected), "{logged} / {expected}");
        assert_eq!(ask(vm, "key").first(), A);
    }
    assert_eq!(vm.roots().len(), 1);
}

#[test]
fn no_configuration_is_the_default_one() {
    for configuration in ["", "{}", " \n"] {
        let proxy = Proxy::start(configuration);
        // A worker of the other shell is woken only while it has requests.
        let vm = &proxy.vms[keeper(2)];
        let tick = vm.tick_period(vm.roots()[0]);
        assert_eq!(tick, Some(std::time::Duration::from_millis(50)));
        proxy.run(weir_harness::TICKS);
        assert!(proxy.ads().requests().is_empty(), "nothing is wanted");
    }
}
