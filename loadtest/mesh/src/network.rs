// SPDX-License-Identifier: Apache-2.0
//! Where processes run: all on loopback, or each host and weir-control in its own network namespace.
//!
//! ```text
//!  this machine ── bridge wm<pid>, 198.18.N.1 ──┬── wm<pid>h1 ══ eth0 198.18.N.11 in weir-mesh-<pid>-rules-1
//!  (callers, Consul, Prometheus)                └── wm<pid>h2 ══ eth0 198.18.N.12 in weir-mesh-<pid>-rules-2
//! ```
//!
//! The addresses are those for measurements of networks (RFC 2544): nobody has them in earnest.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::panic::resume_unwind;
use std::path::Path;
use std::process::{self, Command};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sched::{CloneFlags, setns};
use nix::unistd::{Uid, setfsuid};
use weir_stage::bound::through;
use weir_stage::command::Run;
use weir_stage::record;

/// What names of namespaces begin with; the process and the host follow.
const NAMESPACE: &str = "weir-mesh-";
/// What names of interfaces begin with. They are 15 bytes at most (linux/if.h, `IFNAMSIZ`), so the rest is
/// short.
const INTERFACE: &str = "wm";
const NEEDS: &str = "network namespaces need root and `ip` of iproute2";
/// Hosts are numbered from the address behind this.
const FIRST: usize = 10;
/// Of applications whose connections are led to their sidecars, which are root's: `nobody`.
const APPLICATION: Uid = Uid::from_raw(65_534);

/// Where a process runs and listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: IpAddr,
    pub(crate) namespace: Option<String>,
}

impl Place {
    /// This machine's own loopback.
    pub(crate) fn loopback() -> Self {
        Self {
            address: Ipv4Addr::LOCALHOST.into(),
            namespace: None,
        }
    }

    /// The command, run there.
    pub(crate) fn command(&self, command: Command) -> Command {
        match &self.namespace {
            // `ip` becomes the program: the process keeps its number.
            Some(name) => through("ip", &["netns", "exec", name], &command),
            None => command,
        }
    }

    pub(crate) fn at(&self, port: u16) -> SocketAddr {
        (self.address, port).into()
    }

    /// By which address it reaches what runs beside the others.
    pub(crate) fn gateway(&self) -> IpAddr {
        match (&self.namespace, self.address) {
            (Some(_), IpAddr::V4(address)) => gateway(address).into(),
            _ => Ipv4Addr::LOCALHOST.into(),
        }
    }
}

fn gateway(address: Ipv4Addr) -> Ipv4Addr {
    let [a, b, c, _] = address.octets();
    Ipv4Addr::new(a, b, c, 1)
}

/// A bridge with a link to each namespace. All of it is removed when the value is dropped.
pub(crate) struct Network {
    bridge: String,
    gateway: Ipv4Addr,
    /// The machine's end of each namespace's link.
    links: BTreeMap<String, String>,
    so_far: usize,
}

impl Network {
    /// Makes the bridge.
    ///
    /// # Errors
    /// It needs root and iproute2.
    pub(crate) fn make() -> Result<Self> {
        let id = process::id();
        let bridge = format!("{INTERFACE}{id}");
        let gateway = free_network().context(NEEDS)?;
        ip(&format!("link add {bridge} type bridge")).context(NEEDS)?;
        let network = Self {
            bridge,
            gateway,
            links: BTreeMap::new(),
            so_far: 0,
        };
        let Self {
            bridge, gateway, ..
        } = &network;
        ip(&format!("addr add {gateway}/24 dev {bridge}"))?;
        ip(&format!("link set {bridge} up"))?;
        Ok(network)
    }

    /// By which address namespaces reach this machine.
    pub(crate) fn gateway(&self) -> Ipv4Addr {
        self.gateway
    }

    /// A namespace of its own for a host.
    pub(crate) fn place(&mut self, host: &str) -> Result<Place> {
        self.so_far += 1;
        ensure!(FIRST + self.so_far < 255, "a network has no more addresses");
        let [a, b, c, _] = self.gateway.octets();
        let address = Ipv4Addr::new(a, b, c, (FIRST + self.so_far) as u8);
        let name = format!("{NAMESPACE}{}-{host}", process::id());
        let link = format!("{}h{}", self.bridge, self.so_far);
        ip(&format!("netns add {name}")).context(NEEDS)?;
        self.links.insert(name.clone(), link.clone());
        ip(&format!(
            "link add {link} type veth peer name eth0 netns {name}"
        ))?;
        ip(&format!("link set {link} master {} up", self.bridge))?;
        ip(&format!("-n {name} addr add {address}/24 dev eth0"))?;
        ip(&format!("-n {name} link set lo up"))?;
        ip(&format!("-n {name} link set eth0 up"))?;
        Ok(Place {
            address: address.into(),
            namespace: Some(name),
        })
    }

