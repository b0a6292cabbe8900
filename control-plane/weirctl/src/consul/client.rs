// SPDX-License-Identifier: Apache-2.0
//! Consul's HTTP API.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use http::{HeaderValue, Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Certificate, Identity, redirect};
use serde_json::Value;
use weir_consul::{Datacenter, Kind, Outcome, Share};

use crate::flags::consul::Server;

/// An agent on this machine.
const DEFAULT: &str = "http://127.0.0.1:8500";
/// Consul itself gives up on a leader after 7 s.
const LONGEST: Duration = Duration::from_secs(10);
/// An instance with its checks takes 1 to 2 KiB: as much as weir-control reads.
const MOST_BYTES: usize = 64 << 20;
/// Of an answer that is an error.
const MOST_SHOWN: usize = 300;

/// One Consul.
#[derive(Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    url: String,
    token: Option<HeaderValue>,
    datacenter: Option<String>,
    /// That entries are of: others have copies, with indexes of their own.
    primary: Option<String>,
}

/// What Consul says.
pub(super) struct Answer {
    pub(super) value: Value,
    /// The token may not read all that was asked for.
    pub(super) filtered: bool,
}

/// The token may not do that.
#[derive(Debug)]
pub(super) struct Denied {
    said: String,
    /// The rule that would allow it.
    pub(super) needs: String,
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; the token needs {}", self.said, self.needs)
    }
}

impl std::error::Error for Denied {}

impl Client {
    /// No connection yet. `variable` is the environment.
    pub(super) fn new(server: &Server, variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        for name in ["CONSUL_NAMESPACE", "CONSUL_PARTITION"] {
            let named = variable(name).filter(|named| named != "default");
            ensure!(
                named.is_none(),
                "{name} is set: only the default namespace and partition are known here"
            );
        }
        let url = url(server, &variable)?;
        let token = token(server, &variable)?;
        let private = url.starts_with("https://") || is_loopback(&url);
        ensure!(
            token.is_none() || private || server.plaintext,
            "{url} is neither https:// nor loopback, so the token would be sent in the clear; say --plaintext if that is \
             meant"
        );
        Ok(Self {
            http: http(server, &url, &variable)?,
            url,
            token,
            datacenter: server.datacenter.clone(),
            primary: None,
        })
    }

    /// The same, with the primary data centre where several know each other. A token that may not ask for it is taken to
    /// be used there.
    pub(super) async fn federated(
        server: &Server,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let mut client = Self::new(server, variable)?;
        if let Some(datacenter) = client.datacenter.take() {
            let path = ["agent", "self"];
            let agent = client.get(&path, &[], "agent_prefix").await;
            let primary = |agent: Answer| {
                let name = agent.value["Config"]["PrimaryDatacenter"].as_str()?;
                (!name.is_empty()).then(|| name.to_owned())
            };
            client.primary = agent.ok().flatten().and_then(primary);
            client.datacenter = Some(datacenter);
        }
        Ok(client)
    }

    /// The same Consul's word on another data centre.
    pub(super) fn within(&self, datacenter: &str) -> Self {
        Self {
            datacenter: Some(datacenter.to_owned()),
            ..self.clone()
        }
    }

    /// Names of all data centres that know each other.
    pub(super) async fn datacenters(&self) -> Result<Vec<String>> {
        let path = ["catalog", "datacenters"];
        let all = self.get(&path, &[], "nothing").await?;
        let all = all.context("Consul knows no data centre")?;
        serde_json::from_value(all.value).context("Consul's data centres")
    }

    /// The answer; none where there is no such thing. `needs` is the rule that lets a token ask.
    pub(super) async fn get(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        needs: &str,
    ) -> Result<Option<Answer>> {
        self.ask(Method::GET, path, query, None, needs).await
    }

    /// The answer to a question with a body.
    pub(super) async fn post(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        body: &Value,
        needs: &str,
    ) -> Result<Option<Answer>> {
        self.ask(Method::POST, path, query, Some(body), needs).await
    }

