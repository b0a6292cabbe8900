// SPDX-License-Identifier: Apache-2.0
//! A host that fails what it is sent, at once or by silence, and how it comes back.

use weir_harness::{A, B, C, Chosen, Proxy, RULES, ask, busy, milliseconds, request, table, up};
use weir_tables::v1;
use weir_testkit::HttpStream;

/// Envoy's flag for a host that took too long.
const TIME_OUT: u64 = 0x4;

/// An idle host, and two that look busy.
fn tempting() -> v1::HostTable {
    table(1, vec![busy(A, 0, 0), busy(B, 10, 0), busy(C, 10, 0)])
}

/// Sends so many requests, each over before the next: those to [`A`] are answered like this, and counted.
fn asked(proxy: &Proxy, count: u32, answer: &[(&str, &str)]) -> u32 {
    let mut asked = 0;
    for _ in 0..count {
        let sent = request(proxy.worker(), &[]);
        let first = sent.first();
        if first == A {
            asked += 1;
            sent.answer(A, answer);
        } else {
            sent.answer(&first, &[(":status", "200")]);
        }
        sent.finish().unwrap();
    }
    asked
}

#[test]
fn a_host_that_fails_at_once_is_asked_five_times_and_then_once_in_twice_the_time() {
    for answer in [
        &[(":status", "500")][..],
        // Its own Envoy, whose application is gone.
        &[(":status", "503")],
        &[(":status", "200"), ("grpc-status", "14")],
    ] {
        let proxy = Proxy::with(RULES, &[tempting()]);
        assert_eq!(asked(&proxy, 100, answer), 5, "{answer:?}");
        for wait in [1, 2, 4, 8] {
            proxy.run(milliseconds(wait * 1000 - 100));
            assert_eq!(asked(&proxy, 100, answer), 0, "{answer:?} before {wait} s");
            proxy.run(milliseconds(100));
            assert_eq!(asked(&proxy, 100, answer), 1, "{answer:?} after {wait} s");
        }
    }
}

#[test]
fn a_host_that_refuses_what_is_too_much_is_not_taken_for_one_that_fails() {
    for answer in [
        &[(":status", "429")][..],
        &[(":status", "503"), ("retry-after", "1")],
        &[(":status", "503"), ("x-envoy-overloaded", "true")],
        &[(":status", "200"), ("grpc-status", "8")],
        &[(":status", "404")],
    ] {
        let proxy = Proxy::with(RULES, &[table(1, vec![busy(A, 0, 0), busy(B, 500, 0)])]);
        assert_eq!(asked(&proxy, 100, answer), 100, "{answer:?}");
    }
}

#[test]
fn a_host_on_trial_gets_one_request_at_a_time_until_three_went_well() {
    let proxy = Proxy::with(RULES, &[table(1, vec![busy(A, 0, 0), busy(B, 500, 0)])]);
    asked(&proxy, 10, &[(":status", "500")]);
    proxy.run(milliseconds(1000));
    for _ in 0..3 {
        let trial = request(proxy.worker(), &[]);
        assert_eq!(trial.destination(), [A, B]);
        let meanwhile = request(proxy.worker(), &[]);
        assert_eq!(meanwhile.destination(), [B, A], "while one is on its way");
        meanwhile.answered_by(B);
        trial.answered_by(A);
    }
    let open: Vec<_> = (0..3).map(|_| request(proxy.worker(), &[])).collect();
    assert!(open.iter().all(|request| request.first() == A));
}

#[test]
fn a_caller_that_leaves_ends_a_trial_without_a_verdict() {
    let proxy = Proxy::with(RULES, &[table(1, vec![busy(A, 0, 0), busy(B, 500, 0)])]);
    asked(&proxy, 10, &[(":status", "500")]);
    proxy.run(milliseconds(1000));
    for _ in 0..5 {
        let trial = request(proxy.worker(), &[]);
        assert_eq!(trial.first(), A);
        trial.finish().unwrap();
    }
    assert_eq!(asked(&proxy, 10, &[(":status", "500")]), 1);
}

