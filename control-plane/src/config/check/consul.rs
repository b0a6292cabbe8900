// SPDX-License-Identifier: Apache-2.0
//! How Consul is asked for hosts.

use std::time::Duration;

use weir_settings::{Scope, Value};

use super::server::{Fields, server};
use super::{Reader, beside};
use crate::config::{Consul, Error, Question, Server, Token, written};

/// Consul's own limit.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// Services, tags and data centres have names of one label each.
const LONGEST_NAME: usize = 128;

/// An agent on this machine.
pub(super) const DEFAULT: &str = "http://127.0.0.1:8500";

/// Whether a token may be sent to this server: whoever listens on the way could read it, and be who it names.
pub(super) fn in_the_clear(
    server: &Server,
    token_file: &Value,
    plaintext: &Value,
    scope: &Scope<'_>,
) -> Result<(), Error> {
    let plaintext = scope.boolean(plaintext, "plaintext", false)?;
    let is_private = server.is_secure() || server.is_loopback();
    if token_file.is_none() || plaintext || is_private {
        return Ok(());
    }
    let reason = format!(
        "{} is neither https:// nor loopback, so the token would be sent in the clear; \
         write plaintext: true if that is meant",
        server.url
    );
    Err(scope.refuse(token_file, "token_file", reason))
}

pub(super) fn consul(
    cluster: &str,
    written: &written::Consul,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Consul, Error> {
    let fields = Fields {
        address: &written.address,
        ca: &written.ca,
        certificate: &written.certificate,
        key: &written.key,
    };
    let server = server(fields, DEFAULT, scope, reader)?;
    in_the_clear(&server, &written.token_file, &written.plaintext, scope)?;
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
    };
    Ok(Consul {
        server,
        question,
        wait: scope.duration(
            &written.wait,
            "wait",
            Duration::from_secs(30),
            Duration::from_secs(1)..=LONGEST_WAIT,
        )?,
        token: token(&written.token_file, scope, reader)?,
    })
}

fn is_name(text: &str) -> bool {
    let visible = |c: char| !c.is_whitespace() && !c.is_control();
    (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(visible)
}

fn filter(value: &Value, scope: &Scope<'_>) -> Result<Option<String>, Error> {
    scope.note("filter", "text", None, None);
    let Some(text) = value else { return Ok(None) };
    match text.value.trim() {
        "" => Err(scope.refuse(value, "filter", "empty; leave it out")),
        filter => Ok(Some(filter.to_owned())),
    }
}

fn tags(written: &[written::Text], scope: &Scope<'_>) -> Result<Vec<String>, Error> {
    scope.item(0).note("", "text", None, None);
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

pub(super) fn token(
    value: &Value,
    scope: &Scope<'_>,
    reader: &mut Reader,
) -> Result<Option<Token>, Error> {
    scope.note("token_file", "path", None, None);
    let Some(name) = value else { return Ok(None) };
    let refuse = |why: String| scope.refuse(value, "token_file", why);
    let contents = reader
        .bytes(&beside(scope.file(), &name.value))
        .map_err(refuse)?;
    let token = Token::read(&contents).map_err(|why| refuse(format!("{} {why}", name.value)))?;
    Ok(Some(token))
}