    async fn ask(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<&Value>,
        needs: &str,
    ) -> Result<Option<Answer>> {
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let datacenter = match path.first() {
            Some(&"config") => &self.primary,
            _ => &self.datacenter,
        };
        let path = path.iter().map(|part| format!("/{}", encoded(part)));
        let path = format!("/v1{}", path.collect::<String>());
        let datacenter = datacenter.iter().map(|name| ("dc", &**name));
        let query = query.iter().copied().chain(datacenter);
        let query = query.map(|(name, value)| format!("{name}={}", encoded(value)));
        let query = query.collect::<Vec<_>>().join("&");
        let what = format!("{method} {}{path}", self.url);
        let mut request = self
            .http
            .request(method, format!("{}{path}?{query}", self.url));
        if let Some(token) = &self.token {
            request = request.header("X-Consul-Token", token.clone());
        }
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        let answered = async {
            let mut answer = request.send().await.map_err(root)?;
            let status = answer.status();
            let filtered = answer.headers().get("X-Consul-Results-Filtered-By-ACLs");
            let filtered = filtered.is_some_and(|value| value == "true");
            let mut body = Vec::new();
            while let Some(chunk) = answer.chunk().await.map_err(root)? {
                ensure!(
                    body.len() + chunk.len() <= MOST_BYTES,
                    "more than {MOST_BYTES} bytes"
                );
                body.extend_from_slice(&chunk);
            }
            let text = String::from_utf8_lossy(&body).into_owned();
            anyhow::Ok((status, filtered, text))
        };
        let (status, filtered, text) = answered.await.with_context(|| what.clone())?;
        let shown: String = text.trim().chars().take(MOST_SHOWN).collect();
        match status {
            StatusCode::OK => {
                let value = serde_json::from_str(&text);
                let value = value.with_context(|| format!("{what}: not JSON: {shown}"))?;
                Ok(Some(Answer { value, filtered }))
            }
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => Err(Denied {
                said: format!("{}: {shown}", status.as_u16()),
                needs: needs.to_owned(),
            }
            .into()),
            status => bail!("{what}: {}: {shown}", status.as_u16()),
        }
    }

    /// How names of clusters end.
    pub(super) async fn datacenter(&self) -> Result<Datacenter> {
        let roots = self
            .get(&["connect", "ca", "roots"], &[], "nothing")
            .await?;
        let roots = roots.context("Consul has no certificate authority: connect.enabled")?;
        let trust_domain = roots.value["TrustDomain"].as_str();
        let trust_domain = trust_domain.context("Consul's roots have no TrustDomain")?;
        let name = match &self.datacenter {
            Some(name) => name.clone(),
            None => {
                let all = self.datacenters().await?;
                match &*all {
                    [only] => only.clone(),
                    _ => bail!("--datacenter is to name one of {}", all.join(", ")),
                }
            }
        };
        Ok(Datacenter {
            name,
            trust_domain: trust_domain.to_owned(),
        })
    }

    /// What stands in an entry.
    pub(super) async fn entry(&self, kind: &str, name: &str) -> Result<Option<Value>> {
        let right = match kind {
            "service-intentions" => "intentions",
            _ => "policy",
        };
        let needs = format!("service {name:?} {{ {right} = \"read\" }}");
        let answer = self.get(&["config", kind, name], &[], &needs).await?;
        Ok(answer.map(|answer| answer.value))
    }

    /// Puts an entry in place of what stands there, or takes it out; whether nobody else has changed it meanwhile.
    pub(super) async fn replace(
        &self,
        share: &Share,
        stands: Option<&Value>,
        entry: Option<&Value>,
    ) -> Result<bool> {
        let index = stands.and_then(|stands| stands["ModifyIndex"].as_u64());
        let index = index.unwrap_or(0).to_string();
        let right = match share.kind {
            Kind::Intentions => "intentions",
            Kind::Defaults => "policy",
        };
        let needs = format!("service {:?} {{ {right} = \"write\" }}", share.name);
        let kind = share.kind.to_string();
        let (method, path): (_, &[&str]) = match entry {
            Some(_) => (Method::PUT, &["config"]),
            None => (Method::DELETE, &["config", &kind, &share.name]),
        };
        let answer = self
            .ask(method, path, &[("cas", &index)], entry, &needs)
            .await?;
        Ok(answer.is_some_and(|answer| answer.value == true))
    }
}

/// What Consul and Weir call it, for messages.
pub(super) fn done(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Created => "created",
        Outcome::Changed => "changed",
        Outcome::Same => "as it was",
        Outcome::Removed => "removed",
    }
}

