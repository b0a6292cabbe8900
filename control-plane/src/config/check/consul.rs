// SPDX-License-Identifier: Apache-2.0
//! How Consul is asked for hosts.

use std::time::Duration;

use reqwest::Url;
use weir_settings::{Scope, Value};

use super::{Reader, beside, pem};
use crate::config::{ClientTls, Consul, Error, Question, Token, written};
use crate::sources::consul::Client;

/// Consul's own limit.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// Services, tags and data centres have names of one label each.
const LONGEST_NAME: usize = 128;

pub(super) fn consul(
    cluster: &str,
    written: &written::Consul,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Consul, Error> {
    let address = written.address.as_ref();
    let address = address.map_or("http://127.0.0.1:8500", |text| text.value.as_str());
    let address =
        url(address).map_err(|reason| scope.refuse(&written.address, "address", reason))?;
    let encrypted = address.scheme() == "https";
    let name = |value: &Value, field: &str, default: &str| {
        let shape = "a name of 1 to 128 bytes without spaces";
        scope.text(value, field, default, is_name, shape)
    };
    if written.service.is_none() && !is_name(cluster) {
        let reason = format!("required: {cluster:?} is the name of no service");
        return Err(scope.refuse(&None, "service", reason));
    }
    let question = Question {
        service: name(&written.service, "service", cluster)?,
        connect: scope.boolean(&written.connect, "connect", true)?,
        datacenter: written
            .datacenter
            .as_ref()
            .map(|_| name(&written.datacenter, "datacenter", ""))
            .transpose()?,
        filter: filter(&written.filter, scope)?,
        tags: tags(&written.tags, &scope.section("tags"))?,
        weight_millicores: scope.whole(
            &written.weight_millicores,
            "weight_millicores",
            0,
            0..=1_000_000,
        )? as u32,
        address,
    };
    let consul = Consul {
        question,
        wait: scope.duration(
            &written.wait,
            "wait",
            Duration::from_secs(30),
            Duration::from_secs(1)..=LONGEST_WAIT,
        )?,
        token: token(&written.token_file, scope, reader)?,
        tls: tls(written, encrypted, scope, reader)?,
    };
    // What the library says of the certificates, before any port is bound.
    let (value, field) = match (&written.certificate, &written.ca) {
        (Some(_), _) => (&written.certificate, "certificate"),
        (None, Some(_)) => (&written.ca, "ca"),
        (None, None) => (&written.address, "address"),
    };
    Client::new(&consul).map_err(|why| scope.refuse(value, field, why))?;
    Ok(consul)
}

fn is_name(text: &str) -> bool {
    let visible = |c: char| !c.is_whitespace() && !c.is_control();
    (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(visible)
}

fn url(text: &str) -> Result<Url, String> {
    let shape = "write http://host:port or https://host:port";
    let url = Url::parse(text).map_err(|error| format!("{text:?}: {error}; {shape}"))?;
    let plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    match url.scheme() {
        "http" | "https" if plain && url.has_host() => Ok(url),
        _ => Err(format!("{text:?} is not an address of Consul; {shape}")),
    }
}

fn filter(value: &Value, scope: &Scope<'_>) -> Result<Option<String>, Error> {
    let Some(text) = value else { return Ok(None) };
    match text.value.trim() {
        "" => Err(scope.refuse(value, "filter", "empty; leave it out")),
        filter => Ok(Some(filter.to_owned())),
    }
}

fn tags(written: &[written::Text], scope: &Scope<'_>) -> Result<Vec<String>, Error> {
    let tag = |(index, tag): (usize, &written::Text)| match is_name(&tag.value) {
        true => Ok(tag.value.clone()),
        false => {
            let reason = format!(
                "{:?} is not a tag of 1 to 128 bytes without spaces",
                tag.value
            );
            Err(scope
                .item(index)
                .at(tag.referenced.line())
                .refuse(&None, "", reason))
        }
    };
    written.iter().enumerate().map(tag).collect()
}

fn token(value: &Value, scope: &Scope<'_>, reader: &mut Reader) -> Result<Option<Token>, Error> {
    let Some(name) = value else { return Ok(None) };
    let refuse = |why: String| scope.refuse(value, "token_file", why);
    let contents = reader
        .bytes(&beside(scope.file(), &name.value))
        .map_err(refuse)?;
    let token = Token::read(&contents).map_err(|why| refuse(format!("{} {why}", name.value)))?;
    Ok(Some(token))
}

fn tls(
    written: &written::Consul,
    encrypted: bool,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<ClientTls, Error> {
    let fields = [
        (&written.ca, "ca"),
        (&written.certificate, "certificate"),
        (&written.key, "key"),
    ];
    let given = fields.into_iter().find(|(value, _)| value.is_some());
    if let Some((value, field)) = given
        && !encrypted
    {
        let reason = "the address is http://, which has no certificates; write https://";
        return Err(scope.refuse(value, field, reason));
    }
    let mut file = |value, field, label| pem(value, field, label, scope, reader);
    let ca = file(&written.ca, "ca", "CERTIFICATE")?;
    let certificate = file(&written.certificate, "certificate", "CERTIFICATE")?;
    let key = file(&written.key, "key", "PRIVATE KEY")?;
    let identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some([certificate, key].join(&b'\n')),
        (None, None) => None,
        (Some(_), None) => return Err(scope.refuse(&None, "key", "required with certificate")),
        (None, Some(_)) => {
            return Err(scope.refuse(&None, "certificate", "required with key"));
        }
    };
    Ok(ClientTls { ca, identity })
}
