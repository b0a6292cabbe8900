// SPDX-License-Identifier: Apache-2.0
//! From answers to a line a host, and one a server that was asked of a cluster. Pure.

use std::collections::BTreeMap;

use weir_fleet::poll::{PollError, Source};
use weir_fleet::prometheus::{self, Figure, Names, Round, Told, gather};

use super::clause::Clause;
use super::{Answer, Answers, Discovered};
use crate::config::{Cluster, Config, Prometheus, Scrape, counted};
use crate::sources::scrape::Page;

/// What a probe found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// One a host, one a server that was asked of a cluster, and the sum of them.
    pub lines: Vec<String>,
    /// Everything answers and has what is configured.
    pub is_good: bool,
}

/// What was found, in words. `config` has the hosts that registries name, too.
pub(super) fn report(
    config: &Config,
    discovered: &BTreeMap<String, Discovered>,
    answers: &Answers,
) -> Report {
    let mut lines = Lines::default();
    let (mut hosts, mut broken) = (0, 0);
    for (name, cluster) in &config.clusters {
        let key = |host: &str, source| answers.get(&(name.clone(), host.to_owned(), source));
        for clause in discovered.get(name).into_iter().flat_map(discovery) {
            lines.add(name, &[clause]);
        }
        if cluster.hosts.is_empty() && cluster.registry.is_none() {
            lines.add(name, &[Clause::failed("hosts", &"there are none")]);
        }
        let round = match (&cluster.prometheus, key("", Source::Prometheus)) {
            (Some(settings), Some(Answer::Prometheus(answers))) => {
                let round = round(cluster, settings, answers);
                lines.add(name, &[queries(settings, answers, &round)]);
                Some((settings, round))
            }
            _ => None,
        };
        for host in &cluster.hosts {
            let pages = [Source::Scrape, Source::Cache, Source::KvEvents];
            let pages = pages.map(|source| key(&host.address, source));
            let pages = pages.into_iter().flatten();
            let mut clauses: Vec<Clause> =
                pages.filter_map(|answer| page(answer, cluster)).collect();
            if let Some((settings, round)) = &round {
                let told = round.hosts.get(&host.address);
                clauses.extend(told.map(|told| told_of(settings, told)));
            }
            hosts += 1;
            broken += usize::from(!lines.add(&format!("{name} {}", host.address), &clauses));
        }
    }
    lines.sum(hosts, broken)
}

#[derive(Default)]
struct Lines {
    lines: Vec<String>,
    broken: usize,
}

impl Lines {
    /// Adds a line. Whether all is well.
    fn add(&mut self, what: &str, clauses: &[Clause]) -> bool {
        let is_good = clauses.iter().all(Clause::is_good);
        let mark = if is_good { "ok" } else { "BROKEN" };
        let said: Vec<String> = clauses.iter().map(Clause::to_string).collect();
        let said = match said.is_empty() {
            true => "nothing is configured to be read".to_owned(),
            false => said.join(" | "),
        };
        let line = format!("{mark}: {what}: {said}");
        // Texts of others are in it.
        let line = line.replace(char::is_control, " ");
        self.lines.push(line);
        self.broken += usize::from(!is_good);
        is_good
    }

    fn sum(mut self, hosts: usize, broken: usize) -> Report {
        let is_good = self.broken == 0;
        self.lines.push(match (is_good, broken) {
            (true, _) => format!("ok: {hosts} of {hosts} hosts have what is configured"),
            (false, 0) => "BROKEN: hosts have what is configured; what was asked of whole clusters is not all there".to_owned(),
            (false, _) => format!("BROKEN: {broken} of {hosts} hosts lack what is configured"),
        });
        Report {
            lines: self.lines,
            is_good,
        }
    }
}

/// Hosts from a registry, and their trust domain. A registration that cannot be used is for its owner to mend: it is told,
/// and the others are used.
fn discovery(discovered: &Discovered) -> Vec<Clause> {
    let name = discovered.source.as_str();
    let hosts = match &discovered.hosts {
        Err(error) => Clause::failed(name, error),
        Ok(found) if found.hosts.is_empty() => Clause {
            lacks: vec!["hosts"],
            reasons: found.complaints.clone(),
            ..Clause::of(name)
        },
        Ok(found) => Clause {
            has: vec![counted(found.hosts.len(), "host")],
            notes: found.complaints.clone(),
            ..Clause::of(name)
        },
    };
    let name = Source::ConsulRoots.as_str();
    let roots = discovered.trust_domain.as_ref().map(|said| match said {
        Err(error) => Clause::failed(name, error),
        Ok(domain) => Clause {
            has: vec![format!("trust domain {domain:?}")],
            ..Clause::of(name)
        },
    });
    std::iter::once(hosts).chain(roots).collect()
}

