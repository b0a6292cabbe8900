// SPDX-License-Identifier: Apache-2.0
//! A page of an admin interface, by plain HTTP: both weir-control's and Envoy's listen on loopback.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// An Envoy that serves thousands of clusters dumps tens of megabytes.
const MOST_BYTES: usize = 256 << 20;
/// Until the whole page is there.
const LONGEST: Duration = Duration::from_secs(10);

/// Where an admin interface listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address(String);

impl FromStr for Address {
    type Err = anyhow::Error;

    /// `ip:port` or `http://ip:port`.
    fn from_str(text: &str) -> Result<Self> {
        let authority = text.strip_prefix("http://").unwrap_or(text);
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        ensure!(
            !authority.contains("://"),
            "admin pages are read by plain HTTP: write ip:port or http://ip:port"
        );
        let parsed: http::uri::Authority = authority
            .parse()
            .with_context(|| format!("{text:?} is no ip:port"))?;
        ensure!(
            parsed.port_u16().is_some(),
            "{text:?} has no port: write ip:port"
        );
        Ok(Self(authority.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

/// An answer of any status.
#[derive(Clone, Debug)]
pub struct Page {
    /// Of HTTP.
    pub status: u16,
    /// The clock of who answered, in whole seconds.
    pub date: Option<SystemTime>,
    /// The text.
    pub body: String,
}

impl Page {
    /// Asks for it.
    ///
    /// # Errors
    /// Nobody listens, or the answer is not text, too long or too late.
    pub async fn get(address: &Address, path: &str) -> Result<Self> {
        let asked = async {
            let client = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
            let uri = format!("http://{address}{path}").parse()?;
            let client: Client<HttpConnector, Empty<Bytes>> = client;
            let answer = client.get(uri).await.map_err(|error| root(&error))?;
            let date = answer.headers().get(http::header::DATE);
            let date = date.and_then(|date| date.to_str().ok()).and_then(date_of);
            let status = answer.status().as_u16();
            let body = Limited::new(answer.into_body(), MOST_BYTES).collect().await;
            let body = body.map_err(|error| anyhow::anyhow!("{error}"))?.to_bytes();
            let body = String::from_utf8(body.into()).context("the page is not UTF-8")?;
            Ok(Self { status, date, body })
        };
        let answer = tokio::time::timeout(LONGEST, asked).await;
        answer
            .with_context(|| format!("no answer within {} s", LONGEST.as_secs()))
            .flatten()
            .with_context(|| format!("http://{address}{path}"))
    }

    /// The text, if the status is 200.
    ///
    /// # Errors
    /// With what was said instead.
    pub fn ok(self) -> Result<String> {
        match self.status {
            200 => Ok(self.body),
            status => bail!("status {status}: {}", self.body.trim()),
        }
    }
}

/// What the system said: hyper's own words tell only that there was an error.
fn root(error: &dyn std::error::Error) -> anyhow::Error {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    anyhow::anyhow!("{error}")
}

fn date_of(text: &str) -> Option<SystemTime> {
    jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(text)
        .ok()
        .map(SystemTime::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_plain_http_and_have_a_port() {
        for good in ["127.0.0.1:1", "http://127.0.0.1:1", "http://127.0.0.1:1/"] {
            assert_eq!(good.parse::<Address>().unwrap().to_string(), "127.0.0.1:1");
        }
        for (bad, reason) in [
            ("https://127.0.0.1:1", "plain HTTP"),
            ("127.0.0.1", "no port"),
            ("a b:1", "no ip:port"),
        ] {
            let error = bad.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(reason), "{bad}: {error}");
        }
    }

    #[test]
    fn dates_of_http_are_read() {
        let date = date_of("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let since = date.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(since.as_secs(), 784_111_777);
    }
}
