// SPDX-License-Identifier: Apache-2.0
//! The hosts of a cluster from DNS.
//!
//! ```text
//!  dns.name, dns.port ── A, else AAAA ──────────────────────┐
//!  dns.name ── SRV ── targets, ports ── A, else AAAA ───────┴─ read (pure) ──> Answered ──> membership
//! ```
//!
//! Service records as in RFC 2782: those of the least priority number count, their weights do not. Addresses of IPv6
//! count where a name has none of IPv4: a host with both is one. An answer of which a part is missing is none: nobody
//! is taken out because a question was lost. Therefore all questions go by TCP (RFC 7766 has every server take it): in a
//! datagram servers leave out what does not fit, and Consul all but three, without a word.

mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ProtocolConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use hickory_resolver::system_conf::read_system_conf;
use hickory_resolver::{Resolver, TokioResolver};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use weir_fleet::poll::{Fault, PollError};

use super::Ticker;
use super::discovery::{Answered, Found, Said};
use crate::client;
use crate::config::{Dns, Registry};
use read::{Asked, Service, read};

/// Questions at a time for targets whose addresses did not come with the service records.
const AT_A_TIME: usize = 32;

/// Asks until nobody listens.
pub(super) async fn run(cluster: Arc<str>, settings: Arc<Dns>, news: mpsc::Sender<Answered>) {
    let mut ticker = Ticker::new(settings.interval);
    loop {
        ticker.tick().await;
        let answered = Answered {
            cluster: cluster.clone(),
            registry: Registry::Dns(settings.clone()),
            said: Said::Hosts(hosts(&settings).await),
        };
        if news.send(answered).await.is_err() {
            return;
        }
    }
}

/// Who is there.
pub(super) async fn hosts(settings: &Dns) -> Result<Found, PollError> {
    let answer = tokio::time::timeout(settings.timeout, ask(settings)).await;
    let answer = answer.unwrap_or_else(|_| Err(client::too_slow(settings.timeout)));
    answer.map_err(|PollError { fault, detail }| match settings.server {
        Some(server) => PollError::new(fault, format!("{server}: {detail}")),
        None => PollError::new(fault, format!("by the system's resolv.conf: {detail}")),
    })
}

async fn ask(settings: &Dns) -> Result<Found, PollError> {
    // Made anew for each question, so that a changed resolv.conf counts at once.
    let (config, mut options) = servers(settings)?;
    options.timeout = settings.timeout;
    let names = names(&settings.name, &config, options.ndots)?;
    ask_for(&resolver(&config, options)?, &names, settings).await
}

/// Of the first name that has any.
async fn ask_for(
    resolver: &TokioResolver,
    names: &[Name],
    settings: &Dns,
) -> Result<Found, PollError> {
    let mut asked = Asked::Services(Vec::new());
    for name in names {
        asked = match settings.port {
            Some(port) => Asked::Addresses(addresses(resolver, name).await?, port),
            None => Asked::Services(services(resolver, name).await?),
        };
        if !asked.is_empty() {
            break;
        }
    }
    Ok(read(asked, settings))
}

/// What the written name may stand for, in the order in which it is looked for (`man 5 resolv.conf`: `search`, `ndots`). The
/// library walks this list itself, but also past a server that fails, and only the last answer counts there: the hosts of
/// another domain's wildcard would be taken for these.
fn names(written: &str, config: &ResolverConfig, ndots: usize) -> Result<Vec<Name>, PollError> {
    let name = Name::from_utf8(written).map_err(|error| failed(error.into()))?;
    if name.is_fqdn() {
        return Ok(vec![name]);
    }
    let domains = config.domain().into_iter().chain(config.search());
    // One that is too long with a domain is none of it.
    let within = domains.filter_map(|domain| name.clone().append_domain(domain).ok());
    let mut names: Vec<Name> = within.collect();
    let mut whole = name.clone();
    whole.set_fqdn(true);
    let at = match usize::from(name.num_labels()) > ndots {
        true => 0,
        false => names.len(),
    };
    names.insert(at, whole);
    Ok(names)
}

/// Who is asked.
fn servers(settings: &Dns) -> Result<(ResolverConfig, ResolverOpts), PollError> {
    match settings.server {
        None => {
            let (mut config, options) = read_system_conf().map_err(failed)?;
            let is_stream = |of: &ConnectionConfig| matches!(of.protocol, ProtocolConfig::Tcp);
            for server in &mut config.name_servers {
                server.connections.retain(is_stream);
            }
            Ok((config, options))
        }
        Some(server) => {
            let mut connection = ConnectionConfig::tcp();
            connection.port = server.port();
            let named = NameServerConfig::new(server.ip(), true, vec![connection]);
            let config = ResolverConfig::from_parts(None, Vec::new(), vec![named]);
            Ok((config, ResolverOpts::default()))
        }
    }
}

