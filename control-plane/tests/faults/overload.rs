// SPDX-License-Identifier: Apache-2.0
//! More work than the hosts can do.

use serde_json::json;

use crate::client::{Answer, Headers};
use crate::load::Load;
use crate::world::Plan;

/// One request in ten is important. Each needs 20 ms of a core: 150 a second of two cores' 100.
fn mixed(number: usize) -> Headers {
    let priority = if is_important(number) { "high" } else { "low" };
    vec![
        ("x-weir-key", format!("k{}", number % 20)),
        ("x-weir-priority", priority.to_owned()),
        ("x-emulate-run-us", "20000".to_owned()),
    ]
}

fn is_important(number: usize) -> bool {
    number.is_multiple_of(10)
}

#[tokio::test(flavor = "multi_thread")]
async fn with_dagor_too_much_work_sheds_the_least_important_and_says_when_to_return() {
    let rules = json!({
        "policy": {"overload": "dagor"},
        "dagor": {"target": "100ms", "window": "300ms"},
    });
    // Room for the whole load at one host: only admission is to refuse anything.
    let plan = Plan::workers(2, &["--cores", "1", "--max-queued", "200"]);
    let world = plan
        .with(json!({"clusters": {"rules": rules}}))
        .start()
        .await;
    let load = Load::start(world.egress, 150, mixed);
    let shed = |answer: &&Answer| answer.status == Some(429);
    let enough = |answers: &[Answer]| answers.iter().filter(shed).count() >= 150;
    load.until("shed requests", 0, enough).await;
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