fn page(answer: &Answer, cluster: &Cluster) -> Option<Clause> {
    match answer {
        Answer::Page(said) => Some(figures(said, cluster.scrape.as_ref()?)),
        Answer::Cache(said) => Some(match said {
            Err(error) => Clause::failed(Source::Cache.as_str(), error),
            Ok(keys) => Clause {
                has: vec![counted(*keys, "key")],
                ..Clause::of(Source::Cache.as_str())
            },
        }),
        Answer::KvEvents(said) => Some(match said {
            Err(error) => Clause::failed(Source::KvEvents.as_str(), error),
            Ok(sockets) => Clause {
                has: sockets.iter().map(|socket| (*socket).to_owned()).collect(),
                ..Clause::of(Source::KvEvents.as_str())
            },
        }),
        Answer::Prometheus(_) => None,
    }
}

/// Of a host's own page. Few hosts have all figures; whoever has written another name for one has it.
fn figures(said: &Result<Page, PollError>, names: &Scrape) -> Clause {
    let mut clause = Clause::of(Source::Scrape.as_str());
    let page = match said {
        Err(error) => return Clause::failed(clause.source, error),
        Ok(page) => page,
    };
    clause.reasons = page.complaints.clone();
    clause.figure("in_progress", page.in_progress.is_some(), true);
    clause.figure("queued", page.queued.is_some(), true);
    let has_delay = names.queuing_delay.is_some();
    clause.figure("queuing_delay", page.delay.is_some(), has_delay);
    let rare = [
        ("busy_cores", page.busy_cores.is_some()),
        ("work", page.work.is_some()),
        ("cores", page.millicores.is_some()),
        ("draining", page.draining.is_some()),
    ];
    let written = [
        (&names.busy_cores, Scrape::BUSY_CORES),
        (&names.work, Scrape::WORK),
        (&names.cores, Scrape::CORES),
        (&names.draining, Scrape::DRAINING),
    ];
    for ((figure, is_there), (name, default)) in rare.into_iter().zip(written) {
        let needed = name != default;
        clause.figure(figure, is_there, needed);
        let is_told = page
            .complaints
            .iter()
            .any(|complaint| complaint.starts_with(&format!("{name}:")));
        if needed && !is_there && !is_told {
            clause.reasons.push(format!("{name}: not on the page"));
        }
    }
    clause
}

fn round(cluster: &Cluster, settings: &Prometheus, answers: &prometheus::Answers) -> Round {
    let hosts = cluster.hosts.iter().map(|host| host.address.as_str());
    gather(answers, &settings.label, &Names::of(&cluster.hosts), hosts)
}

/// Of the answers as a whole.
fn queries(settings: &Prometheus, answers: &prometheus::Answers, round: &Round) -> Clause {
    let mut clause = Clause::of(Source::Prometheus.as_str());
    clause.reasons = round.complaints.clone();
    for (figure, query) in &settings.queries {
        let series = answers.get(figure).and_then(|answer| answer.as_ref().ok());
        let is_there = series.is_some_and(|answer| !answer.series.is_empty());
        let needed = !figure.is_rare() || *query != figure.default_query(&settings.label);
        clause.figure(figure.as_str(), is_there, needed);
    }
    if round.unknown_series > 0 {
        let unknown = format!(
            "{} series of others than the cluster's hosts",
            round.unknown_series
        );
        clause.notes.push(unknown);
    }
    clause
}

/// Of one host. What no series of the cluster has was said once, of the cluster.
fn told_of(settings: &Prometheus, told: &Told) -> Clause {
    let mut clause = Clause::of(Source::Prometheus.as_str());
    clause.reasons = told.complaints.clone();
    let Some(load) = &told.load else {
        clause.lacks.push("load");
        return clause;
    };
    let of = &load.figures;
    let figures = [
        (Figure::InProgress, of.in_progress.is_some()),
        (Figure::Queued, of.queued.is_some()),
        (Figure::QueuingDelay, of.queuing_delay.is_some()),
        (Figure::BusyCores, of.busy_cores.is_some()),
        (Figure::Work, of.work.is_some()),
    ];
    let asked = figures.into_iter();
    let asked = asked.filter(|(figure, _)| settings.queries.contains_key(figure));
    for (figure, is_there) in asked {
        clause.figure(figure.as_str(), is_there, false);
    }
    clause
}