/// It asks for whole names.
fn resolver(
    config: &ResolverConfig,
    mut options: ResolverOpts,
) -> Result<TokioResolver, PollError> {
    let named = config.name_servers().to_vec();
    let config = ResolverConfig::from_parts(None, Vec::new(), named);
    options.use_hosts_file = ResolveHosts::Never;
    options.cache_size = 0;
    let provider = TokioRuntimeProvider::default();
    let builder = Resolver::builder_with_config(config, provider).with_options(options);
    builder.build().map_err(failed)
}

/// A name's addresses.
async fn addresses(resolver: &TokioResolver, name: &Name) -> Result<Vec<IpAddr>, PollError> {
    for kind in [RecordType::A, RecordType::AAAA] {
        let answer = answer(resolver, name, kind).await?;
        // What comes beside the answer may be the addresses of others.
        let records = answer.iter().flat_map(Lookup::answers);
        let found: Vec<IpAddr> = records.filter_map(address).collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// What a name's service records tell, with the addresses of their targets.
async fn services(resolver: &TokioResolver, name: &Name) -> Result<Vec<Service>, PollError> {
    let Some(answer) = answer(resolver, name, RecordType::SRV).await? else {
        return Ok(Vec::new());
    };
    let mut services: Vec<Service> = answer.answers().iter().filter_map(service).collect();
    let least = services.iter().map(|service| service.priority).min();
    services.retain(|service| Some(service.priority) == least);
    let mut told = told_beside(&answer);
    let targets = services.iter().map(|service| service.target.clone());
    let untold = targets.filter(|target| !target.is_root() && !told.contains_key(target));
    told.extend(addresses_of_all(resolver, untold.collect()).await?);
    for service in &mut services {
        service.addresses = told.get(&service.target).cloned().unwrap_or_default();
    }
    Ok(services)
}

/// Addresses that came with an answer, by whose they are.
fn told_beside(answer: &Lookup) -> BTreeMap<Name, Vec<IpAddr>> {
    let mut told: BTreeMap<Name, Vec<IpAddr>> = BTreeMap::new();
    for record in answer.additionals() {
        if let Some(address) = address(record) {
            told.entry(record.name.clone()).or_default().push(address);
        }
    }
    for addresses in told.values_mut() {
        if addresses.iter().any(IpAddr::is_ipv4) {
            addresses.retain(IpAddr::is_ipv4);
        }
    }
    told
}

async fn addresses_of_all(
    resolver: &TokioResolver,
    names: BTreeSet<Name>,
) -> Result<Vec<(Name, Vec<IpAddr>)>, PollError> {
    let places = Arc::new(Semaphore::new(AT_A_TIME));
    let mut questions = JoinSet::new();
    for name in names {
        let (resolver, places) = (resolver.clone(), places.clone());
        questions.spawn(async move {
            let _place = places.acquire().await;
            let found = addresses(&resolver, &name).await?;
            Ok((name, found))
        });
    }
    questions.join_all().await.into_iter().collect()
}

/// An answer; none where the name has no record of the kind.
async fn answer(
    resolver: &TokioResolver,
    name: &Name,
    kind: RecordType,
) -> Result<Option<Lookup>, PollError> {
    match resolver.lookup(name.clone(), kind).await {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if has_none(&error) => Ok(None),
        Err(error @ NetError::NoConnections) => Err(failed(error)),
        Err(error) => {
            let PollError { fault, detail } = failed(error);
            Err(PollError::new(fault, format!("{name}: {detail}")))
        }
    }
}

/// Whether it is an answer: that there is no such name, or no such record of it.
fn has_none(error: &NetError) -> bool {
    let NetError::Dns(DnsError::NoRecordsFound(none)) = error else {
        return false;
    };
    matches!(
        none.response_code,
        ResponseCode::NXDomain | ResponseCode::NoError
    )
}

fn failed(error: NetError) -> PollError {
    let fault = match &error {
        NetError::NoConnections => {
            return PollError::new(Fault::Refused, "no server takes a connection by TCP");
        }
        NetError::Timeout => Fault::TimedOut,
        NetError::Dns(_) => Fault::BadStatus,
        NetError::Proto(_) => Fault::BadBody,
        _ => Fault::Failed,
    };
    PollError::new(fault, error)
}

fn address(record: &Record) -> Option<IpAddr> {
    match &record.data {
        RData::A(address) => Some(address.0.into()),
        RData::AAAA(address) => Some(address.0.into()),
        _ => None,
    }
}

fn service(record: &Record) -> Option<Service> {
    let RData::SRV(service) = &record.data else {
        return None;
    };
    Some(Service {
        priority: service.priority,
        port: service.port,
        target: service.target.clone(),
        addresses: Vec::new(),
    })
}

#[cfg(test)]
mod tests;
