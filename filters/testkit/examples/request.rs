// SPDX-License-Identifier: Apache-2.0
//! Sends one request through a module and shows what becomes of it.
//!
//! ```text
//! cargo run --example request -- filter.wasm '{"plugin":"configuration"}' :path=/ x-user=me
//! ```
//! Without arguments it runs a module of a few lines that answers every request itself.

use weir_testkit::{Headers, Host, Module};

/// Answers 418. A module needs no more than this.
const TEAPOT: &str = r#"(module
    (import "env" "proxy_send_local_response"
        (func $reply (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "short and stout")
    (func (export "proxy_abi_version_0_2_1"))
    (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
        (drop (call $reply (i32.const 418) (i32.const 0) (i32.const 0)
            (i32.const 0) (i32.const 15) (i32.const 0) (i32.const 0) (i32.const -1)))
        (i32.const 1)))"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let module = match arguments.next() {
        Some(file) => Module::from_file(file)?,
        None => Module::from_bytes(&wat::parse_str(TEAPOT)?)?,
    };
    let configuration = arguments.next().unwrap_or_default();
    let headers = arguments.filter_map(|pair| {
        // The first character may be the colon of `:path`; the value may contain `=`.
        let (name, value) = pair.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    });
    let headers = headers.fold(Headers::new(), |all, (name, value)| all.with(&name, value));

    let vm = Host::new()
        .vm(&module)
        .plugin_config(configuration)
        .start()?;
    let http = vm.request(headers)?;
    println!("{:?} {:?}", http.action(), http.request_headers());
    if let Some(reply) = http.local_reply() {
        println!(
            "answered {} {}",
            reply.status,
            String::from_utf8_lossy(&reply.body)
        );
    }
    for log in vm.logs() {
        println!("{:?}: {}", log.level, log.message);
    }
    println!("fuel: {}", vm.fuel_of("proxy_on_request_headers"));
    Ok(())
}
