// SPDX-License-Identifier: Apache-2.0
//! Who may do what, asked by each service of the listener.
//!
//! ```text
//!  certificate ── Peer ──┐
//!  x-weir-identity ──────┴─> Caller ── Authorization (pure) ──> go on, or PERMISSION_DENIED
//!   (of replicas alone)                     └─> denied_total{what}, a line a minute and identity
//! ```
//! Without rules everybody may do everything.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::Status;
use tonic::transport::server::TcpConnectInfo;
use tracing::warn;
use weir_fleet::authorization::{Authorization, Caps, Sight, What};
use weir_tables::v1;

use crate::config::Config;
use crate::sources::discovery::short;

/// A stream that comes from a replica goes no further: two that follow each other would send it in a circle.
pub(crate) const FORWARDED: HeaderName = HeaderName::from_static("x-weir-forwarded");
/// Whose stream it is that a replica passes on.
const IDENTITY: HeaderName = HeaderName::from_static("x-weir-identity");
/// Of one identity no more is logged.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// Identities whose last line in the log is remembered. Certificates are signed by an authority, so there are few.
const MOST_REMEMBERED: usize = 1024;

/// The other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where it is.
    pub address: TcpConnectInfo,
    /// What its certificate names, if it has shown one.
    pub identity: Option<Arc<str>>,
}

/// Whose a stream is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// Where it comes from.
    pub(crate) address: Option<SocketAddr>,
    /// What its certificate names.
    pub(crate) identity: Option<Arc<str>>,
}

/// Labels of what was denied.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct Denied {
    what: &'static str,
}

/// How often something was denied, by what it was.
pub type Denials = Family<Denied, Counter>;

/// What is denied beside what rules can allow: the proxy id of another identity.
const PROXY: &str = "proxy";

/// Counts from the start, or the first one would be no increase.
pub(crate) fn begin(denials: &Denials) {
    let known = What::ALL.into_iter().map(What::as_str);
    for what in known.chain([PROXY]) {
        denials.get_or_create(&Denied { what }).inc_by(0);
    }
}

/// Asks the rules of the newest configuration. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    configs: Option<watch::Receiver<Arc<Config>>>,
    denials: Denials,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// By proxy id: whose it is, and how many streams it has.
    owners: BTreeMap<String, (Arc<str>, usize)>,
    /// When something of an identity was last logged, and what was not since.
    logged: BTreeMap<Arc<str>, (Instant, u64)>,
}

/// A proxy id that is an identity's until this is dropped.
#[derive(Debug)]
pub(crate) struct Owned {
    shared: Arc<Mutex<Shared>>,
    proxy: String,
}

impl Gate {
    /// By the rules of `configs`; what is denied is counted in `denials`.
    pub fn new(configs: watch::Receiver<Arc<Config>>, denials: Denials) -> Self {
        begin(&denials);
        Self {
            configs: Some(configs),
            denials,
            shared: Arc::default(),
        }
    }

    /// Returns when the rules may be others.
    pub(crate) async fn changed(&mut self) {
        let changed = match &mut self.configs {
            Some(configs) => configs.changed().await.is_ok(),
            None => false,
        };
        if !changed {
            std::future::pending().await
        }
    }

    fn rules(&self) -> Option<Arc<Authorization>> {
        let configs = self.configs.as_ref()?;
        configs.borrow().authorization.clone()
    }

    /// Whose a request is. What a replica passes on is of whom it names, and nobody else may name anybody.
    pub(crate) fn caller(
        &self,
        extensions: &Extensions,
        headers: &HeaderMap,
    ) -> Result<Caller, Status> {
        let peer = extensions.get::<Peer>();
        let plain = extensions.get::<TcpConnectInfo>();
        let address = peer.map(|peer| &peer.address).or(plain);
        let caller = Caller {
            address: address.and_then(TcpConnectInfo::remote_addr),
            identity: peer.and_then(|peer| peer.identity.clone()),
        };
        let is_passed_on = headers.contains_key(FORWARDED) || headers.contains_key(IDENTITY);
        let Some(rules) = self.rules().filter(|_| is_passed_on) else {
            return Ok(caller);
        };
        let shown = self.known(&caller, What::Replica.as_str())?;
        if !rules.is_replica(&shown) {
            return Err(self.deny(&shown, What::Replica.as_str(), "pass on what others say"));
        }
        let named = headers.get(IDENTITY).and_then(|name| name.to_str().ok());
        Ok(Caller {
            identity: named.map(Arc::from),
            ..caller
        })
    }

    /// What a caller is told; none where that is everything.
    pub(crate) fn sight(&self, caller: &Caller) -> Result<Option<Sight>, Status> {
        let Some(rules) = self.rules() else {
            return Ok(None);
        };
        let identity = self.known(caller, What::Tables.as_str())?;
        let sight = rules.sight(&identity);
        if sight.tables.are_none() && sight.keys.are_none() {
            return Err(self.deny(
                &identity,
                What::Tables.as_str(),
                "read anything of any cluster",
            ));
        }
        Ok(Some(sight))
    }

