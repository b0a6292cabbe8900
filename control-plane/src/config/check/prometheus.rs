// SPDX-License-Identifier: Apache-2.0
//! A Prometheus server that is asked for figures.

use std::collections::BTreeMap;

use weir_fleet::prometheus::{Figure, Names};
use weir_settings::Scope;

use super::server::{Fields, server};
use super::{Reader, ms, written};
use crate::config::{Error, Host, Prometheus};

/// `scraped`: the hosts' own pages are read, too.
pub(super) fn prometheus(
    written: &written::Prometheus,
    hosts: &[Host],
    scraped: bool,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Prometheus, Error> {
    let fields = Fields {
        address: &written.address,
        ca: &written.ca,
        certificate: &written.certificate,
        key: &written.key,
    };
    let is_label = |text: &str| {
        let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
        text.starts_with(letter) && text.chars().all(|c| letter(c) || c.is_ascii_digit())
    };
    let shape = "the name of a Prometheus label";
    let label = scope.text(&written.label, "label", "instance", is_label, shape)?;
    if let Some((name, [first, second])) = Names::of(hosts).shared().next() {
        let reason = format!(
            "{label}=\"{name}\" would name two hosts, {first} and {second}, by address or metrics_address"
        );
        return Err(scope.refuse(&written.label, "label", reason));
    }
    let queries = queries(&written.queries, &label, scraped, &scope.section("queries"))?;
    Ok(Prometheus {
        server: server(fields, "http://127.0.0.1:9090", scope, reader)?,
        // As often as hosts are scraped.
        interval: scope.duration(
            &written.interval,
            "interval",
            ms(1000),
            ms(100)..=ms(3_600_000),
        )?,
        timeout: scope.duration(&written.timeout, "timeout", ms(500), ms(1)..=ms(60_000))?,
        label,
        queries,
    })
}

fn queries(
    written: &written::Queries,
    label: &str,
    scraped: bool,
    scope: &Scope<'_>,
) -> Result<BTreeMap<Figure, String>, Error> {
    let mut queries = BTreeMap::new();
    for figure in Figure::ALL {
        let text = match figure {
            Figure::InProgress => &written.in_progress,
            Figure::Queued => &written.queued,
            Figure::QueuingDelay => &written.queuing_delay,
            Figure::BusyCores => &written.busy_cores,
            Figure::Work => &written.work,
            Figure::Draining => &written.draining,
            Figure::Age => &written.age,
        };
        scope.note(
            figure.as_str(),
            "PromQL",
            Some(figure.default_query(label)),
            None,
        );
        let query = text.as_ref().map(|text| text.value.trim().to_owned());
        let query = query.unwrap_or_else(|| figure.default_query(label));
        if !query.is_empty() {
            queries.insert(figure, query);
        }
    }
    let asked = |figure| queries.contains_key(&figure);
    let (running, queued) = (asked(Figure::InProgress), asked(Figure::Queued));
    if !running && !queued {
        let reason = "empty as queued is: without both nothing is known of the load";
        return Err(scope.refuse(&written.in_progress, "in_progress", reason));
    }
    if scraped && !(running && queued) {
        let (value, field) = match running {
            true => (&written.queued, "queued"),
            false => (&written.in_progress, "in_progress"),
        };
        let reason = "required beside scrape: the newest figures count, and half of the load would be known by turns";
        return Err(scope.refuse(value, field, reason));
    }
    Ok(queries)
}
