// SPDX-License-Identifier: Apache-2.0
//! A page of metrics in the format that the caller wants, and what every program tells of itself.

use std::fmt::Write;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::process::Process;

const OPENMETRICS: &str = "application/openmetrics-text";
const PLAIN: &str = "text/plain";

/// Registers `<prefix>_build_info` and the `process_*` metrics of this process.
pub fn register(registry: &mut Registry, prefix: &str, version: &'static str) {
    let build = Info::new(vec![("version", version)]);
    let ours = registry.sub_registry_with_prefix(prefix);
    ours.register("build", "The program that runs", build);
    registry.register_collector(Box::new(Process));
}

/// The registry's page.
pub fn metrics(registry: &Registry, asked: &HeaderMap) -> Response {
    match text(registry) {
        Ok(page) => answer(page, asked),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// The same as text alone, in OpenMetrics 1.0.
///
/// # Errors
/// A metric cannot be written.
pub fn text(registry: &Registry) -> Result<String, std::fmt::Error> {
    let mut page = String::new();
    encode(&mut page, registry)?;
    Ok(page)
}

/// A page in OpenMetrics 1.0 as it is where the caller prefers that, else in the text format 0.0.4, which every reader
/// knows (Prometheus' documentation, "Exposition formats").
pub fn answer(page: String, asked: &HeaderMap) -> Response {
    let openmetrics = quality(asked, OPENMETRICS);
    match openmetrics > 0.0 && openmetrics >= quality(asked, PLAIN) {
        true => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], page).into_response()
        }
        false => {
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], plain(&page)).into_response()
        }
    }
}

/// How much a caller wants a media type that it names (RFC 9110, section 12.5.1): 0 to 1.
pub fn quality(asked: &HeaderMap, wanted: &str) -> f32 {
    let accepted = asked.get_all(header::ACCEPT).into_iter();
    let texts = accepted.filter_map(|value| value.to_str().ok());
    let types = texts.flat_map(|text| text.split(','));
    let quality = types.filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        if !parts.next()?.eq_ignore_ascii_case(wanted) {
            return None;
        }
        let q = parts.find_map(|part| part.strip_prefix("q="));
        Some(q.map_or(1.0, |q| q.parse().unwrap_or(0.0)))
    });
    quality.fold(0.0, f32::max)
}

/// A page of OpenMetrics in the text format 0.0.4: metadata has the names of the samples, and units and the end are
/// not marked, and there are no exemplars.
fn plain(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut help = None;
    for line in page.lines() {
        if let Some(said) = line.strip_prefix("# HELP ") {
            help = said.split_once(' ').map(|(_, help)| help);
        } else if let Some((name, kind)) = type_of(line) {
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                _ => ("", kind),
            };
            if let Some(help) = help.take() {
                let _ = writeln!(text, "# HELP {name}{suffix} {help}");
            }
            let _ = writeln!(text, "# TYPE {name}{suffix} {kind}");
        } else if !line.starts_with("# UNIT ") && line != "# EOF" {
            text.push_str(without_exemplar(line));
            text.push('\n');
        }
    }
    text
}

/// What comes before a `#` that stands in no label's value.
fn without_exemplar(line: &str) -> &str {
    let (mut quoted, mut escaped) = (false, false);
    for (at, letter) in line.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            '#' if !quoted => return line.split_at(at).0.trim_end(),
            _ => {}
        }
    }
    line
}

fn type_of(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("# TYPE ")?.split_once(' ')
}