    /// Notes what a caller asks for and is not told. The log names the first: there may be a million.
    pub(crate) fn unseen<'a>(
        &self,
        caller: &Caller,
        mut denied: impl Iterator<Item = (What, &'a str)>,
    ) {
        let Some((what, name)) = denied.next() else {
            return;
        };
        let identity = caller.identity.clone().unwrap_or_default();
        self.count(&identity, what.as_str(), &format!("read {}", short(name)));
        for (what, _) in denied {
            let what = what.as_str();
            self.denials.get_or_create(&Denied { what }).inc();
        }
    }

    /// Whether a caller may speak for a host's node.
    pub(crate) fn may_set(&self, caller: &Caller, cluster: &str, host: &str) -> Result<(), Status> {
        let Some(rules) = self.rules() else {
            return Ok(());
        };
        let identity = self.known(caller, What::Capacity.as_str())?;
        match rules.may_set(&identity, cluster, host) {
            true => Ok(()),
            false => {
                let what = format!("set the capacity of {} in {}", short(host), short(cluster));
                Err(self.deny(&identity, What::Capacity.as_str(), &what))
            }
        }
    }

    /// Takes away what a caller may not report, and says how far the rest counts; an error where that is all.
    pub(crate) fn sift(&self, caller: &Caller, report: &mut v1::Report) -> Result<Caps, Status> {
        let Some(rules) = self.rules() else {
            return Ok(Caps::new());
        };
        let identity = self.known(caller, What::Report.as_str())?;
        if rules.clusters(&identity, What::Report).are_none() {
            return Err(self.deny(&identity, What::Report.as_str(), "report on any cluster"));
        }
        let (denied, caps) = rules.sift(&identity, report);
        if let Some(cluster) = denied.first() {
            self.deny(
                &identity,
                What::Report.as_str(),
                &format!("report on {}", short(cluster)),
            );
        }
        Ok(caps)
    }

    /// Makes a proxy id the caller's for as long as it has a stream; none where there are no rules.
    pub(crate) fn own(&self, caller: &Caller, proxy: &str) -> Result<Option<Owned>, Status> {
        if self.rules().is_none() {
            return Ok(None);
        }
        let identity = self.known(caller, PROXY)?;
        let mut shared = self.lock();
        let owner = shared.owners.entry(proxy.to_owned());
        let (owner, streams) = owner.or_insert_with(|| (identity.clone(), 0));
        if *owner != identity {
            drop(shared);
            return Err(self.deny(&identity, PROXY, &format!("be the proxy {proxy:?}")));
        }
        *streams += 1;
        Ok(Some(Owned {
            shared: self.shared.clone(),
            proxy: proxy.to_owned(),
        }))
    }

    fn known(&self, caller: &Caller, what: &'static str) -> Result<Arc<str>, Status> {
        let nobody = || {
            self.count(&Arc::default(), what, "do anything");
            Status::permission_denied("the certificate has neither a URI nor a DNS name")
        };
        caller.identity.clone().ok_or_else(nobody)
    }

    fn deny(&self, identity: &Arc<str>, what: &'static str, action: &str) -> Status {
        self.count(identity, what, action);
        Status::permission_denied(format!(
            "no rule of authorization allows {identity:?} to {action}"
        ))
    }

    fn count(&self, identity: &Arc<str>, what: &'static str, action: &str) {
        self.denials.get_or_create(&Denied { what }).inc();
        let unsaid = self.lock().log(identity, Instant::now());
        if let Some(unsaid) = unsaid {
            warn!(%identity, what, action, unsaid, "denied");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Whether a line is due, and how many were not written before it.
    fn log(&mut self, identity: &Arc<str>, now: Instant) -> Option<u64> {
        if let Some((at, unsaid)) = self.logged.get_mut(identity) {
            if now.saturating_duration_since(*at) < LOG_EVERY {
                *unsaid += 1;
                return None;
            }
            *at = now;
            return Some(std::mem::take(unsaid));
        }
        if self.logged.len() >= MOST_REMEMBERED {
            self.logged
                .retain(|_, (at, _)| now.saturating_duration_since(*at) < LOG_EVERY);
        }
        if self.logged.len() >= MOST_REMEMBERED {
            return None;
        }
        self.logged.insert(identity.clone(), (now, 0));
        Some(0)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, streams)) = shared.owners.get_mut(&self.proxy) {
            *streams -= 1;
            if *streams == 0 {
                shared.owners.remove(&self.proxy);
            }
        }
    }
}

