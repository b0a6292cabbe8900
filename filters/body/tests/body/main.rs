// SPDX-License-Identifier: Apache-2.0
//! Bodies, held against a real parser of JSON.

mod prompts;
mod reference;
mod values;

use weir_body::Body;

/// A body that comes in chunks of these lengths, and the rest at once.
fn read(mut body: Body, mut bytes: &[u8], chunks: &[usize]) -> Body {
    for length in chunks {
        let (chunk, rest) = bytes.split_at((*length).min(bytes.len()));
        body.read(chunk);
        bytes = rest;
    }
    body.read(bytes);
    body.end();
    body
}

fn names(body: &Body) -> Vec<String> {
    let names = body.names().into_iter();
    names.map(|name| String::from_utf8(name).unwrap()).collect()
}
