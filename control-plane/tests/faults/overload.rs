// SPDX-License-Identifier: Apache-2.0
//! More work than the hosts can do.

use serde_json::json;

use crate::client::{Answer, Headers};
use crate::load::Load;
use crate::world::{Plan, World};

/// One request in twenty is important. Each needs 60 ms of a core: 150 a second are four times what two cores do, and
/// too much still where the machine is so busy that they are sent late.
fn mixed(number: usize) -> Headers {
    let priority = if is_important(number) { "high" } else { "low" };
    vec![
        ("x-weir-key", format!("k{}", number % 20)),
        ("x-weir-priority", priority.to_owned()),
        ("x-emulate-run-us", "60000".to_owned()),
    ]
}

fn is_important(number: usize) -> bool {
    number.is_multiple_of(20)
}

/// Two hosts that are asked for four times what they can do, and 150 requests were shed.
async fn overloaded() -> (World, Load) {
    let rules = json!({
        "policy": {"overload": "dagor"},
        "dagor": {"target": "300ms", "window": "500ms"},
    });
    // Room for the whole load at one host: only admission is to refuse anything.
    let plan = Plan::workers(2, &["--cores", "1", "--max-queued", "200"]);
    let world = plan
        .with(json!({"clusters": {"rules": rules}}))
        .start()
        .await;
    let load = Load::start(world.egress, 150, mixed);
    let enough = |answers: &[Answer]| answers.iter().filter(shed).count() >= 150;
    load.until("shed requests", 0, enough).await;
    (world, load)
}

fn shed(answer: &&Answer) -> bool {
    answer.status == Some(429)
}

/// In whichever shell: of status 0 a caller would take a refusal for an answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_by_grpc_that_is_shed_ends_with_resource_exhausted() {
    let (world, load) = overloaded().await;
    let call = [
        mixed(1),
        vec![("content-type", "application/grpc".to_owned())],
    ]
    .concat();
    let caller = world.caller();
    let shed = async || {
        let answer = caller.send("/", &call).await;
        (answer.reason == "overloaded").then_some(answer)
    };
    let answer = world.until("a call that is shed", shed).await;
    let told = (answer.status, answer.grpc_status);
    assert_eq!(told, (Some(200), Some(8)), "{answer:#?}");
    assert!(answer.retry_after.is_some(), "{answer:#?}");
    drop(load);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_weir_control_that_restarts_in_overload_begins_with_the_levels_in_force() {
    if !weir_needs::nightly_or_skip() {
        return;
    }
    let (mut world, load) = overloaded().await;
    world.control = None;
    load.next(30).await;
    world.start_control();
    // The levels of its first table, or of one soon after it.
    let first = async || {
        let tables = world.tables().await?;
        let rules = tables.pointer("/clusters/rules")?;
        rules
            .pointer("/version")
            .filter(|version| version.is_string())?;
        let hosts = rules.pointer("/hosts")?.as_array()?;
        hosts
            .iter()
            .map(|host| host["admission_level"].as_u64())
            .collect::<Option<Vec<_>>>()
    };
    let levels: Vec<u64> = world.until("tables of the new one", first).await;
    assert!(levels.iter().all(|level| *level < 4096), "{levels:?}");
    drop(load);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_dagor_too_much_work_sheds_the_least_important_and_says_when_to_return() {
    let (world, load) = overloaded().await;
    let answers = load.finish().await;
    for answer in answers.iter().filter(shed) {
        assert_eq!(answer.reason, "overloaded", "{answer:#?}");
        assert!(
            answer.retry_after.is_some_and(|seconds| seconds >= 1),
            "{answer:#?}"
        );
    }
    let important: Vec<_> = answers
        .iter()
        .filter(|answer| is_important(answer.number))
        .collect();
    let refused: Vec<_> = important
        .iter()
        .filter(|answer| answer.status != Some(200))
        .collect();
    let count = (refused.len(), important.len());
    assert!(
        refused.is_empty(),
        "{count:?} important ones were refused, as {:#?}",
        refused[0]
    );
    world
        .until_control("weir_control_shed_total", |shed| shed > 0.0)
        .await;
}
