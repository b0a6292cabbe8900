// SPDX-License-Identifier: Apache-2.0
//! A program's log, and its metrics and spans by OpenTelemetry's protocol (OTLP, by gRPC) where
//! `OTEL_EXPORTER_OTLP_ENDPOINT` names a collector. Nothing is exported otherwise.
//!
//! ```text
//!  tracing ──> log on standard error
//!      └─────> spans of target SPANS ──> batches, the oldest kept ──┐
//!  page of metrics, every interval ──> OpenTelemetry's model ───────┴─> one connection ──> collector
//! ```
//! A collector that is slow or away costs spans and nothing else: the exporter has a thread and limits of its own.
//!
//! Read too: `OTEL_EXPORTER_OTLP_{HEADERS,TIMEOUT,CERTIFICATE}`, `OTEL_METRIC_EXPORT_INTERVAL`, `OTEL_SERVICE_NAME`,
//! `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER` and its argument, `OTEL_BSP_*` and `OTEL_SDK_DISABLED`, with the
//! meaning and the default that OpenTelemetry's specification gives them.

#[cfg(feature = "collector")]
pub mod collector;
mod metrics;
mod settings;

use std::io::IsTerminal;
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithTonicConfig};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use opentelemetry_proto::tonic::metrics::v1::{Metric, ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::Request;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tracing::{Span, Subscriber, info, warn};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use settings::Settings;

/// The target of spans that are exported, and of no other. They begin a trace, or [`continues`] one: a program's tasks
/// have spans of their own for its log, which never end.
pub const SPANS: &str = "weir::span";

/// Receivers take 4 MiB a message by default (gRPC), which is some 20,000 points of ours.
const MOST_POINTS: usize = 5_000;

type Reason = Box<dyn std::error::Error + Send + Sync>;

/// Nothing can be exported as it is set.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A variable is wrong.
    #[error(transparent)]
    Setting(#[from] settings::Error),
    /// The certificates are, or the exporter cannot be started.
    #[error("OpenTelemetry cannot be exported: {0}")]
    Start(#[source] Reason),
}

/// What a process exports.
#[derive(Debug, Default)]
pub struct Telemetry(Option<Exporter>);

#[derive(Debug)]
struct Exporter {
    settings: Settings,
    spans: SdkTracerProvider,
    resource: Resource,
    channel: Channel,
    started: u64,
    /// Of the thread that the connection lives in.
    _thread: DropGuard,
}

impl Telemetry {
    /// Starts the log alone, of a command that exports nothing.
    pub fn log(json: bool) -> Self {
        log(None, json);
        Self(None)
    }

    /// Starts the log of this process, from `RUST_LOG` (`info` by default), and what it exports under this name.
    ///
    /// # Errors
    /// A variable of OpenTelemetry's is wrong. The log is not started then.
    pub fn start(program: &'static str, log_json: bool) -> Result<Self, Error> {
        let settings = Settings::from(|name| std::env::var(name).ok())?;
        let exporter = settings.map(|settings| Exporter::start(program, settings));
        let exporter = exporter.transpose().map_err(Error::Start)?;
        log(exporter.as_ref(), log_json);
        if let Some(Exporter { settings, .. }) = &exporter {
            let endpoint = &settings.endpoint;
            info!(%endpoint, "metrics and spans are exported");
            if settings.authority.is_none() && !is_loopback(endpoint.host()) {
                warn!(%endpoint, "they cross a network in the clear: name it by https");
            }
        }
        Ok(Self(exporter))
    }

    /// Exports the page of metrics (Prometheus' or OpenMetrics' text) now and then, and once more at the end. No page
    /// is no export.
    pub async fn export(self, page: impl AsyncFn() -> Option<String>, shutdown: CancellationToken) {
        let Some(exporter) = self.0 else {
            return;
        };
        let mut ticker = tokio::time::interval(exporter.settings.interval);
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut well = true;
        loop {
            let ends = tokio::select! {
                () = shutdown.cancelled() => true,
                _ = ticker.tick() => false,
            };
            if let Some(page) = page().await {
                let sent = exporter.send(&page).await;
                match &sent {
                    Ok(()) if !well => info!("metrics are exported again"),
                    Err(status) if well => {
                        let error = status.message();
                        warn!(code = ?status.code(), error, "metrics are not exported");
                    }
                    _ => {}
                }
                well = sent.is_ok();
            }
            if ends {
                break;
            }
        }
        // It waits for the collector, up to its time-out.
        let ended = tokio::task::spawn_blocking(move || exporter.spans.shutdown()).await;
        if let Ok(Err(error)) = ended {
            warn!(%error, "the last spans are lost");
        }
    }
}

/// Goes on with the trace that a request is part of (W3C, "Trace Context"), in this new span.
pub fn continues(span: &Span, headers: &HeaderMap) {
    let context = TraceContextPropagator::new().extract(&Headers(headers));
    // One that nobody exports is of no trace.
    let _ = span.set_parent(context);
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}

fn log(exporter: Option<&Exporter>, json: bool) {
    subscriber(exporter, json).init();
}

fn subscriber(exporter: Option<&Exporter>, json: bool) -> impl Subscriber + Send + Sync {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // Nor is the time taken that it takes to write down a span which nobody exports.
    let filter = filter.and(filter_fn(|of| of.target() != SPANS));
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        // Told by a panic, perhaps in the midst of putting back: nobody reads the log any more.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    let lines = match json {
        true => lines.json().with_filter(filter).boxed(),
        false => lines.with_filter(filter).boxed(),
    };
    let spans = exporter.map(|exporter| {
        tracing_opentelemetry::layer()
            .with_tracer(exporter.spans.tracer("weir"))
            // What a collector asks for is where time goes, not which line of ours it is in.
            .with_location(false)
            .with_threads(false)
            .with_filter(filter_fn(|of| of.target() == SPANS))
            .boxed()
    });
    // A list: a layer that is not there, in its place, would want everything.
    let layers: Vec<_> = [lines].into_iter().chain(spans).collect();
    tracing_subscriber::registry().with(layers)
}

impl Exporter {
    fn start(program: &'static str, settings: Settings) -> Result<Self, Reason> {
        let mut endpoint = Endpoint::from(settings.endpoint.clone())
            .connect_timeout(settings.timeout)
            .timeout(settings.timeout);
        if let Some(authority) = &settings.authority {
            let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority));
            endpoint = endpoint.tls_config(tls)?;
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let entered = runtime.enter();
        let channel = endpoint.connect_lazy();
        let spans = SpanExporter::builder()
            .with_tonic()
            .with_channel(channel.clone())
            .with_metadata(settings.headers.clone())
            .build()?;
        drop(entered);
        let named = std::env::var_os("OTEL_SERVICE_NAME").is_some();
        let resource = match named {
            true => Resource::builder(),
            false => Resource::builder().with_service_name(program),
        };
        let resource = resource.build();
        let spans = SdkTracerProvider::builder()
            .with_batch_exporter(spans)
            .with_resource(resource.clone())
            .build();
        let end = CancellationToken::new();
        let thread = end.clone().drop_guard();
        thread::Builder::new()
            .name("otlp".to_owned())
            .spawn(move || runtime.block_on(end.cancelled()))?;
        Ok(Self {
            settings,
            spans,
            resource,
            channel,
            started: unix_nanoseconds(),
            _thread: thread,
        })
    }

    async fn send(&self, page: &str) -> Result<(), tonic::Status> {
        let period = metrics::Period {
            start: self.started,
            now: unix_nanoseconds(),
        };
        for metrics in metrics::packed(metrics::metrics(page, period), MOST_POINTS) {
            let mut request = Request::new(self.request(metrics));
            *request.metadata_mut() = self.settings.headers.clone();
            let mut client = MetricsServiceClient::new(self.channel.clone());
            client.export(request).await?;
        }
        Ok(())
    }

    fn request(&self, metrics: Vec<Metric>) -> ExportMetricsServiceRequest {
        let attributes = self.resource.iter();
        let attributes =
            attributes.map(|(key, value)| metrics::attribute(key.to_string(), value.to_string()));
        let resource = resource::v1::Resource {
            attributes: attributes.collect(),
            ..resource::v1::Resource::default()
        };
        ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(resource),
                scope_metrics: vec![ScopeMetrics {
                    metrics,
                    ..ScopeMetrics::default()
                }],
                ..ResourceMetrics::default()
            }],
        }
    }
}

fn unix_nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or(Duration::ZERO).as_nanos();
    u64::try_from(since).unwrap_or(u64::MAX)
}

fn is_loopback(host: Option<&str>) -> bool {
    let Some(host) = host else { return false };
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use tracing::info_span;

    use super::*;

    #[test]
    fn a_span_to_export_is_nothing_where_nothing_is_exported() {
        for json in [false, true] {
            tracing::subscriber::with_default(subscriber(None, json), || {
                assert!(info_span!(target: SPANS, "decision").is_disabled());
                assert!(!info_span!("task").is_disabled());
            });
        }
    }
}
