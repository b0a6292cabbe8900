// SPDX-License-Identifier: Apache-2.0
//! What users install, held against its real readers: images against registries' clients, manifests against kustomize
//! and the published schemas, snippets of Envoy's configuration against Envoy and Envoy Gateway, units against
//! systemd-analyze.
//!
//! Each test names what it needs; `cargo xtask packaging` and `cargo xtask test` set it. Where something is missing
//! the test is reported as ignored.

mod certificate;
mod chart;
mod envoy;
mod envoy_gateway;
mod guide;
mod host;
mod images;
mod istio;
mod kubernetes;
mod language_models;
mod needs;
mod patch;
mod registry;
mod release;
mod systemd;
mod ten_minutes;
mod yaml;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use crate::needs::Need;

type Test = (&'static str, &'static [Need], fn());

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let tests = [
        chart::TESTS,
        envoy_gateway::TESTS,
        images::TESTS,
        istio::TESTS,
        kubernetes::TESTS,
        language_models::TESTS,
        ten_minutes::TESTS,
        patch::TESTS,
        release::TESTS,
        release::arm64::TESTS,
        systemd::TESTS,
    ];
    let trial = |(name, needed, run): &Test| {
        let missing = needed.iter().find_map(|need| Some((need, need.missing()?)));
        if let Some((need, why)) = &missing {
            weir_needs::skip_test(name, need.of_machine(), why);
        }
        let run = *run;
        Trial::test(*name, move || {
            run();
            Ok(())
        })
        .with_ignored_flag(missing.is_some())
    };
    let trials = tests.into_iter().flatten().map(trial).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
