// SPDX-License-Identifier: Apache-2.0
//! A collector for tests: it takes what comes, by the protocol's own services.

use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status};

pub use opentelemetry_proto::tonic as proto;

/// What has not come by then never will.
const LIMIT: Duration = Duration::from_secs(120);

/// What came, each with the name of its service.
#[derive(Clone, Debug)]
pub enum Came {
    /// A metric.
    Metric(String, Metric),
    /// A span.
    Span(String, Span),
}

/// It listens until its process ends.
#[derive(Debug)]
pub struct Collector {
    endpoint: String,
    came: Receiver<Came>,
}

impl Collector {
    /// Starts one on loopback, in a thread of its own.
    ///
    /// # Panics
    /// It cannot listen.
    pub fn start() -> Self {
        Self::start_with("http://127.0.0.1", Server::builder())
    }

    /// One that is spoken to by https, with this certificate for localhost and its key (PEM).
    ///
    /// # Panics
    /// It cannot listen, or not by this certificate.
    pub fn start_secure(certificate: &str, key: &str) -> Self {
        let identity = Identity::from_pem(certificate, key);
        let tls = ServerTlsConfig::new().identity(identity);
        Self::start_with(
            "https://localhost",
            Server::builder().tls_config(tls).unwrap(),
        )
    }

    fn start_with(host: &str, mut server: Server) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, came) = channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                server
                    .add_service(MetricsServiceServer::new(Taker(sender.clone())))
                    .add_service(TraceServiceServer::new(Taker(sender)))
                    .serve_with_incoming(TcpListenerStream::new(listener))
                    .await
            })
        });
        Self {
            endpoint: format!("{host}:{}", address.port()),
            came,
        }
    }

    /// Has a program export to it, metrics and spans every tenth of a second.
    pub fn told_by(&self, command: &mut Command) {
        command
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &self.endpoint)
            .env("OTEL_METRIC_EXPORT_INTERVAL", "100")
            .env("OTEL_BSP_SCHEDULE_DELAY", "100");
    }

    /// What came and is wanted, once it has.
    ///
    /// # Panics
    /// It does not come.
    pub fn until<T>(&self, what: &str, mut wanted: impl FnMut(Came) -> Option<T>) -> T {
        let began = Instant::now();
        let mut others = Vec::new();
        while let Some(left) = LIMIT.checked_sub(began.elapsed()) {
            match self.came.recv_timeout(left) {
                Ok(came) => {
                    others.push(came.name().to_owned());
                    if let Some(found) = wanted(came) {
                        return found;
                    }
                }
                Err(_) => break,
            }
        }
        others.sort();
        others.dedup();
        panic!("waited in vain for {what}; there came {others:?}")
    }

    /// A metric of this name that is wanted, and the name of its service.
    pub fn metric(&self, name: &str) -> (String, Metric) {
        self.until(name, |came| match came {
            Came::Metric(service, metric) if metric.name == name => Some((service, metric)),
            _ => None,
        })
    }

    /// A span that is wanted, and the name of its service.
    pub fn span(&self, what: &str, wanted: impl Fn(&Span) -> bool) -> (String, Span) {
        self.until(what, |came| match came {
            Came::Span(service, span) if wanted(&span) => Some((service, span)),
            _ => None,
        })
    }
}

impl Came {
    fn name(&self) -> &str {
        match self {
            Self::Metric(_, metric) => &metric.name,
            Self::Span(_, span) => &span.name,
        }
    }
}

/// An attribute as text.
pub fn text(attributes: &[proto::common::v1::KeyValue], key: &str) -> Option<String> {
    use proto::common::v1::any_value::Value;
    let attribute = attributes.iter().find(|attribute| attribute.key == key)?;
    match attribute.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        Value::BoolValue(is) => Some(is.to_string()),
        _ => None,
    }
}

struct Taker(Sender<Came>);

impl Taker {
    fn take(&self, came: Came) {
        // The test may have ended.
        let _ = self.0.send(came);
    }
}

fn service(resource: Option<&proto::resource::v1::Resource>) -> String {
    let name = resource.and_then(|resource| text(&resource.attributes, "service.name"));
    name.unwrap_or_default()
}

#[tonic::async_trait]
impl MetricsService for Taker {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        for of_resource in request.into_inner().resource_metrics {
            let service = service(of_resource.resource.as_ref());
            let metrics = of_resource.scope_metrics.into_iter();
            for metric in metrics.flat_map(|scope| scope.metrics) {
                self.take(Came::Metric(service.clone(), metric));
            }
        }
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl TraceService for Taker {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for of_resource in request.into_inner().resource_spans {
            let service = service(of_resource.resource.as_ref());
            let spans = of_resource.scope_spans.into_iter();
            for span in spans.flat_map(|scope| scope.spans) {
                self.take(Came::Span(service.clone(), span));
            }
        }
        Ok(Response::new(Default::default()))
    }
}