/// Says whose a request is that goes on to the leader, and that it was passed on.
pub(crate) fn pass_on<B>(request: &mut http::Request<B>) {
    let peer = request.extensions().get::<Peer>();
    let identity = peer.and_then(|peer| HeaderValue::from_str(peer.identity.as_deref()?).ok());
    let headers = request.headers_mut();
    headers.insert(FORWARDED, HeaderValue::from_static("1"));
    // What the caller says of itself is no word of ours.
    headers.remove(IDENTITY);
    if let Some(identity) = identity {
        headers.insert(IDENTITY, identity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_fleet::authorization::{Clusters, Pattern, Rule};

    /// Everybody under `m/a/` may read and report on cluster a, and `m/control` is a replica.
    fn gate() -> Gate {
        let rule = |identity: &str, what: &[What]| Rule {
            identity: Pattern::parse(identity).unwrap(),
            clusters: Clusters::Named(["a".to_owned()].into()),
            what: what.iter().copied().collect(),
            hosts: None,
            max_priority: 0,
        };
        let rules = vec![
            rule("m/a/*", &[What::Tables, What::Report]),
            rule("m/control", &[What::Replica]),
        ];
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "clusters: { a: { consul: {} } }").unwrap();
        let config = crate::config::load(file.path()).unwrap().config;
        let config = Config {
            authorization: Some(Arc::new(Authorization(rules))),
            ..Config::clone(&config)
        };
        let (_, configs) = watch::channel(Arc::new(config));
        Gate::new(configs, Denials::default())
    }

    fn request(identity: Option<&str>, headers: &[(HeaderName, &str)]) -> http::Request<()> {
        let mut request = http::Request::new(());
        let address = TcpConnectInfo {
            local_addr: None,
            remote_addr: None,
        };
        let identity = identity.map(Arc::from);
        request.extensions_mut().insert(Peer { address, identity });
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).unwrap();
            request.headers_mut().insert(name.clone(), value);
        }
        request
    }

    fn whose(gate: &Gate, request: &http::Request<()>) -> Result<Option<Arc<str>>, tonic::Code> {
        let caller = gate.caller(request.extensions(), request.headers());
        let identity = caller.map(|caller| caller.identity);
        identity.map_err(|status| status.code())
    }

    #[test]
    fn only_a_replica_speaks_for_others_and_only_for_whom_it_was_shown() {
        let gate = gate();
        let denied = Err(tonic::Code::PermissionDenied);
        let sidecar = request(Some("m/a/1"), &[]);
        assert_eq!(whose(&gate, &sidecar), Ok(Some("m/a/1".into())));
        for named in [(IDENTITY, "m/b/1"), (FORWARDED, "1")] {
            let liar = request(Some("m/a/1"), std::slice::from_ref(&named));
            assert_eq!(whose(&gate, &liar), denied);
            let nobody = request(None, &[named]);
            assert_eq!(whose(&gate, &nobody), denied);
        }
        // Through a replica, which says whose it is whatever the caller has said.
        for (shown, passed) in [(Some("m/a/1"), Some("m/a/1")), (None, None)] {
            let mut through = request(shown, &[(IDENTITY, "m/b/1")]);
            pass_on(&mut through);
            let leader = Peer {
                identity: Some("m/control".into()),
                ..through.extensions().get::<Peer>().unwrap().clone()
            };
            through.extensions_mut().insert(leader);
            assert_eq!(whose(&gate, &through), Ok(passed.map(Arc::from)));
        }
    }

    #[test]
    fn a_proxy_id_is_free_again_when_its_last_stream_has_ended() {
        let gate = gate();
        let caller = |identity: &str| Caller {
            address: None,
            identity: Some(identity.into()),
        };
        let own = |identity| gate.own(&caller(identity), "p");
        let (first, second) = (own("m/a/1").unwrap(), own("m/a/1").unwrap());
        drop(first);
        assert!(own("m/a/2").is_err());
        drop(second);
        let _other = own("m/a/2").unwrap();
        assert!(own("m/a/1").is_err());
        assert_eq!(gate.lock().owners.len(), 1);
    }

    #[test]
    fn a_line_a_minute_and_identity_and_no_more_identities_than_are_remembered() {
        let (mut shared, now) = (Shared::default(), Instant::now());
        let name = |index: usize| Arc::<str>::from(index.to_string());
        assert_eq!(shared.log(&name(0), now), Some(0));
        for _ in 0..3 {
            assert_eq!(shared.log(&name(0), now), None);
        }
        let written = (1..2 * MOST_REMEMBERED).filter_map(|index| shared.log(&name(index), now));
        assert_eq!(written.count(), MOST_REMEMBERED - 1);
        assert_eq!(shared.logged.len(), MOST_REMEMBERED);
        let later = now + LOG_EVERY;
        assert_eq!(shared.log(&name(0), later), Some(3));
        assert_eq!(shared.log(&name(5000), later), Some(0));
        assert_eq!(shared.logged.len(), 2);
    }
}
