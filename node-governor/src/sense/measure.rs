// SPDX-License-Identifier: Apache-2.0
//! The service's latency from somebody who is asked for it again and again: a page of metrics or a Prometheus server.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, anyhow};
use tokio::time::MissedTickBehavior;
use tracing::{info, warn};

use super::page::Histogram;
use super::promql;
use super::tail::Measured;
use crate::config::{Tail, TailSource};
use crate::get::get;
use crate::sensed::{self, Nanos};

/// An answer that takes longer says nothing.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Asks for ever, where somebody is to be asked. Whatever is not known, because the source is silent or says
/// nonsense, is none, and the reason is told once.
pub async fn measure(settings: Tail, measured: Measured) {
    let Some(mut source) = Source::new(&settings) else {
        return;
    };
    let (address, path) = source.place();
    let limit = settings.every.min(TIMEOUT);
    let mut trouble = None;
    let mut times = tokio::time::interval(settings.every);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        let answer = tokio::time::timeout(limit, get(address, &path)).await;
        let answer = answer.unwrap_or_else(|_| Err(anyhow!("no answer in {limit:?}")));
        let now = super::now();
        let tail = source.tail(now, answer);
        let reason = tail.as_ref().err().map(|error| format!("{error:#}"));
        measured.set(tail.ok().flatten());
        if reason == trouble {
            continue;
        }
        match &reason {
            Some(error) => warn!(%address, path, error, "the tail is not known"),
            None => info!(%address, path, "the tail is known again"),
        }
        trouble = reason;
    }
}

#[derive(Debug)]
enum Source {
    Page(SocketAddr, String, Histogram),
    Query(SocketAddr, String),
}

impl Source {
    fn new(settings: &Tail) -> Option<Self> {
        Some(match &settings.source {
            TailSource::Calls => return None,
            TailSource::Page(page) => {
                let histogram = Histogram::new(page.clone(), settings);
                Self::Page(page.address, page.path.clone(), histogram)
            }
            TailSource::Query(query) => {
                let path = weir_promql::path(&query.prefix, &query.query);
                Self::Query(query.address, path)
            }
        })
    }

    fn place(&self) -> (SocketAddr, String) {
        match self {
            Self::Page(address, path, _) | Self::Query(address, path) => (*address, path.clone()),
        }
    }

    fn tail(&mut self, now: Nanos, answer: Result<String>) -> Result<Option<sensed::Tail>> {
        match self {
            Self::Page(.., histogram) => histogram.tail(now, answer),
            Self::Query(..) => Ok(Some(sensed::Tail {
                latency: promql::latency(&answer?)?,
                // How many there were, the query does not say.
                requests: 1,
                at: now,
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::sync::{Arc, Mutex};

    use axum::Router;
    use axum::extract::RawQuery;
    use axum::http::StatusCode;

    use super::*;
    use crate::config::{Page, Query};

    /// What a server says to everybody; none: nothing at all.
    type Says = Arc<Mutex<Option<(StatusCode, String)>>>;

    async fn serve(app: Router) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        address
    }

    async fn server(says: Says) -> SocketAddr {
        let answer = async move |RawQuery(query): RawQuery| {
            assert_eq!(query.as_deref(), Some("query=a%7Bb%3D%22c%22%7D%20%2B%201"));
            let said = says.lock().unwrap().clone();
            match said {
                Some(said) => said,
                None => std::future::pending().await,
            }
        };
        serve(Router::new().route("/prefix/api/v1/query", axum::routing::get(answer))).await
    }

    fn page(address: SocketAddr) -> TailSource {
        TailSource::Page(Page {
            address,
            path: "/".into(),
            metric: "rq".into(),
            unit: 1.0,
        })
    }

    fn settings(source: TailSource) -> Tail {
        Tail {
            source,
            quantile: 0.5,
            window: Duration::from_secs(1),
            every: Duration::from_millis(50),
        }
    }

    async fn wait(what: &str, measured: &Measured, is: impl Fn(Option<Duration>) -> bool) {
        for _ in 0..3000 {
            if is(measured.get().map(|tail| tail.latency)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("waited for {what}: {:?}", measured.get());
    }

    #[tokio::test]
    async fn a_query_is_asked_again_and_again_and_trouble_is_no_latency() {
        let one = |value: &str| {
            let body = format!(
                r#"{{"status":"success","data":{{"resultType":"vector","result":[{{"metric":{{}},"value":[1.5,"{value}"]}}]}}}}"#
            );
            Some((StatusCode::OK, body))
        };
        let says: Says = Arc::new(Mutex::new(one("0.25")));
        let address = server(Arc::clone(&says)).await;
        let measured = Measured::default();
        let query = Query {
            address,
            prefix: "/prefix".into(),
            query: "a{b=\"c\"} + 1".into(),
        };
        let asking = tokio::spawn(measure(
            settings(TailSource::Query(query)),
            measured.clone(),
        ));
        let quarter = Some(Duration::from_millis(250));
        let troubles = [
            ("silence", None),
            ("NaN", one("NaN")),
            ("an error", Some((StatusCode::BAD_REQUEST, "no".to_owned()))),
        ];
        for (trouble, said) in troubles {
            wait("a latency", &measured, |tail| tail == quarter).await;
            let first = measured.get();
            wait("a later one", &measured, |_| measured.get() != first).await;
            *says.lock().unwrap() = said;
            wait(trouble, &measured, |tail| tail.is_none()).await;
            *says.lock().unwrap() = one("0.25");
        }
        asking.abort();
    }

    /// Of two answers one fails, so that no two pages follow one another.
    #[tokio::test]
    async fn a_busy_service_whose_page_often_fails_is_not_taken_for_a_quiet_one() {
        let answers = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&answers);
        let answer = async move || {
            let count = counted.fetch_add(1, Relaxed);
            let page = format!("rq_bucket{{le=\"+Inf\"}} {count}\n");
            match count % 2 {
                0 => (StatusCode::OK, page),
                _ => (StatusCode::SERVICE_UNAVAILABLE, String::new()),
            }
        };
        let address = serve(Router::new().route("/", axum::routing::get(answer))).await;
        let measured = Measured::default();
        let asking = tokio::spawn(measure(settings(page(address)), measured.clone()));
        while answers.load(Relaxed) < 6 {
            assert_eq!(measured.get(), None);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        asking.abort();
    }

    #[tokio::test]
    async fn a_server_that_is_gone_is_no_latency() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let measured = Measured::default();
        measured.set(Some(sensed::Tail {
            latency: Duration::from_secs(1),
            requests: 1,
            at: Nanos(1),
        }));
        let asking = tokio::spawn(measure(settings(page(address)), measured.clone()));
        wait("no latency", &measured, |tail| tail.is_none()).await;
        asking.abort();
    }
}
