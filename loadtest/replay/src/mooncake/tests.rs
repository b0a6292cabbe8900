// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::workload;

/// Two sessions and a lone request behind a common block; the last one is outside of minute 0.
const TRACE: &str = "t_ms,keys,cost,size,cls
0,0;1;2,10,1500,
0,0;3,20,1024,
3000,0;1;4;5,30,2000,
5999,0;6,0,600,
60000,0;1,5,1024,
";

fn params() -> Params {
    Params {
        excerpt: Excerpt {
            from_minute: 0,
            minutes: 1,
            speed_up: 2.0,
        },
        clock: Duration::from_secs(3),
        prefix_keys: false,
        decode_per_token: None,
        sample: 1.0,
        high_share: 0.0,
        seed: 1,
    }
}

fn make(params: &Params) -> (Vec<Made>, Report) {
    convert(TRACE.as_bytes(), params).unwrap()
}

fn prompt(row: &Row) -> String {
    let body: Value = serde_json::from_str(&body(row, "m")).unwrap();
    body["prompt"].as_str().unwrap().to_owned()
}

#[test]
fn the_key_is_the_first_block_that_most_others_do_not_have() {
    let (made, report) = make(&params());
    let keys: Vec<_> = made.iter().map(|m| m.request.key.as_str()).collect();
    assert_eq!(keys, ["1", "3", "1", "6"]);
    assert_eq!((report.keys, report.common_blocks), (3, 1));
    assert_eq!(report.returning_share, 0.25);
    // Without a block of its own, the last one is the key.
    let (made, _) = convert(
        "t_ms,keys,cost,size,cls\n0,7;8,1,1024,\n".as_bytes(),
        &params(),
    )
    .unwrap();
    assert_eq!(made[0].request.key, "8");
}

#[test]
fn as_a_list_the_key_has_all_full_blocks_but_the_common_ones() {
    let listed = Params {
        prefix_keys: true,
        decode_per_token: Some(Duration::from_millis(25)),
        ..params()
    };
    let (made, report) = make(&listed);
    let keys: Vec<_> = made.iter().map(|m| m.request.key.as_str()).collect();
    assert_eq!(keys, ["1", "3", "1;4", ""]);
    assert_eq!(made[2].request.run_us, 750_000);
    assert_eq!(
        (report.keys, report.returning_share),
        (3, 0.25),
        "as before"
    );
}

#[test]
fn what_could_be_found_is_counted_in_full_blocks() {
    let (_, report) = make(&params());
    // Full: 0 1, 0 3, 0 1 4, 0. Found: 0, 0 1, 0.
    assert_eq!((report.blocks, report.distinct_blocks), (8, 4));
    assert_eq!(report.prompt_tokens, 5124);
    assert_eq!(report.findable_share, 4.0 * 512.0 / 5124.0);
}

#[test]
fn requests_come_within_their_tick_and_the_speed_up_divides() {
    let (made, report) = make(&params());
    let times: Vec<_> = made.iter().map(|m| m.request.t_us).collect();
    assert!(times.is_sorted());
    assert!(times[1] < 1_500_000, "{times:?}");
    assert!((1_500_000..3_000_000).contains(&times[2]), "{times:?}");
    assert!((2_999_500..4_499_500).contains(&times[3]), "{times:?}");
    assert_eq!((report.duration_s, report.requests), (30.0, 4));
    let late = Params {
        excerpt: Excerpt {
            from_minute: 1,
            ..params().excerpt
        },
        ..params()
    };
    assert!(make(&late).0[0].request.t_us < 1_500_000);
}

#[test]
fn equal_blocks_have_equal_text_of_equal_length() {
    let (made, _) = make(&params());
    let prompts: Vec<_> = made.iter().map(|m| prompt(&m.row)).collect();
    for (prompt, made) in prompts.iter().zip(&made) {
        assert_eq!(prompt.len() as u64, made.row.prompt_tokens * 4);
        assert_eq!(prompt.len() as u64, made.request.bytes);
        assert!(prompt.is_ascii());
    }
    assert_eq!(prompts[0][..4096], prompts[2][..4096]);
    assert_eq!(prompts[0][..2048], prompts[1][..2048]);
    assert_ne!(prompts[0][2048..4096], prompts[1][2048..4096]);
    assert_eq!(made[2].row.output_tokens, 30);
}