    /// Lets a namespace send to any address, as virtual ones, which nobody has.
    pub(crate) fn open(&self, namespace: &str) -> Result<()> {
        let gateway = self.gateway;
        ip(&format!("-n {namespace} route add default via {gateway}"))
    }

    /// Removes a namespace whose processes have ended.
    pub(crate) fn remove(&mut self, namespace: &str) -> Result<()> {
        remove(namespace, self.link(namespace)?)?;
        self.links.remove(namespace);
        Ok(())
    }

    /// Cuts its link, or mends it: what is sent while it is cut is lost.
    pub(crate) fn connect(&self, namespace: &str, connected: bool) -> Result<()> {
        let state = if connected { "up" } else { "down" };
        ip(&format!("link set {} {state}", self.link(namespace)?))
    }

    /// Each packet takes so much longer, in both directions.
    pub(crate) fn delay(&self, namespace: &str, delay: Duration) -> Result<()> {
        let link = self.link(namespace)?;
        let microseconds = delay.as_micros();
        let what = format!("root netem delay {microseconds}us");
        tc(&format!("qdisc replace dev {link} {what}"))?;
        tc(&format!("-n {namespace} qdisc replace dev eth0 {what}"))
    }

    /// The link carries no more than this, in each direction.
    pub(crate) fn narrow(&self, namespace: &str, bits_per_second: u64) -> Result<()> {
        let link = self.link(namespace)?;
        // A burst of a few packets; what waits longer than the latency is dropped.
        let what = format!("root tbf rate {bits_per_second}bit burst 16kb latency 50ms");
        tc(&format!("qdisc replace dev {link} {what}"))?;
        tc(&format!("-n {namespace} qdisc replace dev eth0 {what}"))
    }

    /// Neither delayed nor narrowed any more.
    pub(crate) fn widen(&self, namespace: &str) -> Result<()> {
        tc(&format!("qdisc del dev {} root", self.link(namespace)?))?;
        tc(&format!("-n {namespace} qdisc del dev eth0 root"))
    }

    fn link(&self, namespace: &str) -> Result<&str> {
        let link = self.links.get(namespace);
        let link = link.with_context(|| format!("there is no namespace {namespace}"))?;
        Ok(link)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for (namespace, link) in &self.links {
            // Nothing to be done about it here; the next mesh tries again.
            let _ = remove(namespace, link);
        }
        let _ = ip(&format!("link del {}", self.bridge));
    }
}

/// Removes a namespace and its link. The link by name: the kernel takes a namespace down in the background, and until
/// then its link keeps a name that the next network of this process has as well.
fn remove(namespace: &str, link: &str) -> Result<()> {
    let cut = ip(&format!("link del {link}"));
    ip(&format!("netns del {namespace}"))?;
    cut
}

/// Whether network namespaces can be had here.
///
/// # Errors
/// They cannot, and why.
pub fn possible() -> Result<()> {
    let mut network = Network::make()?;
    network.place("trial").map(drop)
}

/// Whether connections of a namespace can be led to a sidecar here.
///
/// # Errors
/// There are no network namespaces, no `iptables`, or a kernel without NAT; and why.
pub fn redirection_possible() -> Result<()> {
    let mut network = Network::make()?;
    let place = network.place("trial")?;
    let mut rules = Command::new("iptables");
    rules.args(["--table", "nat", "--list-rules"]);
    place.command(rules).captured().map(drop)
}

/// Does something in a namespace, as an application there: by a user of whom sidecars are none.
///
/// # Errors
/// There is no such namespace, or one may not enter it.
pub(crate) fn inside<T: Send>(namespace: &str, act: impl FnOnce() -> T + Send) -> Result<T> {
    let file = Path::new("/run/netns").join(namespace);
    let entered = || {
        let opened = File::open(&file).with_context(|| format!("opening {}", file.display()))?;
        setns(opened, CloneFlags::CLONE_NEWNET).context(NEEDS)?;
        // Both are this thread's alone.
        setfsuid(APPLICATION);
        Ok(act())
    };
    let done = thread::scope(|scope| scope.spawn(entered).join());
    done.unwrap_or_else(|panic| resume_unwind(panic))
}

/// What meshes have left whose processes are gone.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// Names of what is removed now.
    pub(crate) removed: Vec<String>,
    /// What could not be removed, each with the reason.
    pub(crate) kept: Vec<String>,
}

impl Leftovers {
    fn remove(&mut self, name: String, kind: &str, needed: bool) -> Result<()> {
        match ip(&format!("{kind} del {name}")) {
            Ok(()) => self.removed.push(name),
            Err(error) if !needed => self.kept.push(format!("{name}: {error:#}")),
            Err(error) => return Err(error.context(format!("removing {name}"))),
        }
        Ok(())
    }
}

