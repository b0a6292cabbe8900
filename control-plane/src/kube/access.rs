// SPDX-License-Identifier: Apache-2.0
//! How the API server is reached, and as whom.

use std::borrow::Cow;
use std::net::IpAddr;
use std::path::Path;

use http::HeaderValue;
use weir_fleet::poll::{Fault, PollError};

use crate::config::{Access, ApiServer, Bearer, Server, Token};

/// Where a pod has its service account (kubernetes.io/docs/tasks/run-application/access-api-from-pod).
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

pub(super) fn api_server(access: &Access) -> Result<Cow<'_, ApiServer>, PollError> {
    match access {
        Access::Written(api) => Ok(Cow::Borrowed(api)),
        Access::Pod => pod(Path::new(ACCOUNT), |name| std::env::var(name).ok()).map(Cow::Owned),
    }
}

/// What a pod's environment and the folder of its service account say.
fn pod(
    account: &Path,
    variable: impl Fn(&'static str) -> Option<String>,
) -> Result<ApiServer, PollError> {
    let nowhere = |why: String| {
        let detail = format!("{why}: outside of a pod write kubernetes.kubeconfig");
        PollError::new(Fault::Failed, detail)
    };
    let told = |name: &'static str| {
        let value = variable(name);
        value.ok_or_else(|| nowhere(format!("{name} is not set")))
    };
    let host = told("KUBERNETES_SERVICE_HOST")?;
    let port = told("KUBERNETES_SERVICE_PORT")?;
    let host = match host.parse() {
        Ok(IpAddr::V6(ip)) => format!("[{ip}]"),
        _ => host,
    };
    let file = account.join("ca.crt");
    let ca = weir_settings::read(&file)
        .map_err(|error| nowhere(format!("cannot read {}: {error}", file.display())))?;
    Ok(ApiServer {
        server: Server {
            url: format!("https://{host}:{port}"),
            ca: Some(ca),
            identity: None,
        },
        bearer: Some(Bearer::File(account.join("token"))),
    })
}

/// The header that shows it.
pub(super) async fn token(bearer: &Bearer) -> Result<HeaderValue, PollError> {
    let token = match bearer {
        Bearer::Token(token) => token.clone(),
        Bearer::File(path) => {
            let failed = |why: String| {
                let detail = format!("token file {}: {why}", path.display());
                PollError::new(Fault::Failed, detail)
            };
            let contents = tokio::fs::read(path).await;
            let contents = contents.map_err(|error| failed(error.to_string()))?;
            Token::read(&contents).map_err(|_| failed("has not one token".to_owned()))?
        }
    };
    let shown = [b"Bearer ", token.0.as_bytes()].concat();
    let mut value = HeaderValue::from_bytes(&shown)
        .map_err(|_| PollError::new(Fault::Failed, "the token is no header's value"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
