// SPDX-License-Identifier: Apache-2.0
//! The place where the service's latency is measured.

use std::net::SocketAddr;

use weir_exposition::Series;
use weir_settings::{Error, Scope, Value};

use super::{ms, written};
use crate::config::{Page, Query, Tail, TailSource};

#[derive(Clone, Copy, PartialEq)]
enum Source {
    Calls,
    /// In seconds of one unit of the histogram's bounds.
    Page(f64),
    Query,
}

pub(super) fn tail(
    written: &written::Tail,
    quantile: f64,
    scope: &Scope<'_>,
) -> Result<Tail, Error> {
    let sources = [
        ("calls", Source::Calls),
        ("prometheus", Source::Page(1.0)),
        ("envoy", Source::Page(1e-3)),
        ("promql", Source::Query),
    ];
    let source = scope.choice(&written.source, "source", Source::Calls, &sources)?;
    refuse_unread(written, source, scope)?;
    Ok(Tail {
        source: match source {
            Source::Calls => TailSource::Calls,
            Source::Page(unit) => TailSource::Page(page(written, scope, unit)?),
            Source::Query => TailSource::Query(query(written, scope)?),
        },
        quantile: scope.share(&written.quantile, "quantile", quantile, 0.5..=0.9999)?,
        // At ten requests a second one in a hundred of them is there.
        window: scope.duration(
            &written.window,
            "window",
            ms(10_000),
            ms(1000)..=ms(600_000),
        )?,
        every: scope.duration(&written.every, "every", ms(1000), ms(50)..=ms(60_000))?,
    })
}

/// Refuses the fields that this source does not read.
fn refuse_unread(written: &written::Tail, source: Source, scope: &Scope<'_>) -> Result<(), Error> {
    let is_page = matches!(source, Source::Page(_));
    let is_query = matches!(source, Source::Query);
    let read = [
        (
            &written.metric,
            "metric",
            is_page,
            "only source prometheus or envoy reads it",
        ),
        (
            &written.query,
            "query",
            is_query,
            "only source promql reads it",
        ),
        (
            &written.url,
            "url",
            is_page || is_query,
            "only source prometheus, envoy or promql reads it",
        ),
        (
            &written.every,
            "every",
            is_page || is_query,
            "only source prometheus, envoy or promql reads it",
        ),
        (
            &written.quantile,
            "quantile",
            !is_query,
            "the query says it",
        ),
        (&written.window, "window", !is_query, "the query says it"),
    ];
    for (value, field, is_read, reason) in read {
        if value.is_some() && !is_read {
            return Err(scope.refuse(value, field, reason));
        }
    }
    Ok(())
}

fn page(written: &written::Tail, scope: &Scope<'_>, unit: f64) -> Result<Page, Error> {
    let example = "http://127.0.0.1:9901/stats/prometheus";
    let (address, path) = url(&written.url, scope, "http://ip:port/path", example)?;
    let required = "required; the histogram's name, without _bucket";
    let metric = text(&written.metric, "metric", required, scope)?;
    if let Err(fault) = Series::parse(metric) {
        let reason = format!(
            "{metric:?} is no metric's name, as in requests or requests{{code=\"200\"}}: {fault}"
        );
        return Err(scope.refuse(&written.metric, "metric", reason));
    }
    Ok(Page {
        address,
        path,
        metric: metric.to_owned(),
        unit,
    })
}

fn query(written: &written::Tail, scope: &Scope<'_>) -> Result<Query, Error> {
    let (address, path) = url(
        &written.url,
        scope,
        "http://ip:port or http://ip:port/prefix",
        "http://127.0.0.1:9090",
    )?;
    if path.contains(['?', '#']) {
        let reason = "is more than the server's: what comes behind /api/v1/query is ours";
        return Err(scope.refuse(&written.url, "url", reason));
    }
    let required = "required; PromQL for one number, in seconds";
    let query = text(&written.query, "query", required, scope)?;
    if query.trim().is_empty() {
        return Err(scope.refuse(&written.query, "query", required));
    }
    Ok(Query {
        address,
        prefix: path.trim_end_matches('/').to_owned(),
        query: query.to_owned(),
    })
}

/// Address and path.
fn url(
    value: &Value,
    scope: &Scope<'_>,
    shape: &str,
    example: &str,
) -> Result<(SocketAddr, String), Error> {
    scope.note("url", "URL", None, None);
    let url = text(value, "url", &format!("required; as in {example}"), scope)?;
    let refuse = || scope.refuse(value, "url", format!("{url:?} is not {shape}"));
    let rest = url.strip_prefix("http://").ok_or_else(refuse)?;
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    let address = address.parse().map_err(|_| refuse())?;
    let path = format!("/{path}");
    match path.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok((address, path)),
        false => Err(refuse()),
    }
}

fn text<'a>(
    value: &'a Value,
    field: &str,
    required: &str,
    scope: &Scope<'_>,
) -> Result<&'a str, Error> {
    scope.note(field, "text", None, None);
    let text = value.as_ref().map(|text| text.value.as_str());
    text.ok_or_else(|| scope.refuse(&None, field, required))
}
