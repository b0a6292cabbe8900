// SPDX-License-Identifier: Apache-2.0
//! Kubernetes without nodes: an API server with its store, on loopback, for who asks it.
//!
//! ```text
//! kubeconfig ─> kube-apiserver (https, RBAC, service accounts) ─> etcd
//! ```
//! There are no controllers: nobody makes endpoints of pods, or pods of deployments.

use std::fs::{self, Permissions};
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::http;
use crate::processes::Processes;

const ETCD: &str = "etcd";
const API_SERVER: &str = "kube-apiserver";

/// On a busy machine; they take a few seconds.
const READY: Duration = Duration::from_secs(120);

/// Both programs, running. They end with the value.
pub struct Kube {
    processes: Processes,
    folder: PathBuf,
    address: SocketAddr,
}

impl Kube {
    /// Starts them on free ports, with all that they write in the folder, which nobody else may read from then on, and
    /// waits until an administrator is served.
    ///
    /// # Errors
    /// One cannot be started, or has ended; the end of its log is in the error.
    pub fn start(etcd: &Path, api_server: &Path, folder: &Path) -> Result<Self> {
        let [client, peer, secure] = free_ports()?;
        // There are keys in it.
        fs::set_permissions(folder, Permissions::from_mode(0o700))
            .with_context(|| format!("closing {} to others", folder.display()))?;
        let mut kube = Self {
            processes: Processes::new(folder.to_owned())?.bound(folder.join("processes")),
            folder: folder.to_owned(),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, secure)),
        };
        let key = service_account_key()?;
        fs::write(kube.file("service-account.key"), key)?;
        let token = base64(&random()?);
        let line = format!("{token},admin,admin,system:masters\n");
        fs::write(kube.file("tokens.csv"), line)?;
        let user = json!({ "token": token });
        fs::write(kube.kubeconfig(), kube.with_user(&user).to_string())?;
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let command = kube.store(etcd, &url(client), &url(peer));
        kube.processes.start(ETCD, command)?;
        let healthy = SocketAddr::from((Ipv4Addr::LOCALHOST, client));
        let processes = &mut kube.processes;
        processes.wait_until("the store", READY, || http::get(healthy, "/health").ok())?;
        let command = kube.api_server(api_server, &url(client));
        kube.processes.start(API_SERVER, command)?;
        kube.wait()?;
        Ok(kube)
    }

    /// Of an administrator.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.file("kubeconfig")
    }

    /// Of somebody who shows what this file has.
    #[must_use]
    pub fn kubeconfig_of(&self, token_file: &Path) -> String {
        self.with_user(&json!({ "tokenFile": token_file }))
            .to_string()
    }

    /// # Errors
    /// One of them has ended, with the end of its log.
    pub fn check(&mut self) -> Result<()> {
        self.processes.check()
    }

    /// Kills the API server. The store stays.
    ///
    /// # Errors
    /// It has ended already.
    pub fn kill(&mut self) -> Result<()> {
        self.processes.kill(API_SERVER)
    }

    /// Starts the API server again, where it was, and waits until it is ready.
    ///
    /// # Errors
    /// It has ended instead.
    pub fn again(&mut self) -> Result<()> {
        self.processes.again(API_SERVER)?;
        self.wait()
    }

    fn store(&self, program: &Path, client: &str, peer: &str) -> Command {
        let mut command = Command::new(program);
        command
            .arg("--data-dir")
            .arg(self.file("store"))
            // What is lost at a crash of the machine is nobody's.
            .arg("--unsafe-no-fsync")
            .args(["--log-level", "warn"])
            .args(["--listen-client-urls", client])
            .args(["--advertise-client-urls", client])
            .args(["--listen-peer-urls", peer])
            .args(["--initial-advertise-peer-urls", peer])
            .args(["--initial-cluster", &format!("default={peer}")]);
        command
    }

    /// It makes its own certificate, and finds it again when it is started again.
    fn api_server(&self, program: &Path, store: &str) -> Command {
        let mut command = Command::new(program);
        let key = self.file("service-account.key");
        command
            .args(["--etcd-servers", store])
            .args(["--bind-address", "127.0.0.1", "--secure-port"])
            .arg(self.address.port().to_string())
            .arg("--cert-dir")
            .arg(&self.folder)
            .args(["--authorization-mode", "RBAC"])
            .arg("--token-auth-file")
            .arg(self.file("tokens.csv"))
            .args(["--service-account-issuer", "https://kubernetes.default.svc"])
            .arg("--service-account-key-file")
            .arg(&key)
            .arg("--service-account-signing-key-file")
            .arg(&key)
            .args(["--service-cluster-ip-range", "10.0.0.0/24"])
            // Nobody is to find it by the service `kubernetes`: loopback may not be written there.
            .args(["--endpoint-reconciler-type", "none"]);
        command
    }

    /// An administrator may do everything from then on; what it makes itself, such as namespaces, comes a little later.
    fn wait(&mut self) -> Result<()> {
        let address = self.address;
        self.processes.wait_until("the API server", READY, || {
            TcpStream::connect(address).ok().map(drop)
        })
    }

    fn with_user(&self, user: &Value) -> Value {
        let server = format!("https://{}", self.address);
        let ca = self.file("apiserver.crt");
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "weir",
            "contexts": [{ "name": "weir", "context": { "cluster": "weir", "user": "weir" } }],
            "clusters": [{ "name": "weir", "cluster": { "server": server, "certificate-authority": ca } }],
            "users": [{ "name": "weir", "user": user }],
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// All at once, so that they differ. Somebody else may take one before it is used: then the start fails, in words.
fn free_ports() -> Result<[u16; 3]> {
    let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let held = [free()?, free()?, free()?];
    let mut ports = [0; 3];
    for (port, held) in ports.iter_mut().zip(&held) {
        *port = held.local_addr()?.port();
    }
    Ok(ports)
}

fn random() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    let mut source = fs::File::open("/dev/urandom").context("opening /dev/urandom")?;
    source.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// With which it signs tokens: a key of the curve P-256 in PEM (RFC 5915). The public half may be left out there, so
/// that nothing is to be calculated.
fn service_account_key() -> Result<String> {
    const BEFORE: [u8; 7] = [0x30, 0x31, 0x02, 0x01, 0x01, 0x04, 0x20];
    const CURVE: [u8; 12] = [
        0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07,
    ];
    let mut secret = random()?;
    // Less than the curve's order, and not 0.
    secret[0] &= 0x7f;
    secret[31] |= 1;
    let key = base64(&[&BEFORE[..], &secret, &CURVE].concat());
    Ok(format!(
        "-----BEGIN EC PRIVATE KEY-----\n{key}\n-----END EC PRIVATE KEY-----\n"
    ))
}

/// Of whole groups of three bytes; the rest is left out. A crate for this alone would be one more to compile first.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: [u8; 64] = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (groups, _) = bytes.as_chunks::<3>();
    let digits = groups.iter().flat_map(|[one, two, three]| {
        let group = u32::from_be_bytes([0, *one, *two, *three]);
        [18, 12, 6, 0].map(|shift| char::from(DIGITS[(group >> shift & 63) as usize]))
    });
    digits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_whole_groups_of_bytes_and_is_another_each_time() {
        // RFC 4648, section 10.
        assert_eq!(base64(b"foobar"), "Zm9vYmFy");
        let [one, other] = [(); 2].map(|()| service_account_key().unwrap());
        assert_ne!(one, other);
        // 51 bytes: what stands before the secret, it, and the curve.
        let line = one.lines().nth(1).unwrap();
        assert_eq!(line.len(), 51 / 3 * 4);
        assert!(line.starts_with("MDECAQEEI") && line.ends_with("oAoGCCqGSM49AwEH"));
    }
}
