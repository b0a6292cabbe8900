// SPDX-License-Identifier: Apache-2.0
//! Compiles the protobuf definitions with a compiler written in Rust: nothing to install.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = [
        "weir/v1/tables.proto",
        "weir/v1/reports.proto",
        "weir/v1/nodes.proto",
        "weir/v1/receipts.proto",
        "envoy/service/discovery/v3/discovery.proto",
    ];
    let grpc = std::env::var_os("CARGO_FEATURE_GRPC").is_some();
    tonic_prost_build::configure()
        .build_client(grpc)
        .build_server(grpc)
        .btree_map(".")
        .compile_fds(protox::compile(files, ["proto"])?)?;
    Ok(())
}
