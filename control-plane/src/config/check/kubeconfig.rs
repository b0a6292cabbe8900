// SPDX-License-Identifier: Apache-2.0
//! How a kubeconfig says that an API server is reached: the part of its format that needs no other program
//! (kubernetes.io/docs/reference/config-api/kubeconfig.v1).

use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;

use super::server::is_server;
use super::{Reader, beside};
use crate::client::Client;
use crate::config::{ApiServer, Bearer, Server, Token};

#[derive(Debug, Deserialize)]
struct Kubeconfig {
    #[serde(rename = "current-context", default)]
    current_context: String,
    #[serde(default)]
    contexts: Vec<NamedContext>,
    #[serde(default)]
    clusters: Vec<NamedCluster>,
    #[serde(default)]
    users: Vec<NamedUser>,
}

#[derive(Debug, Deserialize)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Debug, Deserialize)]
struct Context {
    cluster: String,
    #[serde(default)]
    user: String,
}

#[derive(Debug, Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority: Option<String>,
    certificate_authority_data: Option<String>,
    // What would have to be heeded.
    insecure_skip_tls_verify: Option<bool>,
    tls_server_name: Option<String>,
    proxy_url: Option<String>,
}

#[derive(Debug, Deserialize)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct User {
    client_certificate: Option<String>,
    client_certificate_data: Option<String>,
    client_key: Option<String>,
    client_key_data: Option<String>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<String>,
    // What would have to be heeded.
    username: Option<serde::de::IgnoredAny>,
    exec: Option<serde::de::IgnoredAny>,
    auth_provider: Option<serde::de::IgnoredAny>,
    #[serde(rename = "as")]
    impersonate: Option<serde::de::IgnoredAny>,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("User")
    }
}

/// The API server of the current context. The error is a reason that names the file.
pub(super) fn kubeconfig(path: &Path, reader: &mut Reader) -> Result<ApiServer, String> {
    let file: Kubeconfig = reader.yaml(path).map_err(|error| error.to_string())?;
    let reason = |why: String| format!("{}: {why}", path.display());
    read(&file, path, reader).map_err(reason)
}

fn read(file: &Kubeconfig, path: &Path, reader: &mut Reader) -> Result<ApiServer, String> {
    let name = &file.current_context;
    let context = file.contexts.iter().find(|context| context.name == *name);
    let context = &context
        .ok_or_else(|| format!("current-context: there is no context {name:?}"))?
        .context;
    let of_context = |field: &str, named: &str| {
        format!("contexts.{name}.{field}: there is no {field} {named:?}")
    };
    let mut clusters = file.clusters.iter();
    let cluster = clusters.find(|one| one.name == context.cluster);
    let cluster = &cluster
        .ok_or_else(|| of_context("cluster", &context.cluster))?
        .cluster;
    let user = file.users.iter().find(|user| user.name == context.user);
    let nobody = User::default();
    let user = match (user, &*context.user) {
        (Some(named), _) => &named.user,
        (None, "") => &nobody,
        (None, named) => return Err(of_context("user", named)),
    };
    refuse_what_is_not_heeded(cluster, user)?;
    let mut bytes = |data: &Option<String>, file: &Option<String>, field: &str| {
        let read = match (data, file) {
            // Data count before a file; what is empty is not there.
            (Some(data), _) if !data.is_empty() => BASE64_STANDARD
                .decode(data)
                .map_err(|_| "is not base64".into()),
            (_, Some(file)) if !file.is_empty() => reader.bytes(&beside(path, file)),
            _ => return Ok(None),
        };
        read.map(Some).map_err(|why| format!("{field}: {why}"))
    };
    let ca = bytes(
        &cluster.certificate_authority_data,
        &cluster.certificate_authority,
        "certificate-authority",
    )?;
    let shown = (
        bytes(
            &user.client_certificate_data,
            &user.client_certificate,
            "client-certificate",
        )?,
        bytes(&user.client_key_data, &user.client_key, "client-key")?,
    );
    let identity = match shown {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err("client-certificate and client-key are only of use together".into()),
    };
    let is_there = |text: &&String| !text.is_empty();
    // The file is renewed, and counts before what was written once.
    let bearer = match (
        user.token_file.as_ref().filter(is_there),
        user.token.as_ref().filter(is_there),
    ) {
        (Some(file), _) => Some(Bearer::File(beside(path, file))),
        (None, Some(token)) => {
            let token = Token::read(token.as_bytes());
            Some(Bearer::Token(token.map_err(|_| "token: is not one token")?))
        }
        (None, None) => None,
    };
    // It may hold a password, so it is not shown.
    if !is_server(&cluster.server) {
        return Err("server: is not https://host:port, or http://host:port of loopback".into());
    }
    let mut server = Server {
        url: cluster.server.trim_end_matches('/').to_owned(),
        ca,
        identity: None,
    };
    if !server.is_secure() && !server.is_loopback() {
        let url = &server.url;
        return Err(format!(
            "server: {url} is neither https:// nor loopback, so all would be sent in the clear"
        ));
    }
    let is_of_tls = [
        ("certificate-authority", server.ca.is_some()),
        ("client-certificate", identity.is_some()),
    ];
    if let Some((field, _)) = is_of_tls.iter().find(|(_, is_there)| *is_there)
        && !server.is_secure()
    {
        return Err(format!("{field}: only an https:// server reads it"));
    }
    // What the library says of the certificates, before any port is bound.
    Client::new(&server).map_err(|why| format!("certificate-authority: {why}"))?;
    server.identity = identity;
    Client::new(&server).map_err(|why| format!("client-certificate: {why}"))?;
    Ok(ApiServer { server, bearer })
}

fn refuse_what_is_not_heeded(cluster: &Cluster, user: &User) -> Result<(), String> {
    let certificates = "the API server's certificate is always checked, for the name in `server`";
    let credentials =
        "show a certificate, a token or a tokenFile, such as that of a service account";
    let is_insecure = cluster.insecure_skip_tls_verify.unwrap_or(false);
    for (is_there, field, why) in [
        (is_insecure, "insecure-skip-tls-verify", certificates),
        (
            cluster
                .tls_server_name
                .as_ref()
                .is_some_and(|name| !name.is_empty()),
            "tls-server-name",
            certificates,
        ),
        (
            cluster
                .proxy_url
                .as_ref()
                .is_some_and(|url| !url.is_empty()),
            "proxy-url",
            "no proxy is asked on the way",
        ),
        (user.exec.is_some(), "exec", credentials),
        (user.auth_provider.is_some(), "auth-provider", credentials),
        (user.username.is_some(), "username", credentials),
        (user.impersonate.is_some(), "as", credentials),
    ] {
        if is_there {
            return Err(format!("{field} is not heeded: {why}"));
        }
    }
    Ok(())
}
