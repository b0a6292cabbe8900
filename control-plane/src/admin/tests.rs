// SPDX-License-Identifier: Apache-2.0
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::time::Instant;
use weir_policy::KeyHash;

use weir_fleet::Update;
use weir_fleet::figures::{Figures, Scraped};
use weir_fleet::holdings::Changes;

use super::*;
use crate::config;

/// Two hosts of four cores with a queued job each; the second holds "a".
async fn view() -> View {
    view_with("{}").await
}

async fn view_with(policy: &str) -> View {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    let hosts = ["127.0.0.1:1", "127.0.0.1:2"];
    let row = |host| format!("{{ address: \"{host}\", capacity_millicores: 4000 }}");
    let rows = hosts.map(row).join(", ");
    std::fs::write(
        &path,
        format!("clusters: {{ rules: {{ hosts: [ {rows} ], policy: {policy} }} }}\n"),
    )
    .unwrap();
    let config = config::load(&path)
        .map_err(|(error, _)| error)
        .unwrap()
        .config;
    let now = Instant::now();
    let mut state = crate::owner::Owner::new(&config, 1, Metrics::default(), now);
    let changes = Changes {
        reset: true,
        added: vec![KeyHash::of(b"a"), KeyHash::of(b"b1")],
        removed: vec![],
    };
    for host in hosts {
        let (cluster, host) = ("rules".into(), host.into());
        let figures = Figures {
            in_progress: Some(1),
            queued: Some(vec![1]),
            queuing_delay: None,
            ..Figures::default()
        };
        let result = Ok(Scraped {
            figures,
            ..Scraped::default()
        });
        state.fold(
            Update::Scraped {
                cluster,
                host,
                asked: now,
                result,
            },
            now,
        );
    }
    let (cluster, host) = ("rules".into(), "127.0.0.1:2".into());
    state.fold(
        Update::Cached {
            cluster,
            host,
            drops: 0,
            result: Ok(changes),
        },
        now,
    );
    state.publish(now);
    let (answer, view) = oneshot::channel();
    state.fold(News::View(answer), now);
    view.await.unwrap()
}

fn parameters(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

#[tokio::test]
async fn it_names_the_host_that_has_the_key_first_and_says_why() {
    let view = view().await;
    let question = Question::parse(
        &parameters("cluster=rules&key=a&priority=high&user=u"),
        &view,
        0,
    )
    .unwrap();
    let answer = explain(&view, &question, SmallRng::seed_from_u64(1)).unwrap();
    assert_eq!(
        (answer.outcome, answer.reason, answer.class),
        ("send", "known_cached", 0)
    );
    assert_eq!(
        (answer.ranked[0].address.as_str(), answer.ranked[0].cached),
        ("127.0.0.1:2", "known")
    );
    assert_eq!(answer.ranked.len() + answer.others.len(), 2);
    let question = Question::parse(&parameters("cluster=rules&key=b"), &view, 0).unwrap();
    let answer = explain(&view, &question, SmallRng::seed_from_u64(1)).unwrap();
    assert_eq!((answer.reason, answer.class), ("not_cached", 16));
}

#[tokio::test(start_paused = true)]
async fn where_the_owner_hangs_the_process_is_not_live() {
    let (updates, news) = tokio::sync::mpsc::channel(1);
    let app = App::new(updates, Metrics::default(), Registry::default());
    let said = live(State(app.clone())).await;
    assert_eq!(said.status(), StatusCode::SERVICE_UNAVAILABLE);
    drop(news);
    let said = live(State(app)).await;
    assert_eq!(said.status(), StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn of_several_keys_it_says_how_many_each_host_has_from_the_first_on() {
    let view = view_with("{ selection: dynamic }").await;
    let list = parameters("cluster=rules&key=a; b1;;x&key_separator=;");
    let question = Question::parse(&list, &view, 0).unwrap();
    assert_eq!(question.keys, ["a", "b1", "x"]);
    let answer = explain(&view, &question, SmallRng::seed_from_u64(1)).unwrap();
    let (first, second) = (&answer.ranked[0], &answer.ranked[1]);
    assert_eq!(
        (first.address.as_str(), first.cached, first.cached_keys),
        ("127.0.0.1:2", "known", 2)
    );
    assert_eq!((second.cached, second.cached_keys), ("no", 0));
    assert_eq!(answer.reason, "known_cached");
    let one = parameters("cluster=rules&key=a;b1");
    let question = Question::parse(&one, &view, 0).unwrap();
    assert_eq!(question.keys, ["a;b1"], "without a separator it is one key");
}

#[tokio::test]
async fn it_knows_the_hot_cold_rule() {
    let view = view_with("{ selection: hot_cold }").await;
    let question = Question::parse(&parameters("cluster=rules&key=a"), &view, 0).unwrap();
    let answer = explain(&view, &question, SmallRng::seed_from_u64(1)).unwrap();
    assert_eq!(answer.selection, "hot_cold");
    assert_eq!((answer.outcome, answer.reason), ("send", "cold"));
}

#[tokio::test]
async fn a_question_that_cannot_be_answered_says_what_could_be_asked() {
    let view = view().await;
    let problem = |text: &str| Question::parse(&parameters(text), &view, 0).unwrap_err();
    let clusters = vec!["rules".to_owned()];
    let missing = problem("key=a");
    assert_eq!(
        (
            missing.parameter.as_str(),
            &missing.possible,
            missing.unknown
        ),
        ("cluster", &clusters, false)
    );
    let unknown = problem("cluster=x");
    assert_eq!(
        (unknown.reason.as_str(), &unknown.possible, unknown.unknown),
        ("no such cluster", &clusters, true)
    );
    assert_eq!(problem("cluster=rules&priority=32").possible[2], "0 to 31");
    assert_eq!(
        problem("cluster=rules&usr=x").possible,
        [
            "cluster (required)",
            "key",
            "key_separator",
            "priority",
            "user",
            "zone"
        ]
    );
}

#[tokio::test]
async fn it_says_how_long_a_request_would_wait_and_when_another_host_would_get_it_too() {
    let policy = |overload: &str| {
        format!(
            "{{ overload: {overload}, breaker_queued_jobs: 0, holding: {{ for_eligible: 1s }}, \
             hedging: {{ after: 20ms }} }}"
        )
    };
    let answer = async |overload: &str| {
        let view = view_with(&policy(overload)).await;
        let question = Question::parse(&parameters("cluster=rules&key=b"), &view, 0).unwrap();
        let answer = explain(&view, &question, SmallRng::seed_from_u64(1)).unwrap();
        (answer.outcome, answer.held_for_ms, answer.hedged_after_ms)
    };
    assert_eq!(answer("breaker").await, ("hold", Some(1000), None));
    assert_eq!(answer("none").await, ("send", None, Some(20)));
}
