// SPDX-License-Identifier: Apache-2.0
//! Where to, how often, and by which certificates: the variables that OpenTelemetry's specification names
//! ("OpenTelemetry Protocol Exporter" and "Environment Variable Specification").

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::Uri;
use tonic::metadata::{Ascii, MetadataKey, MetadataMap, MetadataValue};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const TIMEOUT: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";
const CERTIFICATE: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";
const INTERVAL: &str = "OTEL_METRIC_EXPORT_INTERVAL";
const DISABLED: &str = "OTEL_SDK_DISABLED";

/// The specification's default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The same.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(60);

/// A variable that is not as it should be.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("{name}={value:?}: {reason}")]
pub struct Error {
    name: &'static str,
    value: String,
    reason: String,
}

/// How to export.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) endpoint: Uri,
    pub(crate) headers: MetadataMap,
    /// Of one export.
    pub(crate) timeout: Duration,
    /// Between two exports of metrics.
    pub(crate) interval: Duration,
    /// Who vouches for the collector, where it is asked by https.
    pub(crate) authority: Option<String>,
}

impl Settings {
    /// None where no endpoint is named: nothing is exported.
    pub(crate) fn from(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, Error> {
        let set = |name: &'static str| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            Some(Variable { name, value })
        };
        let disabled = set(DISABLED).is_some_and(|it| it.value.eq_ignore_ascii_case("true"));
        let Some(endpoint) = set(ENDPOINT).filter(|_| !disabled) else {
            return Ok(None);
        };
        if let Some(protocol) = set(PROTOCOL)
            && protocol.value != "grpc"
        {
            return Err(protocol.wrong("only grpc is spoken"));
        }
        let is_https = endpoint.value.starts_with("https://");
        let authority = match (is_https, set(CERTIFICATE)) {
            (false, _) => None,
            (true, Some(file)) => Some(file.read()?),
            (true, None) => {
                let reason = format!("https wants the collector's authority in {CERTIFICATE}");
                return Err(endpoint.wrong(reason));
            }
        };
        Ok(Some(Self {
            endpoint: endpoint.uri()?,
            headers: set(HEADERS).map_or_else(|| Ok(MetadataMap::new()), |it| it.headers())?,
            timeout: set(TIMEOUT).map_or(Ok(DEFAULT_TIMEOUT), |it| it.milliseconds())?,
            interval: set(INTERVAL).map_or(Ok(DEFAULT_INTERVAL), |it| it.milliseconds())?,
            authority,
        }))
    }
}

/// One that is set.
struct Variable {
    name: &'static str,
    value: String,
}

impl Variable {
    fn wrong(self, reason: impl ToString) -> Error {
        Error {
            name: self.name,
            value: self.value,
            reason: reason.to_string(),
        }
    }

    fn uri(self) -> Result<Uri, Error> {
        match Uri::from_str(&self.value) {
            Ok(uri) if matches!(uri.scheme_str(), Some("http" | "https")) => Ok(uri),
            Ok(_) => Err(self.wrong("not http://HOST:PORT or https://HOST:PORT")),
            Err(error) => Err(self.wrong(error)),
        }
    }

    fn milliseconds(self) -> Result<Duration, Error> {
        match self.value.parse() {
            Ok(0) => Err(self.wrong("must be at least 1 ms")),
            Ok(milliseconds) => Ok(Duration::from_millis(milliseconds)),
            Err(_) => Err(self.wrong("not a whole number of milliseconds")),
        }
    }

    fn read(self) -> Result<String, Error> {
        let text = std::fs::read_to_string(PathBuf::from(&self.value));
        text.map_err(|error| self.wrong(error))
    }

    /// `name=value,name=value`.
    fn headers(self) -> Result<MetadataMap, Error> {
        let mut headers = MetadataMap::new();
        for pair in self.value.split(',') {
            let header = pair.split_once('=').and_then(|(name, value)| {
                let name: MetadataKey<Ascii> = name.trim().to_ascii_lowercase().parse().ok()?;
                let value: MetadataValue<Ascii> = value.trim().parse().ok()?;
                Some((name, value))
            });
            match header {
                Some((name, value)) => headers.append(name, value),
                // A header may be a secret: the error does not repeat it.
                None => {
                    return Err(Error {
                        name: self.name,
                        value: "…".to_owned(),
                        reason: "not NAME=VALUE,NAME=VALUE".to_owned(),
                    });
                }
            };
        }
        Ok(headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        let variable = |name: &str| {
            let mut variables = variables.iter();
            let (_, value) = variables.find(|(one, _)| *one == name)?;
            Some((*value).to_owned())
        };
        Settings::from(variable).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_is_exported_where_no_endpoint_is_named_or_it_is_disabled() {
        assert!(settings(&[]).unwrap().is_none());
        assert!(settings(&[(ENDPOINT, "")]).unwrap().is_none());
        let disabled = [(ENDPOINT, "http://127.0.0.1:4317"), (DISABLED, "true")];
        assert!(settings(&disabled).unwrap().is_none());
    }

    #[test]
    fn the_specifications_defaults_hold_where_nothing_is_said() {
        let found = settings(&[(ENDPOINT, "http://127.0.0.1:4317")]);
        let found = found.unwrap().unwrap();
        assert_eq!(found.timeout, Duration::from_secs(10));
        assert_eq!(found.interval, Duration::from_secs(60));
        assert!(found.headers.is_empty() && found.authority.is_none());
    }

    #[test]
    fn what_is_said_is_taken() {
        let found = settings(&[
            (ENDPOINT, "http://collector:4317"),
            (PROTOCOL, "grpc"),
            (HEADERS, "Authorization=Bearer x, tenant=a"),
            (TIMEOUT, "2000"),
            (INTERVAL, "500"),
        ]);
        let found = found.unwrap().unwrap();
        assert_eq!(found.headers.get("authorization").unwrap(), "Bearer x");
        assert_eq!(found.headers.get("tenant").unwrap(), "a");
        assert_eq!(found.timeout, Duration::from_secs(2));
        assert_eq!(found.interval, Duration::from_millis(500));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_reason_and_without_secrets() {
        let endpoint = (ENDPOINT, "http://127.0.0.1:4317");
        for (variables, words) in [
            (vec![(ENDPOINT, "collector:4317")], "not http://HOST:PORT"),
            (vec![(ENDPOINT, "https://collector:4317")], CERTIFICATE),
            (vec![endpoint, (PROTOCOL, "http/protobuf")], "only grpc"),
            (vec![endpoint, (INTERVAL, "0")], "at least 1 ms"),
            (vec![endpoint, (TIMEOUT, "10s")], "milliseconds"),
            (vec![endpoint, (HEADERS, "secret")], "…"),
        ] {
            let error = settings(&variables).unwrap_err();
            assert!(
                error.starts_with("OTEL_") && error.contains(words),
                "{error}"
            );
            assert!(!error.contains("secret"), "{error}");
        }
        let missing = [
            (ENDPOINT, "https://collector:4317"),
            (CERTIFICATE, "/no/such"),
        ];
        assert!(settings(&missing).unwrap_err().contains("No such file"));
    }
}
