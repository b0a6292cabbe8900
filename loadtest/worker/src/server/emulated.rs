// SPDX-License-Identifier: Apache-2.0
//! Jobs of an emulated host, which request headers describe.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use weir_executor::{Load, Modelled, Request, Spent, Timing};

use super::app::App;
use super::failure::Failure;
use super::faults::{self, Faults};
use super::spent;
use crate::host::{Gone, News};
use crate::priorities::Priorities;

/// Longest key, in bytes. A key names a project, it does not carry one.
pub const MAX_KEY_BYTES: usize = 4096;
/// Longest run a request may ask for.
pub const MAX_RUN: Duration = Duration::from_secs(3600);

/// How long what a request does not say takes.
#[derive(Debug, Clone)]
pub struct Model {
    /// Of fetches.
    pub timing: Timing,
    /// Run time of a request that says none.
    pub default_run: Duration,
    /// For tests of faults.
    pub faults: Option<Arc<Faults>>,
}

type Service = (Arc<App<Modelled>>, Arc<Model>);

/// Serves a job on any path and method.
pub fn router(app: Arc<App<Modelled>>, model: Model) -> Router {
    let service: Service = (app, Arc::new(model));
    Router::new().fallback(serve_job).with_state(service)
}

async fn serve_job(State((app, model)): State<Service>, headers: HeaderMap) -> Response {
    let faults = model.faults.as_deref();
    if faults.is_some_and(|faults| faults.fails() || headers.contains_key(faults::FAIL)) {
        let told = Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "told to fail");
        return app.sign_now(told.into_response()).await;
    }
    let id = headers.get(faults::ID).and_then(|id| id.to_str().ok());
    let slowness = faults.map_or(1, Faults::slowness);
    let request = match parse(&headers, &app.priorities, &model, slowness) {
        Ok(request) => request,
        Err(bad) => {
            let answer = Failure::new(StatusCode::BAD_REQUEST, bad.to_string());
            return app.sign_now(answer.into_response()).await;
        }
    };
    match run(&app, request, faults.zip(id)).await {
        Ok((answer, load, spent)) => app.sign(answer, Some(&load), spent.as_ref()),
        Err(Gone) => app.sign(Failure::gone().into_response(), None, None),
    }
}

/// With the load after it, and what it has cost if it ended well.
type Answer = (Response, Load, Option<Spent>);

/// Runs a job to its end, noting it where that is wanted. Dropping the future cancels it.
async fn run(
    app: &App<Modelled>,
    request: Request<Modelled>,
    noted: Option<(&Faults, &str)>,
) -> Result<Answer, Gone> {
    let mut running = app.host.submit(request)?;
    loop {
        return Ok(match running.next().await? {
            News::Started => continue,
            News::Began(..) => {
                if let Some((faults, id)) = noted {
                    faults.began(id);
                }
                continue;
            }
            News::Ended(Ok(spent), load) => {
                if let Some((faults, id)) = noted {
                    faults.ended(id);
                }
                (done(&spent), load, Some(spent))
            }
            News::Refused(full, load) => {
                let failure = Failure::unavailable(full.to_string());
                (failure.into_response(), load, None)
            }
            News::Stopped(load) => (Failure::stopped().into_response(), load, None),
        });
    }
}

fn done(spent: &Spent) -> Response {
    let mut response = "done\n".into_response();
    spent::tell(response.headers_mut(), spent, true);
    response
}

/// A header that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("header {header}: {reason}")]
struct BadHeader {
    header: &'static str,
    reason: String,
}

fn parse(
    headers: &HeaderMap,
    priorities: &Priorities,
    model: &Model,
    slowness: u32,
) -> Result<Request<Modelled>, BadHeader> {
    let key = text(headers, "x-weir-key")?;
    if let Some(key) = key {
        check_key(key)?;
    }
    let class = priorities.class(text(headers, "x-weir-priority")?);
    let bytes = number(headers, "x-emulate-bytes")?.unwrap_or(0);
    let run = number(headers, "x-emulate-run-us")?.map_or(model.default_run, Duration::from_micros);
    if run > MAX_RUN {
        return Err(BadHeader {
            header: "x-emulate-run-us",
            reason: format!("more than {} s", MAX_RUN.as_secs()),
        });
    }
    let run = run.saturating_mul(slowness);
    Ok(model.timing.job(key.map(Arc::from), bytes, class, run))
}

