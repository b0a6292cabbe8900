// SPDX-License-Identifier: Apache-2.0
//! Headers of callers that want to choose, or are not believed.

use serde_json::json;

use crate::client::Headers;
use crate::hosts::Host;
use crate::world::Plan;

const DESTINATION: &str = "x-gateway-destination-endpoint";

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_that_the_caller_names_is_neither_honoured_nor_passed_on() {
    let (serving, draining, stranger) = (
        Host::start().await,
        Host::start().await,
        Host::start().await,
    );
    // Envoy still sends to a host that drains if the header says so.
    let row = json!({"address": draining.address, "draining": true});
    let world = Plan::hosts(vec![serving.row(), row]).start().await;
    for named in [
        draining.address,
        stranger.address,
        "127.0.0.1:1".parse().unwrap(),
    ] {
        for key in 0..10 {
            let headers: Headers = vec![
                (DESTINATION, named.to_string()),
                ("x-weir-key", format!("k{key}")),
            ];
            let answer = world.caller().send("/", &headers).await;
            assert_eq!(
                (answer.status, answer.host),
                (Some(200), Some(serving.address)),
                "{named}"
            );
            assert!(!answer.body.contains(DESTINATION), "{}", answer.body);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_is_not_trusted_chooses_nothing_and_its_headers_end_here() {
    let host = Host::start().await;
    let untrusting = json!({"standalone": {"filter": {"config": {"trust": "none"}}}});
    let world = Plan::hosts(vec![host.row()]).with(untrusting).start().await;
    let headers: Headers = vec![
        ("x-weir-key", "k".to_owned()),
        ("x-weir-priority", "high".to_owned()),
        ("x-weir-user", "u".to_owned()),
        (DESTINATION, "127.0.0.1:1".to_owned()),
    ];
    let answer = world.caller().send("/", &headers).await;
    assert_eq!((answer.status, &*answer.reason), (Some(200), "no_key"));
    for (name, _) in headers {
        assert!(
            !answer.body.contains(name),
            "{name} reached the host: {}",
            answer.body
        );
    }
}