#[test]
fn a_sample_keeps_whole_sessions_at_their_times() {
    let (all, _) = make(&params());
    let sampled = (0..50).find_map(|seed| {
        let params = Params {
            sample: 0.5,
            seed,
            ..params()
        };
        let made = convert(TRACE.as_bytes(), &params).ok()?.0;
        (made.len() == 3 && made[0].request.key == "1").then_some((seed, made))
    });
    let (seed, made) = sampled.unwrap();
    let times = |made: &[Made], key: &str| -> Vec<u64> {
        let of = made.iter().filter(|m| m.request.key == key);
        of.map(|m| m.request.t_us).collect()
    };
    let whole = convert(TRACE.as_bytes(), &Params { seed, ..params() })
        .unwrap()
        .0;
    assert_eq!(times(&made, "1"), times(&whole, "1"));
    assert_eq!(times(&all, "1").len(), 2);
}

#[test]
fn sessions_are_important_as_a_whole_and_nothing_else_changes() {
    let priorities = |made: &[Made]| -> Vec<String> {
        made.iter().map(|m| m.request.priority.clone()).collect()
    };
    let (plain, _) = make(&params());
    assert_eq!(priorities(&plain), ["low"; 4]);
    let shared = |seed| {
        let params = Params {
            high_share: 0.5,
            seed,
            ..params()
        };
        make(&params).0
    };
    let mut made = (0..50).map(shared);
    let mut made = made
        .find(|made| priorities(made) == ["high", "low", "high", "low"])
        .unwrap();
    for made in &mut made {
        made.request.priority = "low".to_owned();
    }
    let same = |made: &[Made]| -> Vec<Row> { made.iter().map(|m| m.row.clone()).collect() };
    assert_eq!(same(&made), same(&plain));
}

#[test]
fn prompts_of_unknown_blocks_have_nothing_in_common() {
    let trace = "t_ms,keys,cost,size,cls\n0,7,1,512,\n0,,1,1024,conv\n5,,2,600,conv\n";
    let params = Params {
        clock: Duration::ZERO,
        ..params()
    };
    let (made, report) = convert(trace.as_bytes(), &params).unwrap();
    let blocks: Vec<_> = made.iter().map(|m| m.row.blocks.clone()).collect();
    assert_eq!(blocks, [vec![7], vec![8, 9], vec![10, 11]]);
    assert_eq!((report.findable_share, report.returning_share), (0.0, 0.0));
    let times: Vec<_> = made.iter().map(|m| m.request.t_us).collect();
    assert_eq!(times, [0, 0, 2500]);
}

#[test]
fn every_error_has_line_field_and_reason() {
    let header = "t_ms,keys,cost,size,cls\n";
    for (rows, expected) in [
        ("x,0,1,1,\n", "trace: line 2: t_ms: \"x\" is not a whole"),
        (
            "0,0;a,1,1000,\n",
            "trace: line 2: keys: \"a\" is not the number of a block",
        ),
        ("0,0;,1,1000,\n", "trace: line 2: keys: \"\" is not"),
        (
            "0,0;1,1,512,\n",
            "trace: line 2: size: 512 tokens are 1 blocks, not the 2 of keys",
        ),
        ("0,0,99000000,5,\n", "trace: line 2: cost: is more than"),
        ("0,0,1\n", "trace: line 2: line: has 3 fields"),
        ("9,0,1,5,\n0,0,1,5,\n", "trace: line 3: t_ms: 0 is before 9"),
        ("60000,0,1,5,\n", "no request in minutes 0 to 1"),
    ] {
        let error = convert(format!("{header}{rows}").as_bytes(), &params()).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{rows:?}: {error}");
    }
}

proptest! {
    #[test]
    fn what_is_made_can_be_read_again_and_is_the_same_each_time(
        seed: u64, speed_up in 0.1f64..100.0, minutes in 1u64..3,
    ) {
        let excerpt = Excerpt { speed_up, minutes, ..params().excerpt };
        let params = Params { seed, excerpt, ..params() };
        let (made, report) = make(&params);
        prop_assert_eq!(&made, &make(&params).0);
        prop_assert_eq!(report.requests, made.len());
        let requests: Vec<_> = made.into_iter().map(|m| m.request).collect();
        let mut text = Vec::new();
        workload::write(&requests, &mut text).unwrap();
        prop_assert_eq!(workload::read(text.as_slice()).unwrap(), requests);
    }
}