/// Removes the namespaces and bridges of processes that are gone. An ordinary user sees root's and may not:
/// that is told, unless networks are `needed`.
///
/// # Errors
/// They are, and one cannot be removed.
pub(crate) fn remove_leftovers(needed: bool) -> Result<Leftovers> {
    // Without `ip`, or where it may not look, nothing was made either.
    let namespaces = ip_says("netns list").unwrap_or_default();
    let links = ip_says("-o link show type bridge").unwrap_or_default();
    let mut leftovers = Leftovers::default();
    for name in left(&namespaces, NAMESPACE) {
        leftovers.remove(name, "netns", needed)?;
    }
    // `7: wm123: <BROADCAST,…`; links to namespaces went with them.
    let names: Vec<&str> = links
        .lines()
        .filter_map(|line| line.split(": ").nth(1))
        .collect();
    for name in left(&names.join("\n"), INTERFACE) {
        leftovers.remove(name, "link", needed)?;
    }
    Ok(leftovers)
}

/// The names, one a line and followed by what does not matter, of processes that are gone.
fn left(names: &str, prefix: &str) -> Vec<String> {
    let gone = |name: &&str| {
        let rest = name.strip_prefix(prefix)?;
        let id: u32 = rest.split('-').next()?.parse().ok()?;
        Some(!record::lives(id))
    };
    names
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| gone(name).unwrap_or(false))
        .map(str::to_owned)
        .collect()
}

/// A network of 198.18.0.0/16 that no interface has. Meshes that start at once look in different places.
fn free_network() -> Result<Ipv4Addr> {
    let taken = ip_says("-o -4 addr show")?;
    (0..256)
        .map(|number| format!("198.18.{}.", (process::id() + number) % 256))
        .find(|network| !taken.contains(network))
        .and_then(|network| format!("{network}1").parse().ok())
        .context("every network of 198.18.0.0/16 is taken")
}

fn ip(arguments: &str) -> Result<()> {
    ip_says(arguments).map(drop)
}

fn ip_says(arguments: &str) -> Result<String> {
    Command::new("ip")
        .args(arguments.split_whitespace())
        .captured()
}

fn tc(arguments: &str) -> Result<()> {
    let mut command = Command::new("tc");
    command.args(arguments.split_whitespace());
    command.captured().map(drop)
}

#[cfg(test)]
mod tests {
    use weir_needs::Need;

    use super::*;

    #[test]
    fn only_names_of_processes_that_are_gone_are_left() {
        let own = process::id();
        // No process has a number beyond the largest (proc(5), pid_max).
        let names = format!(
            "weir-mesh-{own}-rules-1 (id: 3)\nweir-mesh-99999999-rules-1 (id: 4)\nweir-mesh-x\nother"
        );
        assert_eq!(left(&names, NAMESPACE), ["weir-mesh-99999999-rules-1"]);
        assert_eq!(left("wm99999999\nwmx\nwlan0", INTERFACE), ["wm99999999"]);
    }

    #[test]
    fn no_name_of_a_network_is_taken_once_it_is_dropped() {
        let mut network = match Network::make() {
            Ok(network) => network,
            Err(error) => {
                weir_needs::skip(Need::Namespaces, format!("{error:#}"));
                return;
            }
        };
        for host in 0..8 {
            network.place(&format!("taken-{host}")).unwrap();
        }
        let of_network = |network: &Network| {
            let links = ip_says("-o link show").unwrap();
            let name = format!("{}h", network.bridge);
            links.lines().filter(|line| line.contains(&name)).count()
        };
        assert_eq!(of_network(&network), 8);
        let namespace = network.links.keys().next().unwrap().clone();
        network.remove(&namespace).unwrap();
        assert_eq!(of_network(&network), 7);
        let bridge = network.bridge.clone();
        drop(network);
        let links = ip_says("-o link show").unwrap();
        assert!(!links.contains(&bridge), "{links}");
    }

    #[test]
    fn what_cannot_be_removed_is_told_where_no_network_is_needed() {
        // Nobody has it, and nobody could make it: the name is longer than IFNAMSIZ.
        let name = "wm99999999-of-another".to_owned();
        let mut leftovers = Leftovers::default();
        leftovers.remove(name.clone(), "link", false).unwrap();
        assert_eq!(leftovers.removed, Vec::<String>::new());
        assert!(leftovers.kept[0].starts_with(&name), "{leftovers:?}");
        let error = leftovers.remove(name.clone(), "link", true).unwrap_err();
        assert!(error.to_string().contains(&name), "{error}");
    }

    #[test]
    fn a_namespace_reaches_the_machine_by_its_networks_first_address() {
        let place = Place {
            address: "198.18.7.12".parse().unwrap(),
            namespace: Some("weir-mesh-1-rules-2".to_owned()),
        };
        assert_eq!(place.gateway().to_string(), "198.18.7.1");
        assert_eq!(Place::loopback().gateway().to_string(), "127.0.0.1");
    }
}
