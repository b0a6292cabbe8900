// SPDX-License-Identifier: Apache-2.0
//! What is refused, and where the refusal points.

use weir_rules::{BadRequest, Limits, Prefetch, Request};

fn refused_by(body: &[u8], limits: &Limits) -> BadRequest {
    let compiled = Request::parse(body, limits).and_then(|request| request.compile(limits, true));
    match compiled {
        Ok(_) => panic!("accepted: {}", String::from_utf8_lossy(body)),
        Err(error) => error,
    }
}

fn refused(body: &str) -> BadRequest {
    refused_by(body.as_bytes(), &Limits::default())
}

/// A request with `more` beside what every request has.
fn with(more: &str) -> String {
    format!(r#"{{"session_id": "s", "project_id": 1, {more}}}"#)
}

fn with_node(node: &str) -> String {
    with(&format!(
        r#""operators": [{{"condition": [{{"field": "f", "filter": "is_empty"}}, {node}]}}]"#
    ))
}

fn with_action(action: &str) -> String {
    with(&format!(
        r#""shared_operators": [{{"name": "n", "else_actions": [{action}]}}]"#
    ))
}

/// Lines of what is refused, its path behind `at`, and a part of the reason.
fn check(at: &str, cases: &str, body_of: impl Fn(&str) -> String) {
    for case in cases.trim().lines() {
        let [what, path, reason] = case.split(" =>").collect::<Vec<_>>()[..] else {
            panic!("{case}");
        };
        let body = body_of(what);
        let error = refused(&body);
        assert_eq!(
            error.path,
            format!("{at}{}", path.trim()),
            "{body}: {error}"
        );
        assert!(error.reason.contains(reason.trim()), "{body}: {error}");
        assert!(!error.reason.contains(" at line "), "{body}: {error}");
    }
}

#[test]
fn fields_of_a_request_are_refused_where_they_stand() {
    let long = "x".repeat(129);
    let whole = r#"
{"project_id": 1} => => missing field `session_id`
{"session_id": "s"} => => missing field `project_id`
["s", 1] => => expected an object
{"session_id": 1, "project_id": 1} => session_id => expected a string
{"session_id": "s", "project_id": ".x"} => project_id => not a project's name
{"session_id": "s", "project_id": "../x"} => project_id => not a project's name
{"session_id": "s", "project_id": ""} => project_id => not a project's name
{"session_id": "s", "project_id": 1.5} => project_id => a project's name or a whole number
{"session_id": "s", "project_id": -1} => project_id => a project's name or a whole number
{"session_id": "s", "project_id": 1, "project_id": 2} => => duplicate field `project_id`
{"session_id": "LONG", "project_id": 1} => session_id => at most 128
{"session_id": "s", "project_id": "LONG"} => project_id => not a project's name
"#;
    check("", &whole.replace("LONG", &long), str::to_owned);
    let more = r#"
"timeouts": [1, 1, 1] => timeouts => expected an object
"rules": [] => rules => unknown field
"priority": 1 => priority => expected a string
"timeouts": {"queue_seconds": 0} => timeouts.queue_seconds => must be over 0
"timeouts": {"evaluate_seconds": 3601} => timeouts.evaluate_seconds => at most 3600
"timeouts": {"stream_seconds": "1"} => timeouts.stream_seconds => expected f64
"timeouts": {"total_seconds": 1} => timeouts.total_seconds => unknown field
"cache": "yes" => cache => expected a boolean
"format": "xml" => format => unknown variant `xml`, expected one of `ndjson`, `json`, `csv`
"fields": ["a", 1] => fields[1] => expected a string
"fields": ["a", "b", "a"] => fields[2] => stands here twice
"fields": [""] => fields[0] => must not be empty
"omit": ["a", "a"] => omit[1] => stands here twice
"sort": [{"field": "a", "order": "up"}] => sort[0].order => unknown variant
"sort": [{"field": "a"}, {"field": "a", "as": "date"}] => sort[1].as => unknown variant
"sort": [{"order": "ascending"}] => sort[0] => missing field `field`
"sort": [{"field": ""}] => sort[0].field => must not be empty
"search": {"fields": []} => search => missing field `text`
"search": {"text": "a", "fields": ["b", "b"]} => search.fields[1] => stands here twice
"priority": "LONG" => priority => at most 128
"#;
    check("", &more.replace("LONG", &long), with);
}

#[test]
fn conditions_are_refused_where_they_stand() {
    let cases = r#"
{"filter": "is_empty"} => => missing field `field`
{"field": "f"} => => missing field `filter`
{"field": 1, "filter": "is_empty"} => .field => expected a string
{"field": "", "filter": "is_empty"} => .field => must not be empty
{"field": "f", "filter": "is"} => .filter => unknown variant
{"field": "f", "filter": "is_empty", "value": 1} => .value => takes no value
{"field": "f", "filter": "is_empty", "ignore_case": true} => .ignore_case => only filters on text
{"field": "f", "filter": "is_on", "value": "2024-05-01", "ignore_case": false} => .ignore_case => only filters on text
{"field": "f", "filter": "is_equal"} => .value => needs a value
{"field": "f", "filter": "is_equal", "value": null} => .value => needs a value
{"field": "f", "filter": "is_equal", "value": [1]} => .value => must be a text, a number, true or false
{"field": "f", "filter": "is_less_than", "value": 1e999} => .value => out of range
{"field": "f", "filter": "is_equal", "value": {"type": "static"}} => .value => missing field `value`
{"field": "f", "filter": "is_equal", "value": {"value": 1}} => .value => missing field `type`
{"field": "f", "filter": "is_equal", "value": {"type": "item", "value": 1}} => .value.type => unknown variant
{"field": "f", "filter": "is_equal", "value": {"type": "static", "value": {}}} => .value.value => must be a text
{"field": "f", "filter": "is_equal", "value": {"type": "static", "value": 1, "x": 1}} => .value.x => unknown field
{"field": "f", "filter": "is_equal", "value": {"type": "field", "value": 1}} => .value.value => expected a string
{"field": "f", "filter": "is_equal", "value": {"type": "field", "value": ""}} => .value.value => must not be empty
{"field": "f", "filter": "in_list", "value": "a"} => .value => expected a sequence
{"field": "f", "filter": "in_list", "value": ["a", null]} => .value[1] => must be a text
{"field": "f", "filter": "matches_regex", "value": "(a"} => .value => not a regular expression: unclosed group
{"field": "f", "filter": "matches_regex", "value": 1} => .value => the regular expression
{"field": "f", "filter": "matches_regex", "value": {"type": "field", "value": "g"}} => .value => the regular expression
{"field": "f", "filter": "matches_regex", "value": "(a{1000}){1000}"} => .value => once compiled
{"field": "f", "filter": "is_empty", "children": [{"field": "f", "filter": "is_less_than"}]} => .children[0].value => needs a value
{"field": "f", "filter": "is_empty", "children": {}} => .children => expected a sequence
{"field": "f", "filter": "is_empty", "or": []} => .or => unknown field
"#;
    check("operators[0].condition[1]", cases, with_node);
}

#[test]
fn actions_are_refused_where_they_stand() {
    let cases = r#"
{"field": "f"} => => missing field `action`
{"field": "f", "action": "delete"} => .action => unknown variant
{"field": "", "action": "remove"} => .field => must not be empty
{"field": "f", "action": "remove", "value": 1} => .value => takes no value
{"field": "all", "action": "set", "value": 1} => .field => acts on `all`
{"field": "f", "action": "set"} => .value => needs a value
{"field": "f", "action": "set", "value": []} => .value => must be a text
{"field": "f", "action": "texttransform", "value": "bold"} => .value => unknown variant `bold`
{"field": "f", "action": "combine", "value": "a"} => .value => expected a sequence
{"field": "f", "action": "combine", "value": []} => .value => nothing to combine
{"field": "f", "action": "combine", "value": [1, {}]} => .value[1] => missing field `type`
{"field": "f", "action": "number", "value": 1} => .value => expected an object
{"field": "f", "action": "number", "value": {"operation": "power"}} => .value.operation => unknown variant
{"field": "f", "action": "number", "value": {"operation": "add"}} => .value.value => needs a value
{"field": "f", "action": "number", "value": {"operation": "add", "value": "x"}} => .value.value => must be a number or a field
{"field": "f", "action": "number", "value": {"operation": "round", "value": 1}} => .value.value => takes no value
{"field": "f", "action": "number", "value": {"operation": "round", "decimals": 16}} => .value.decimals => at most 15
{"field": "f", "action": "number", "value": {"operation": "round", "decimals": -1}} => .value.decimals => invalid value
{"field": "f", "action": "split", "value": {"separator": "", "index": 0}} => .value.separator => must not be empty
{"field": "f", "action": "split", "value": {"separator": ","}} => .value => missing field `index`
{"field": "f", "action": "split", "value": {"separator": ",", "index": -1}} => .value.index => invalid value
{"field": "f", "action": "replace", "value": {"search": "", "replacement": "a"}} => .value.search => must not be empty
{"field": "f", "action": "replace", "value": {"search": "a"}} => .value => missing field `replacement`
{"field": "f", "action": "replace", "value": {"search": "[", "replacement": "", "regex": true}} => .value.search => not a regular expression
{"field": "f", "action": "replace", "value": {"search": "(a)", "replacement": "$2", "regex": true}} => .value.replacement => no group "2"
{"field": "f", "action": "replace", "value": {"search": "(a)", "replacement": "5 $", "regex": true}} => .value.replacement => `$$`
{"field": "f", "action": "lookup", "value": {"default": 1}} => .value => missing field `table`
{"field": "f", "action": "lookup", "value": {"table": {"a": null}}} => .value.table.a => must be a text
{"field": "f", "action": "lookup", "value": {"table": {"a": 1, "a": 2}}} => .value.table => twice
{"field": "f", "action": "lookup", "value": {"table": {}, "default": []}} => .value.default => must be a text
"#;
    check("shared_operators[0].else_actions[0]", cases, with_action);
}

#[test]
fn what_is_not_json_in_utf_8_is_refused_with_its_line_and_column() {
    let cases: [(&[u8], &str); 6] = [
        (b"", "not JSON, line 1, column 0: EOF"),
        (
            b"{\n  \"session_id\": }",
            "not JSON, line 2, column 17: expected value",
        ),
        (
            b"{\"session_id\": \"s\", \"project_id\": 1} x",
            "not JSON, line 1, column 38: trailing characters",
        ),
        (
            b"{\"session_id\": \"s\",\n \"\xff\": 1}",
            "not UTF-8, line 2, column 3",
        ),
        (
            b"\xef\xbb\xbf{}",
            "not JSON, line 1, column 1: expected value",
        ),
        (
            b"{\"session_id\": \"\\ud800\"}",
            "not JSON, line 1, column 23",
        ),
    ];
    for (body, expected) in cases {
        let error = refused_by(body, &Limits::default());
        assert_eq!(error.path, "", "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn nesting_of_any_depth_is_refused_not_followed() {
    let node = |depth: usize| {
        let open = r#"{"field": "f", "filter": "is_empty", "children": ["#.repeat(depth);
        with(&format!(
            r#""operators": [{{"condition": [{open}{}]}}]"#,
            "]}".repeat(depth)
        ))
    };
    assert!(Request::parse(node(32).as_bytes(), &Limits::default()).is_ok());
    let deep = refused(&node(33).replace("[]", r#"[{"field": "f", "filter": "is_empty"}]"#));
    assert!(
        deep.path.ends_with("children") && deep.reason.contains("32 levels"),
        "{deep}"
    );
    assert!(
        refused(&node(100_000))
            .reason
            .contains("recursion limit exceeded")
    );
    // Values are kept as they stand and read only as deep as a value may be.
    let value = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let error = refused(&with_node(&format!(
        r#"{{"field": "f", "filter": "is_equal", "value": {value}}}"#
    )));
    assert_eq!(error.path, "operators[0].condition[1].value");
}

#[test]
fn a_request_over_a_limit_is_refused_where_it_goes_over() {
    let limits = Limits {
        condition_depth: 2,
        operators: 2,
        conditions: 3,
        actions: 2,
        list_length: 2,
        table_entries: 1,
        sort_keys: 1,
        value_bytes: 4,
        columns: 2,
        regexes: 1,
        regex_pattern_bytes: 3,
        ..Limits::default()
    };
    let empty = r#"{"field": "f", "filter": "is_empty"}"#;
    let remove = r#"{"field": "f", "action": "remove"}"#;
    let value = |filter: &str, value: &str| {
        with(&format!(
            r#""operators": [{{"condition": [{{"field": "f", "filter": "{filter}", "value": {value}}}]}}]"#
        ))
    };
    let act = |action: &str, value: &str| {
        with(&format!(
            r#""operators": [{{"actions": [{{"field": "f", "action": "{action}", "value": {value}}}]}}]"#
        ))
    };
    let first = "operators[0].condition[0].value";
    let action = "operators[0].actions[0].value";
    let cases = [
        (
            with(r#""shared_operators": [{}], "operators": [{}, {}]"#),
            "operators[1]",
            "2 operators",
        ),
        (
            with(&format!(
                r#""operators": [{{"condition": [{empty}, {empty}, {empty}, {empty}]}}]"#
            )),
            "operators[0].condition",
            "3 conditions",
        ),
        (
            with(&format!(
                r#""operators": [{{"actions": [{remove}, {remove}], "else_actions": [{remove}]}}]"#
            )),
            "operators[0].else_actions",
            "2 actions",
        ),
        (value("is_equal", r#""12345""#), first, "has 5 bytes"),
        (value("is_equal", "12345"), first, "has 5 bytes"),
        (value("in_list", "[1, 2, 3]"), first, "has 3 entries"),
        (
            value("matches_regex", r#""abcd""#),
            first,
            "at most 3 bytes",
        ),
        (act("combine", "[1, 2, 3]"), action, "has 3 entries"),
        (
            act("lookup", r#"{"table": {"a": 1, "b": 2}}"#),
            "operators[0].actions[0].value.table",
            "has 2 entries",
        ),
        (
            act("lookup", r#"{"table": {"a": "12345"}}"#),
            "operators[0].actions[0].value.table.a",
            "has 5 bytes",
        ),
        (
            act("split", r#"{"separator": "12345", "index": 0}"#),
            "operators[0].actions[0].value.separator",
            "has 5 bytes",
        ),
        (
            act("replace", r#"{"search": "a", "replacement": "12345"}"#),
            "operators[0].actions[0].value.replacement",
            "has 5 bytes",
        ),
        (
            with(r#""operators": [{"name": "12345"}]"#),
            "operators[0].name",
            "has 5 bytes",
        ),
        (
            with(r#""sort": [{"field": "a"}, {"field": "b"}]"#),
            "sort",
            "has 2 entries",
        ),
        (
            with(r#""fields": ["a", "b", "c"]"#),
            "fields",
            "has 3 entries",
        ),
        (with(r#""omit": ["a", "b", "c"]"#), "omit", "has 3 entries"),
        (
            with(r#""search": {"text": "a", "fields": ["a", "b", "c"]}"#),
            "search.fields",
            "has 3 entries",
        ),
        (
            with(r#""search": {"text": "12345"}"#),
            "search.text",
            "has 5 bytes",
        ),
    ];
    for (body, path, reason) in cases {
        let error = refused_by(body.as_bytes(), &limits);
        assert_eq!(error.path, path, "{body}: {error}");
        assert!(error.reason.contains(reason), "{body}: {error}");
    }
    let twice = r#"{"field": "f", "filter": "matches_regex", "value": "a"}"#;
    let error = refused_by(
        with(&format!(
            r#""operators": [{{"condition": [{twice}, {twice}]}}]"#
        ))
        .as_bytes(),
        &limits,
    );
    assert!(error.reason.contains("1 regular expressions"), "{error}");
}

#[test]
fn a_prefetch_request_names_a_project_and_nothing_of_rules() {
    let limits = Limits::default();
    let body = br#"{"session_id": "s", "project_id": "shop-1", "priority": "low", "timeouts": {"queue_seconds": 0.5}}"#;
    let prefetch = Prefetch::parse(body, &limits).unwrap();
    assert_eq!(
        (prefetch.project_id.as_str(), prefetch.priority.as_deref()),
        ("shop-1", Some("low"))
    );
    assert_eq!(
        prefetch.timeouts.queue,
        std::time::Duration::from_millis(500)
    );
    assert_eq!(
        prefetch.timeouts.stream,
        std::time::Duration::from_secs(300)
    );
    let error = Prefetch::parse(with(r#""operators": []"#).as_bytes(), &limits).unwrap_err();
    assert_eq!(error.path, "operators");
}

#[test]
fn a_refusal_reads_as_path_and_reason() {
    let error = refused(&with_node(r#"{"field": "f", "filter": "is_less_than"}"#));
    assert_eq!(
        error.to_string(),
        "operators[0].condition[1].value: this filter needs a value"
    );
}
