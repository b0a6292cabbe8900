// SPDX-License-Identifier: Apache-2.0
//! From a URL to a store and the root within it.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig};
use reqwest::Url;

use super::chain;

/// A store that has not taken the connection by then is down.
const CONNECT: Duration = Duration::from_secs(3);
/// The longest silence of a store, before its answer and within it.
const SILENCE: Duration = Duration::from_secs(4);
/// The longest download. A gibibyte at 2 MB/s; whoever waits gives up earlier, by `Stop`.
const DOWNLOAD: Duration = Duration::from_secs(600);
/// No request is tried again after this; with the last try, an answer or an error is there in
/// `RETRY + SILENCE` at most.
const RETRY: Duration = Duration::from_secs(6);
/// Tries beside the first: enough for a dropped connection and one refusal under load.
const RETRIES: usize = 3;

/// How long a store is waited for.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    pub(crate) connect: Duration,
    pub(crate) silence: Duration,
    pub(crate) download: Duration,
    pub(crate) retry: Duration,
    pub(crate) retries: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: CONNECT,
            silence: SILENCE,
            download: DOWNLOAD,
            retry: RETRY,
            retries: RETRIES,
        }
    }
}

impl Patience {
    fn retry_config(&self) -> RetryConfig {
        RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(1),
                base: 2.0,
            },
            max_retries: self.retries,
            retry_timeout: self.retry,
        }
    }

    fn client(&self) -> [(ClientConfigKey, String); 3] {
        let text = |time: Duration| format!("{} ms", time.as_millis());
        [
            (ClientConfigKey::ConnectTimeout, text(self.connect)),
            (ClientConfigKey::ReadTimeout, text(self.silence)),
            (ClientConfigKey::Timeout, text(self.download)),
        ]
    }
}

type Opened = Result<(Arc<dyn ObjectStore>, Path), String>;

pub(super) fn open(url: &str, patience: &Patience) -> Opened {
    let Some((scheme, _)) = url.split_once("://") else {
        return folder(std::path::Path::new(url));
    };
    let parsed = Url::parse(url).map_err(|error| format!("not a URL: {error}"))?;
    match scheme {
        "file" => match parsed.to_file_path() {
            Ok(path) => folder(&path),
            Err(()) => Err("write file:///path/of/a/folder, with three slashes".into()),
        },
        "s3" => s3(AmazonS3Builder::from_env(), &parsed, patience),
        "gs" => gs(GoogleCloudStorageBuilder::from_env(), &parsed, patience),
        other => Err(format!(
            "the scheme {other} is unknown; give a folder, file:///folder, s3://bucket/prefix or gs://bucket/prefix"
        )),
    }
}

fn folder(path: &std::path::Path) -> Opened {
    match std::fs::metadata(path) {
        Err(error) => return Err(format!("the folder cannot be opened: {error}")),
        Ok(found) if !found.is_dir() => return Err("this is a file; give the folder".into()),
        Ok(_) => {}
    }
    let store = LocalFileSystem::new_with_prefix(path).map_err(|error| chain(&error))?;
    Ok((Arc::new(store), Path::default()))
}

/// `builder` with the bucket of `url`.
pub(super) fn s3(mut builder: AmazonS3Builder, url: &Url, patience: &Patience) -> Opened {
    let (bucket, root) = bucket_and_root(url)?;
    check_endpoint(&builder)?;
    use_ring();
    for (key, value) in patience.client() {
        builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
    }
    let store = builder
        .with_bucket_name(bucket)
        .with_retry(patience.retry_config())
        .build()
        .map_err(|error| chain(&error))?;
    Ok((Arc::new(store), root))
}

/// Says at once what would otherwise be each request's failure.
fn check_endpoint(builder: &AmazonS3Builder) -> Result<(), String> {
    let value = |key| builder.get_config_value(&key).unwrap_or_default();
    let allow = value(AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp));
    let endpoints = [AmazonS3ConfigKey::Endpoint, AmazonS3ConfigKey::S3Endpoint];
    let plain = endpoints
        .into_iter()
        .map(value)
        .find(|url| url.starts_with("http:"));
    match plain {
        Some(url)
            if !matches!(
                &*allow.to_ascii_lowercase(),
                "1" | "true" | "on" | "yes" | "y"
            ) =>
        {
            Err(format!(
                "the endpoint {url} is not encrypted; set AWS_ALLOW_HTTP=true if that is meant"
            ))
        }
        _ => Ok(()),
    }
}

/// `builder` with the bucket of `url`.
pub(super) fn gs(mut builder: GoogleCloudStorageBuilder, url: &Url, patience: &Patience) -> Opened {
    let (bucket, root) = bucket_and_root(url)?;
    use_ring();
    for (key, value) in patience.client() {
        builder = builder.with_config(GoogleConfigKey::Client(key), value);
    }
    let store = builder
        .with_bucket_name(bucket)
        .with_retry(patience.retry_config())
        .build()
        .map_err(|error| chain(&error))?;
    Ok((Arc::new(store), root))
}

fn bucket_and_root(url: &Url) -> Result<(&str, Path), String> {
    let bucket = url.host_str().filter(|bucket| !bucket.is_empty());
    let bucket = bucket.ok_or("the bucket is missing; write scheme://bucket/prefix")?;
    if url.port().is_some() || !url.username().is_empty() || url.query().is_some() {
        return Err("only a bucket and a prefix; the rest comes from the environment".into());
    }
    let root = Path::from_url_path(url.path()).map_err(|error| chain(&error))?;
    Ok((bucket, root))
}

/// TLS by ring, unless the process chose a provider already.
fn use_ring() {
    let _chosen_already = rustls::crypto::ring::default_provider().install_default();
}
