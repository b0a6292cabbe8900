// SPDX-License-Identifier: Apache-2.0
//! The module stays in the process for good: its thread and its statics do not survive being unloaded, which Envoy
//! does without `do_not_close` when the last configuration goes.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