fn url(server: &Server, variable: &impl Fn(&str) -> Option<String>) -> Result<String> {
    let written = server.address.clone();
    let written = written.or_else(|| variable("CONSUL_HTTP_ADDR"));
    let written = written.unwrap_or_else(|| DEFAULT.to_owned());
    // Nothing of it is printed: it would end in logs.
    ensure!(
        !written.contains('@'),
        "Consul's address has a user or a password in it: that is not known here, use a token"
    );
    let secure = match variable("CONSUL_HTTP_SSL") {
        Some(text) => {
            boolean(&text).with_context(|| format!("CONSUL_HTTP_SSL is {text:?}: true or false"))?
        }
        None => false,
    };
    let url = match written.split_once("://") {
        Some(("http" | "https", _)) => written.clone(),
        Some(_) => bail!("{written:?}: Consul is asked by http:// or https://"),
        None if secure => format!("https://{written}"),
        None => format!("http://{written}"),
    };
    let url = url.trim_end_matches('/').to_owned();
    let parsed: http::Uri = url
        .parse()
        .with_context(|| format!("{written:?} is no address"))?;
    ensure!(
        parsed.path() == "/" && parsed.query().is_none(),
        "{written:?}: Consul's address has no path"
    );
    Ok(url)
}

/// As Consul's own programs read it.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

fn is_loopback(url: &str) -> bool {
    let uri: Option<http::Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(http::Uri::host).unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn token(
    server: &Server,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Option<HeaderValue>> {
    let file = file(&server.token_file, "CONSUL_HTTP_TOKEN_FILE", variable);
    let text = match file {
        Some(file) => Some(
            fs::read_to_string(&file)
                .with_context(|| format!("the token of {}", file.display()))?,
        ),
        None => variable("CONSUL_HTTP_TOKEN"),
    };
    let text = text
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty());
    let token = text.map(|text| {
        let mut token = HeaderValue::from_str(&text)
            .ok()
            .context("the token is no word")?;
        token.set_sensitive(true);
        anyhow::Ok(token)
    });
    token.transpose()
}

fn file(
    flag: &Option<PathBuf>,
    name: &str,
    variable: &impl Fn(&str) -> Option<String>,
) -> Option<PathBuf> {
    flag.clone().or_else(|| variable(name).map(PathBuf::from))
}

fn http(
    server: &Server,
    url: &str,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<reqwest::Client> {
    let _chosen_already = rustls::crypto::ring::default_provider().install_default();
    let read = |file: &Path| fs::read(file).with_context(|| file.display().to_string());
    let mut builder = reqwest::Client::builder()
        .no_proxy()
        // A token must not follow to wherever an answer points.
        .redirect(redirect::Policy::none())
        .timeout(LONGEST);
    if let Some(ca) = file(&server.ca, "CONSUL_CACERT", variable) {
        let authorities = Certificate::from_pem_bundle(&read(&ca)?);
        let authorities = authorities.with_context(|| ca.display().to_string())?;
        ensure!(
            !authorities.is_empty(),
            "{}: no certificate in PEM",
            ca.display()
        );
        builder = builder.tls_certs_only(authorities);
    } else if url.starts_with("http://") {
        builder = builder.tls_certs_only([]);
    }
    let certificate = file(&server.certificate, "CONSUL_CLIENT_CERT", variable);
    let key = file(&server.key, "CONSUL_CLIENT_KEY", variable);
    match (certificate, key) {
        (Some(certificate), Some(key)) => {
            let both = [read(&certificate)?, b"\n".to_vec(), read(&key)?].concat();
            let identity = Identity::from_pem(&both);
            builder =
                builder.identity(identity.with_context(|| certificate.display().to_string())?);
        }
        (None, None) => (),
        (Some(_), None) => bail!("CONSUL_CLIENT_CERT is set, and CONSUL_CLIENT_KEY is not"),
        (None, Some(_)) => bail!("CONSUL_CLIENT_KEY is set, and CONSUL_CLIENT_CERT is not"),
    }
    builder.build().context("the client of Consul")
}

/// What the system said: the library's own words tell only that there was an error.
fn root(error: reqwest::Error) -> anyhow::Error {
    let error = error.without_url();
    let mut last: &dyn std::error::Error = &error;
    while let Some(source) = last.source() {
        last = source;
    }
    anyhow::anyhow!("{last}")
}

#[cfg(test)]
mod tests;
