// SPDX-License-Identifier: Apache-2.0
//! A page of metrics, as Prometheus, a script and a person ask for it.

use axum::body::to_bytes;
use axum::http::{HeaderMap, HeaderValue, header};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::{Registry, Unit};

/// Content type and page for an `Accept` header.
async fn asked(accept: &[&'static str]) -> (String, String) {
    let mut registry = Registry::default();
    weir_pages::register(&mut registry, "weir_test", "1.2.3");
    let waits: Counter<u64> = Counter::default();
    waits.inc_by(3);
    let ours = registry.sub_registry_with_prefix("weir_test");
    ours.register_with_unit("waits", "Time waited", Unit::Seconds, waits);
    let mut headers = HeaderMap::new();
    for value in accept {
        headers.append(header::ACCEPT, HeaderValue::from_static(value));
    }
    let response = weir_pages::metrics(&registry, &headers);
    let kind = response.headers()[header::CONTENT_TYPE].to_str().unwrap();
    let kind = kind.split(';').next().unwrap().to_owned();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (kind, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn the_format_is_the_one_that_is_accepted() {
    for (accept, openmetrics) in [
        (&[][..], false),
        (&["*/*"], false),
        (&["text/plain"], false),
        (&["application/openmetrics-text"], true),
        (&["application/openmetrics-text;q=0"], false),
        (
            &["application/openmetrics-text;version=1.0.0;q=0.3,text/plain;q=0.5"],
            false,
        ),
        (
            &[
                "text/plain;version=0.0.4;q=0.5",
                "application/openmetrics-text; q=0.75",
            ],
            true,
        ),
        // Prometheus 2.42.
        (
            &[
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            ],
            true,
        ),
    ] {
        let (kind, page) = asked(accept).await;
        let expected = match openmetrics {
            true => "application/openmetrics-text",
            false => "text/plain",
        };
        assert_eq!(kind, expected, "{accept:?}");
        assert_eq!(page.ends_with("# EOF\n"), openmetrics, "{accept:?}");
    }
}

#[tokio::test]
async fn the_text_format_has_its_own_metadata_and_the_same_samples() {
    let (_, page) = asked(&[]).await;
    for line in [
        "# HELP weir_test_waits_seconds_total Time waited.",
        "# TYPE weir_test_waits_seconds_total counter",
        "weir_test_waits_seconds_total 3",
        "# TYPE weir_test_build_info gauge",
        "weir_test_build_info{version=\"1.2.3\"} 1",
        "# TYPE process_cpu_seconds_total counter",
        "# TYPE process_resident_memory_bytes gauge",
    ] {
        assert!(page.lines().any(|told| told == line), "{line}\n{page}");
    }
    assert!(
        !page.contains("# UNIT") && !page.contains("# EOF"),
        "{page}"
    );
}

#[tokio::test]
async fn a_process_tells_what_it_takes() {
    let (_, page) = asked(&[]).await;
    let value = |name: &str| {
        let mut lines = weir_exposition::lines(&page);
        let line = lines.find(|line| line.name == name);
        line.expect(name).read().unwrap().1
    };
    let megabyte = f64::from(1 << 20);
    assert!(value("process_resident_memory_bytes") > megabyte);
    assert!(value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes"));
    assert!(value("process_open_fds") >= 3.0 && value("process_max_fds") >= 3.0);
    // 2020 or later.
    assert!(value("process_start_time_seconds") > 1.57e9);
    assert!(value("process_cpu_seconds_total") >= 0.0);
}

#[tokio::test]
async fn exemplars_are_of_openmetrics_alone() {
    let page = "a{b=\"# {\\\"\"} 1 # {receipt=\"8\"} 0.5\nc{d=\"x # {y\"} 2\n# EOF\n";
    let answer = async |accept: &'static str| {
        let mut headers = HeaderMap::new();
        headers.append(header::ACCEPT, HeaderValue::from_static(accept));
        let body = weir_pages::answer(page.to_owned(), &headers).into_body();
        String::from_utf8(to_bytes(body, 1 << 20).await.unwrap().to_vec()).unwrap()
    };
    assert_eq!(answer("application/openmetrics-text").await, page);
    let plain = "a{b=\"# {\\\"\"} 1\nc{d=\"x # {y\"} 2\n";
    assert_eq!(answer("text/plain").await, plain);
}