fn check_key(key: &str) -> Result<(), BadHeader> {
    let reason = match key.len() {
        0 => "is empty".to_owned(),
        n if n > MAX_KEY_BYTES => format!("{n} bytes, the limit is {MAX_KEY_BYTES}"),
        _ => return Ok(()),
    };
    Err(BadHeader {
        header: "x-weir-key",
        reason,
    })
}

fn text<'a>(headers: &'a HeaderMap, header: &'static str) -> Result<Option<&'a str>, BadHeader> {
    let Some(value) = headers.get(header) else {
        return Ok(None);
    };
    std::str::from_utf8(value.as_bytes())
        .map(Some)
        .map_err(|_| BadHeader {
            header,
            reason: "is not UTF-8".to_owned(),
        })
}

fn number(headers: &HeaderMap, header: &'static str) -> Result<Option<u64>, BadHeader> {
    let Some(value) = text(headers, header)? else {
        return Ok(None);
    };
    value.parse().map(Some).map_err(|_| BadHeader {
        header,
        reason: "is not a whole number in 0..2^64".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use weir_executor::Kind;

    const MODEL: Model = Model {
        timing: Timing {
            fetch_base: Duration::ZERO,
            fetch_bytes_per_second: 1,
        },
        default_run: Duration::from_millis(1),
        faults: None,
    };

    fn priorities() -> Priorities {
        let list = ["high=0", "low=16"].map(|p| p.parse().unwrap());
        Priorities::new(list.to_vec(), "low").unwrap()
    }

    fn parse_one(name: &'static str, value: &[u8]) -> Result<Request<Modelled>, BadHeader> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_bytes(value).unwrap());
        parse(&headers, &priorities(), &MODEL, 1)
    }

    #[test]
    fn a_request_without_headers_is_a_low_job_without_data() {
        let job = parse(&HeaderMap::new(), &priorities(), &MODEL, 1).unwrap();
        assert_eq!((job.class, job.steps.len()), (16, 1));
        assert_eq!(job.steps[0].work.core_time, MODEL.default_run);
    }

    #[test]
    fn a_slowed_host_runs_every_job_longer() {
        let job = parse(&HeaderMap::new(), &priorities(), &MODEL, 3).unwrap();
        assert_eq!(job.steps[0].work.core_time, 3 * MODEL.default_run);
    }

    #[test]
    fn a_key_is_fetched_first() {
        let job = parse_one("x-weir-key", b"shop").unwrap();
        let kinds: Vec<_> = job.steps.iter().map(|step| step.kind).collect();
        assert_eq!(kinds, [Kind::FeedSource, Kind::Operators]);
        assert_eq!(&*job.steps[0].result.as_ref().unwrap().key, "shop");
    }

    #[test]
    fn an_unknown_priority_counts_as_the_default() {
        assert_eq!(parse_one("x-weir-priority", b"high").unwrap().class, 0);
        assert_eq!(parse_one("x-weir-priority", b"urgent").unwrap().class, 16);
    }

    #[test]
    fn every_malformed_header_is_named_in_its_error() {
        let long = vec![b'k'; MAX_KEY_BYTES + 1];
        let cases: [(&'static str, &[u8]); 7] = [
            ("x-weir-key", b""),
            ("x-weir-key", b"\xff\xfe"),
            ("x-weir-key", &long),
            ("x-weir-priority", b"\xff"),
            ("x-emulate-bytes", b"-1"),
            ("x-emulate-run-us", b"1.5"),
            ("x-emulate-run-us", b"99999999999999"),
        ];
        for (name, value) in cases {
            let error = parse_one(name, value).unwrap_err().to_string();
            assert!(error.starts_with(&format!("header {name}: ")), "{error}");
        }
    }
}
