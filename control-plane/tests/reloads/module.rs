// SPDX-License-Identifier: Apache-2.0
//! Another build of the filter, by ECDS from weir-control.

use std::path::{Path, PathBuf};

use weir_harness::with_layout;

use crate::sidecar::Sidecar;
use crate::steady::Steady;
use crate::tools::{self, shell};
use crate::world::{Plan, sum};

/// VMs that Envoy has made of any module.
const CREATED: &str = "envoy_wasm_envoy_wasm_runtime_v8_created";

/// The filter as another build: the same code, other bytes.
pub(crate) fn build(number: u8) -> Vec<u8> {
    let mut module = std::fs::read(tools::filter()).unwrap();
    // A custom section: id 0, its length, and in it the length of its name, the name, and contents. Of a dynamic module
    // nobody reads what is behind its end.
    module.extend([0, 7, 5]);
    module.extend(b"build");
    module.push(number);
    module
}

/// Puts a build for the shell that is tested into the folder, under a name of its own.
pub(crate) fn put(folder: &Path, number: u8) -> PathBuf {
    let kind = if shell::native().is_some() {
        "so"
    } else {
        "wasm"
    };
    let file = folder.join(format!("{number}.{kind}"));
    std::fs::write(&file, build(number)).unwrap();
    file
}

/// VMs that an Envoy has made so far.
pub(crate) async fn created(sidecar: &Sidecar) -> Option<f64> {
    sum(&sidecar.page("/stats/prometheus").await?, CREATED)
}

/// Puts a module in place of another in one step: weir-control may look at any moment.
pub(crate) fn replace(file: &Path, module: &[u8]) {
    let new = file.with_extension("new");
    std::fs::write(&new, module).unwrap();
    std::fs::rename(new, file).unwrap();
}

fn module_file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir_filter.wasm");
    replace(&file, &build(0));
    (folder, file)
}

#[tokio::test(flavor = "multi_thread")]
async fn builds_of_the_filter_that_weir_control_sends_follow_each_other() {
    let (_folder, file) = module_file();
    let mut world = Plan::workers(3, &[]).filter(file.clone()).start().await;
    let load = Steady::start(world.egress).await;
    for number in 1..=3 {
        let before = world.envoy_metric(CREATED).await.unwrap();
        replace(&file, &build(number));
        // One on the main thread and one on each worker, and one that tries the module out.
        world
            .until_envoy(CREATED, |created| created >= before + 3.0)
            .await;
        load.next(30).await;
    }
    load.assert_informed().await;
    world.prove_tables_arrive("baseline", "baseline").await;
    world
        .until_control("weir_xds_streams{kind=\"weir\"}", |streams| streams == 1.0)
        .await;
}

/// The layout of shared data is part of each key's name. A release that changes it finds nothing there.
#[tokio::test(flavor = "multi_thread")]
async fn a_build_with_another_layout_of_shared_data_serves_without_tables_until_its_own_have_come()
{
    let (_folder, file) = module_file();
    let mut world = Plan::workers(3, &[]).filter(file.clone()).start().await;
    let load = Steady::start(world.egress).await;
    let before = world.envoy_metric(CREATED).await.unwrap();
    replace(&file, &with_layout(build(9), b"weir/2/"));
    world
        .until_envoy(CREATED, |created| created >= before + 3.0)
        .await;
    load.until("a choice by cache", |answer| {
        answer.reason == "known_cached"
    })
    .await;
    load.next(50).await;
    load.assert_ok().await;
    world.prove_tables_arrive("baseline", "baseline").await;
    world
        .until_control("weir_xds_streams{kind=\"weir\"}", |streams| streams == 1.0)
        .await;
}
