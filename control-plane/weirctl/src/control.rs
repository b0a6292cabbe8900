// SPDX-License-Identifier: Apache-2.0
//! weir-control's admin pages.

use anyhow::{Context, Result};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::answers::Tables;
use crate::commands::{Receipt, Shadow};
use crate::page::{Address, Page};

/// The text of a page.
async fn text(address: &Address, path: &str) -> Result<String> {
    let page = Page::get(address, path).await?;
    page.ok()
        .with_context(|| format!("weir-control at {address}"))
}

/// What a text of this page says.
fn parsed<T: DeserializeOwned>(said: &str, address: &Address, path: &str) -> Result<T> {
    serde_json::from_str(said)
        .with_context(|| format!("http://{address}{path} is not what weir-control says"))
}

/// `/tables` of one weir-control.
///
/// # Errors
/// It cannot be read.
pub async fn tables(address: &Address) -> Result<Tables> {
    let path = "/tables";
    parsed(&text(address, path).await?, address, path)
}

/// `/shadow` of one cluster.
///
/// # Errors
/// It cannot be read, or there is no such cluster.
pub async fn shadow(address: &Address, cluster: &str) -> Result<Shadow> {
    let cluster = utf8_percent_encode(cluster, NON_ALPHANUMERIC);
    let path = format!("/shadow?cluster={cluster}");
    parsed(&text(address, &path).await?, address, &path)
}

/// Receipts after the one with this number, at most so many, the newest: each as it was said and as it is shown.
///
/// # Errors
/// They cannot be read.
pub async fn receipts(
    address: &Address,
    after: u64,
    most: usize,
) -> Result<Vec<(String, Receipt)>> {
    let path = format!("/receipts?after={after}&limit={most}");
    let said = text(address, &path).await?;
    let lines = said.lines();
    let both = lines.map(|line| Ok((line.to_owned(), parsed(line, address, &path)?)));
    both.collect()
}

/// What is asked of `/explain`.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Question<'a> {
    pub cluster: &'a str,
    pub key: &'a str,
    pub key_separator: Option<char>,
    pub priority: Option<&'a str>,
    pub user: Option<&'a str>,
    pub zone: Option<&'a str>,
}

/// The decision for one request.
///
/// # Errors
/// weir-control cannot be reached, or answers that there is no such cluster or priority.
pub async fn explain(address: &Address, question: &Question<'_>) -> Result<Value> {
    let separator = question.key_separator.map(String::from);
    let parameters = [
        ("cluster", Some(question.cluster)),
        ("key", Some(question.key)),
        ("key_separator", separator.as_deref()),
        ("priority", question.priority),
        ("user", question.user),
        ("zone", question.zone),
    ];
    let written = parameters.iter().filter_map(|(name, value)| {
        let value = utf8_percent_encode((*value)?, NON_ALPHANUMERIC);
        Some(format!("{name}={value}"))
    });
    let path = format!("/explain?{}", written.collect::<Vec<_>>().join("&"));
    let page = Page::get(address, &path).await?;
    let refused = page.status != 200;
    let said: Value = serde_json::from_str(&page.body)
        .with_context(|| format!("http://{address}{path}: status {}", page.status))?;
    if refused {
        let word = |name: &str| said[name].as_str().unwrap_or_default().to_owned();
        let possible = said["possible"].as_array().into_iter().flatten();
        let possible: Vec<_> = possible.filter_map(Value::as_str).collect();
        let there_are = match possible.is_empty() {
            true => String::new(),
            false => format!("; there are: {}", possible.join(", ")),
        };
        anyhow::bail!("{}: {}{there_are}", word("parameter"), word("reason"));
    }
    Ok(said)
}
