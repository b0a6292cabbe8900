// SPDX-License-Identifier: Apache-2.0
//! Which identity may do what.

use std::collections::BTreeSet;

use serde_saphyr::Spanned;
use weir_fleet::authorization::{Authorization, Clusters, Pattern, Place, Rule, What};
use weir_policy::CLASSES;
use weir_settings::{Scope, Text};

use crate::config::{Config, Error, written};

/// The rules fit what else is written.
pub(super) fn authorization(
    written: &[Spanned<written::Rule>],
    config: &Config,
    scope: &Scope<'_>,
) -> Result<Authorization, Error> {
    let refuse = |reason| Err(scope.refuse(&None, "", reason));
    if written.is_empty() {
        return refuse("names no rule, which would deny everything; leave it out");
    }
    if config
        .xds
        .tls
        .as_ref()
        .is_none_or(|tls| tls.client_ca.is_none())
    {
        return refuse("needs xds.tls.client_ca: without it nobody has an identity");
    }
    let rules = written.iter().enumerate().map(|(index, written)| {
        let scope = scope.item(index).at(written.referenced.line());
        rule(&written.value, config, &scope)
    });
    let rules = rules.collect::<Result<Vec<Rule>, Error>>()?;
    let is_of_replicas = |rule: &Rule| rule.what.contains(&What::Replica);
    if config.replicas.is_some() && !rules.iter().any(is_of_replicas) {
        return refuse(
            "needs a rule with what: [replica] for the certificate of the other replicas",
        );
    }
    Ok(Authorization(rules))
}

fn rule(written: &written::Rule, config: &Config, scope: &Scope<'_>) -> Result<Rule, Error> {
    let written::Rule {
        identity,
        clusters,
        what,
        hosts,
        max_priority,
    } = written;
    scope.note("identity", "text", None, None);
    if identity.is_none() {
        return Err(scope.refuse(identity, "identity", "required; a SPIFFE id or DNS name"));
    }
    let what: BTreeSet<What> = list(what, &scope.section("what"), |text| {
        let found = What::ALL.into_iter().find(|what| what.as_str() == text);
        found.ok_or_else(|| {
            let names = What::ALL.map(What::as_str).join(", ");
            format!("{text:?} is unknown; one of {names}")
        })
    })?;
    if what.is_empty() {
        return Err(scope.refuse(&None, "what", "required; what is allowed"));
    }
    let is_of_clusters = what.iter().any(|what| *what != What::Replica);
    if clusters.is_empty() && is_of_clusters {
        let reason = "required; a list of clusters, or [\"*\"] for all";
        return Err(scope.refuse(&None, "clusters", reason));
    }
    let names: BTreeSet<String> = list(clusters, &scope.section("clusters"), |text| {
        // One of a policy may come later.
        let policies = config.policies.as_ref();
        let may_come = policies.is_some_and(|policies| policies.may_have(text));
        match text == "*" || may_come || config.clusters.contains_key(text) {
            true => Ok(text.to_owned()),
            false => Err(format!("{text:?} is no cluster of this configuration")),
        }
    })?;
    let places: Vec<Place> = list(hosts, &scope.section("hosts"), |text| {
        Place::parse(text).ok_or_else(|| format!("{text:?} is neither ip nor ip:port"))
    })?;
    if let Some(first) = hosts.first().filter(|_| !what.contains(&What::Capacity)) {
        let reason = "only a rule with what: [capacity] reads it";
        return Err(scope.refuse(&Some(first.clone()), "hosts", reason));
    }
    if max_priority.is_some() && !what.contains(&What::Report) {
        let reason = "only a rule with what: [report] reads it";
        return Err(scope.refuse(max_priority, "max_priority", reason));
    }
    let classes = 0..=u64::from(CLASSES - 1);
    Ok(Rule {
        identity: scope.parse(identity, "identity", Pattern::Any, Pattern::parse)?,
        clusters: match names.contains("*") {
            true => Clusters::All,
            false => Clusters::Named(names),
        },
        what,
        hosts: Some(places).filter(|places| !places.is_empty()),
        max_priority: scope.whole(max_priority, "max_priority", 0, classes)? as u8,
    })
}

/// What `parse` makes of each.
fn list<T, All: FromIterator<T>>(
    written: &[Text],
    scope: &Scope<'_>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<All, Error> {
    scope.item(0).note("", "text", None, None);
    let parsed = written.iter().enumerate().map(|(index, text)| {
        let refuse = |reason| scope.item(index).refuse(&Some(text.clone()), "", reason);
        parse(&text.value).map_err(refuse)
    });
    parsed.collect()
}