#[test]
fn a_host_that_does_not_answer_in_time_comes_last_although_it_has_the_key() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A, B, C]))]);
    let first = ask(proxy.worker(), "key");
    let silent = first.first();
    first.answered_by(&silent);
    // Of one key three are enough for its requests to go elsewhere.
    for _ in 0..3 {
        let request = ask(proxy.worker(), "key");
        assert_eq!(request.first(), silent, "which has the key");
        request.set_property(&["response", "flags"], TIME_OUT.to_le_bytes());
        request.response([(":status", "504")]).unwrap();
        request.finish().unwrap();
    }
    let next = ask(proxy.worker(), "key");
    assert_eq!(next.destination().last(), Some(&silent));
}

#[test]
fn where_every_host_fails_none_is_out_for_more_than_a_moment() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A, B, C]))]);
    let mut counts = [0; 3];
    let mut last = [0; 3];
    // Five seconds: a host that is out by an unlucky beginning is back after one.
    for number in 0..500 {
        let sent = request(proxy.worker(), &[]);
        let first = sent.first();
        let host = [A, B, C].iter().position(|host| *host == first).unwrap();
        counts[host] += 1;
        // One second, and a moment for the trial.
        let silence = number - std::mem::replace(&mut last[host], number);
        assert!(silence < 130, "{first} got nothing for {silence} requests");
        sent.answer(&first, &[(":status", "500")]);
        sent.finish().unwrap();
        proxy.run(milliseconds(10));
    }
    assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
}

/// How often a host came to be out.
fn outs(proxy: &Proxy) -> u64 {
    proxy.host.metrics().counter("weir_failing_hosts_total")
}

/// How a request ends that no host can serve.
#[derive(Clone, Copy, Debug)]
enum End {
    Answered(&'static str),
    /// Envoy's own answer, with this flag.
    Given(u64),
}

/// Ends a request at this host, the last one of those that Envoy tried.
fn ends(request: &HttpStream, host: &str, end: End) {
    match end {
        End::Answered(status) => request.answer(host, &[(":status", status)]),
        End::Given(flag) => {
            request.set_property(&["response", "flags"], flag.to_le_bytes());
            request.answer(host, &[(":status", "503")]);
        }
    }
    request.finish().unwrap();
}

const ENDS: [End; 4] = [
    End::Answered("500"),
    End::Given(TIME_OUT),
    // Reset by the host, and connection ended.
    End::Given(0x10),
    End::Given(0x40),
];

#[test]
fn a_poison_key_takes_no_host_out_whether_it_is_tried_once_or_again() {
    for end in ENDS {
        for is_retried in [false, true] {
            let proxy = Proxy::with(RULES, &[table(1, up(&[A, B, C]))]);
            for number in 0..200 {
                let poison = ask(proxy.worker(), "poison");
                let named = poison.destination();
                let last = if is_retried { &named[1] } else { &named[0] };
                ends(&poison, last, end);
                let good = ask(proxy.worker(), &format!("good-{}", number % 7));
                let first = good.first();
                good.answered_by(&first);
                proxy.run(milliseconds(50));
            }
            assert_eq!(outs(&proxy), 0, "{end:?}, retried: {is_retried}");
        }
    }
}

#[test]
fn a_time_out_that_the_caller_chose_takes_nobody_out_and_one_of_the_route_does() {
    for (header, expected) in [
        ("x-envoy-upstream-rq-timeout-ms", 0),
        ("x-envoy-upstream-rq-per-try-timeout-ms", 0),
        ("grpc-timeout", 0),
        ("x-other", 1),
    ] {
        for end in [End::Given(TIME_OUT), End::Answered("504")] {
            let proxy = Proxy::with(RULES, &[tempting()]);
            for number in 0..20 {
                let key = format!("key-{number}");
                let late = request(proxy.worker(), &[("x-weir-key", &key), (header, "5")]);
                let first = late.first();
                match first == A {
                    true => ends(&late, A, end),
                    false => late.answered_by(&first),
                }
            }
            assert_eq!(outs(&proxy), expected, "{header}, {end:?}");
        }
    }
}
