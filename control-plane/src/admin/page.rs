// SPDX-License-Identifier: Apache-2.0
//! The live page: files of this program, which load nothing from anywhere else.

use axum::Router;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::INDEX;

macro_rules! files {
    ($($name:literal: $kind:expr),* $(,)?) => {
        [$(($name, $kind, include_str!(concat!("page/", $name)))),*]
    };
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Under `/page/`.
const FILES: [(&str, &str, &str); 12] = files! {
    "page.css": "text/css; charset=utf-8",
    "page.js": SCRIPT,
    "dom.js": SCRIPT,
    "stream.js": SCRIPT,
    "fleet.js": SCRIPT,
    "hosts.js": SCRIPT,
    "order.js": SCRIPT,
    "trend.js": SCRIPT,
    "traffic.js": SCRIPT,
    "sidecars.js": SCRIPT,
    "search.js": SCRIPT,
    "past.js": SCRIPT,
};

/// What names of hosts and reasons of strangers may do in a browser: nothing. `form-action` is for those who search
/// without scripts.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The routes of the page's files.
pub(super) fn files() -> Router {
    let routes = FILES.into_iter();
    routes.fold(Router::new(), |router, (name, kind, text)| {
        let file = get(async move || ([(header::CONTENT_TYPE, kind)], text));
        router.route(&format!("/page/{name}"), file)
    })
}

/// `/`: the page for who prefers HTML, which browsers do, else the list of pages.
pub(super) async fn index(asked: HeaderMap) -> Response {
    let html = weir_pages::quality(&asked, "text/html");
    let vary = [(header::VARY, "accept")];
    match html > 0.0 && html >= weir_pages::quality(&asked, "text/plain") {
        true => {
            let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
            (vary, kind, include_str!("page/index.html")).into_response()
        }
        false => (vary, INDEX).into_response(),
    }
}

/// Headers of every answer.
pub(super) async fn guard(mut answer: Response) -> Response {
    let headers = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in headers {
        answer
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    // A program that was replaced has other files, and figures are of now.
    answer
        .headers_mut()
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    answer
}

#[cfg(test)]
mod tests;
