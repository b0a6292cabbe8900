// SPDX-License-Identifier: Apache-2.0
//! Gathers load and cache contents of hosts and pushes them to sidecars.

fn main() {
    if let Err((error, _)) =
        weir_control::config::load(std::path::Path::new(&std::env::args().nth(1).unwrap()))
    {
        println!("{error}");
    }
}
