// SPDX-License-Identifier: Apache-2.0
use super::*;

#[test]
fn no_class_is_more_important_than_the_cap() {
    let json = br#"{"max_priority":8,"default_priority":"a","priorities":{"a":0,"b":8,"c":20}}"#;
    let config = Config::parse(json).unwrap();
    let class = |name: &str| config.class(Some(name.as_bytes()));
    assert_eq!(["a", "b", "c", "?"].map(class), [8, 8, 20, 8]);
    assert_eq!(config.class(None), 8);
}

#[test]
fn nothing_written_is_the_default() {
    let config = Config::parse(b"").unwrap();
    assert_eq!(config, Config::parse(b"{}").unwrap());
    assert_eq!(config.control_cluster.as_deref(), Some("weir-control"));
    assert_eq!(
        (config.tick.as_millis(), config.lease.as_millis()),
        (50, 1000)
    );
    assert_eq!(config.cache_limit, 64 << 20);
    assert_eq!(config.class(Some(b"high")), 0);
    assert_eq!(config.class(Some(b"urgent")), 16);
    assert_eq!(config.class(Some(b"\xff")), 16);
    assert_eq!(config.class(None), 16);
}

#[test]
fn a_cluster_is_found_by_envoys_name_or_by_the_star() {
    let config = Config::parse(br#"{"clusters":{"a":{},"*":{"table":"rest"}}}"#).unwrap();
    assert_eq!(config.cluster(b"a").unwrap().table.as_ref(), "a");
    assert_eq!(config.cluster(b"b").unwrap().table.as_ref(), "rest");
    assert!(config.only_cluster().is_none());
}

#[test]
fn each_fault_is_named_with_its_field() {
    let faults: [(&str, &str); 32] = [
        (
            r#"{"clusters":{"a":{"prefill":{"table":"b"}}}}"#,
            "clusters.a.prefill: needs key.prompt",
        ),
        (
            r#"{"clusters":{"a":{"key":{"prompt":{}},"prefill":{}}}}"#,
            "clusters.a.prefill.table: is not 1 to 255 bytes",
        ),
        (
            r#"{"clusters":{"a":{"key":{"prompt":{}},"prefill":{"table":"a"}}}}"#,
            "clusters.a.prefill.table: is that of the cluster itself",
        ),
        (
            r#"{"clusters":{"a":{"key":{"prompt":{}},"prefill":{"table":"b","header":"X"}}}}"#,
            r#"clusters.a.prefill.header: "X" is not a lower-case"#,
        ),
        (
            r#"{"clusters":{"a":{"key":{"prompt":{}},"prefill":{"table":"b","header":"x-gateway-destination-endpoint"}}}}"#,
            r#"clusters.a.prefill.header: "x-gateway-destination-endpoint" says something else"#,
        ),
        (
            r#"{"clusters":{"a":{"key":{"prompt":{}},"prefill":{"table":"b","header":"x-weir-priority"}}}}"#,
            r#"clusters.a.prefill.header: "x-weir-priority" says something else"#,
        ),
        (
            r#"{"clusters":{"a":{"key":{"prompt":{}},"prefill":{"table":"b","header":"x-weir-any"}}}}"#,
            r#"clusters.a.prefill.header: "x-weir-any" says something else"#,
        ),
        (
            r#"{"clusters":{"a":{"key":{"prompt":{}},"prefill":{"table":"b","header":"grpc-timeout"}}}}"#,
            r#"clusters.a.prefill.header: "grpc-timeout" says something else"#,
        ),
        (
            r#"{"clusters":{"a":{"key":{"prompt":{"block_bytes":64}},"prefill":{"table":"b","above_bytes":"17KiB"}}}}"#,
            r#"clusters.a.prefill.above_bytes: "17KiB" is as much as keys tell of a prompt: 272 blocks of 64"#,
        ),
        (
            r#"{"cache_limit":"64"}"#,
            r#"cache_limit: "64" is not a whole number with KiB, MiB or GiB"#,
        ),
        (
            r#"{"cache_limit":"2GiB"}"#,
            r#"cache_limit: "2GiB" is not in 64KiB..=1GiB"#,
        ),
        (r#"{"tik":"1s"}"#, "unknown field `tik`"),
        (r#"{"clusters":{"a":{"keys":{}}}}"#, "unknown field `keys`"),
        (r#"{"trust":"some"}"#, "unknown variant `some`"),
        ("{", "EOF"),
        (
            r#"{"tick":"5ms"}"#,
            r#"tick: "5ms" is not in 10ms..=1000ms"#,
        ),
        (
            r#"{"lease":"1"}"#,
            r#"lease: "1" is not a number with ms or s behind it"#,
        ),
        (r#"{"control_cluster":""}"#, "control_cluster:"),
        (
            r#"{"priorities":{"x":32},"default_priority":"x"}"#,
            "priorities.x: 32 is not in 0..=31",
        ),
        (
            r#"{"max_priority":32}"#,
            "max_priority: 32 is not in 0..=31",
        ),
        (
            r#"{"default_priority":"x"}"#,
            r#"default_priority: "x" is not one of priorities (high, low)"#,
        ),
        (r#"{"clusters":{"*":{}}}"#, "clusters.*.table: is needed"),
        (
            r#"{"clusters":{"a":{"key":{"header":"X"}}}}"#,
            r#"clusters.a.key.header: "X" is not a lower-case"#,
        ),
        (
            r#"{"clusters":{"a":{"key":{"path":"/x"}}}}"#,
            "clusters.a.key.path:",
        ),
        (
            r#"{"clusters":{"a":{"key_salt":"0123"}}}"#,
            "clusters.a.key_salt: is not 32 hexadecimal digits",
        ),
        (
            r#"{"clusters":{"a":{"key_separator":"x"}}}"#,
            "clusters.a.key_separator: 'x' is not an ASCII punctuation",
        ),
        (
            r#"{"clusters":{"a":{"key_separator":";;"}}}"#,
            "a character",
        ),
        (r#"{"role":"host"}"#, "cores: 0 is not in 1..=4096"),
        (
            r#"{"role":"host","cores":1,"clusters":{"a":{}}}"#,
            "clusters: is not of role host",
        ),
        (
            r#"{"role":"attempt"}"#,
            "clusters: is needed by role attempt",
        ),
        (r#"{"cores":1}"#, "cores: is of role host alone"),
        (r#"{"bodies":true}"#, "bodies: is of role host alone"),
    ];
    for (json, expected) in faults {
        let message = Config::parse(json.as_bytes()).unwrap_err().to_string();
        assert!(message.contains(expected), "{json}: {message}");
    }
}

#[test]
fn the_key_is_the_segment_that_the_template_marks() {
    let template = "/v1/projects/{key}/run";
    assert_eq!(
        key_in_path(template, b"/v1/projects/7/run?x=1"),
        Some(&b"7"[..])
    );
    assert_eq!(key_in_path("/v1/{key}", b"/v1/7/anything"), Some(&b"7"[..]));
    assert_eq!(key_in_path(template, b"/v1/projects//run"), None);
    assert_eq!(key_in_path(template, b"/v2/projects/7/run"), None);
    assert_eq!(key_in_path(template, b"/v1/projects/7"), None);
}
