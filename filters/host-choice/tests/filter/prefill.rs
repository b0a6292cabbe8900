// SPDX-License-Identifier: Apache-2.0
//! Hosts that read prompts for those that write the answers.

use weir_tables::v1;
use weir_testkit::HttpStream;

use weir_harness::{A, B, C, Chosen, Proxy, SHARING, TICKS, resource, table, up};

/// A and B write, C and D read what those lack more than sixteen blocks of.
const D: &str = "10.0.0.4:80";
const PREFILL: &str = r#"{"clusters":{"rules":{
    "key":{"prompt":{"block_bytes":64}},"prefill":{"table":"readers","above_bytes":"1KiB"}}}}"#;
const HEADER: &str = "x-prefiller-host-port";

/// A table of hosts that serve prompts.
fn prompts(cluster: &str, addresses: &[&str]) -> v1::HostTable {
    let mut table = table(1, up(addresses));
    table.cluster = cluster.into();
    let policy = table.policy.as_mut().unwrap();
    policy.selection = v1::Selection::Estimate.into();
    policy.serves = v1::Serves::Prompts.into();
    table
}

fn proxy_of(configuration: &str, tables: &[v1::HostTable]) -> Proxy {
    let proxy = Proxy::showing_bodies(configuration);
    proxy.run(TICKS);
    for table in tables {
        proxy.ads().accepts(&[resource(table)]);
    }
    proxy.run(TICKS);
    proxy
}

fn proxy(readers: &[&str]) -> Proxy {
    let tables = [prompts("rules", &[A, B]), prompts("readers", readers)];
    proxy_of(PREFILL, &tables)
}

/// A prompt of so many blocks, which its caller would have read elsewhere.
fn ask(proxy: &Proxy, about: &str, blocks: usize) -> HttpStream {
    let headers = [
        (":path", "/v1/completions"),
        (":method", "POST"),
        (":authority", "rules"),
        ("content-type", "application/json"),
        (HEADER, "192.0.2.1:9"),
    ];
    let request = proxy.worker().request_open(headers).unwrap();
    let prompt = format!("{about} is what is asked. ").repeat(blocks * 64);
    let prompt = &prompt[..blocks * 64];
    let body = format!(r#"{{"model":"m","prompt":"{prompt}"}}"#);
    request.body(body, true).unwrap();
    request
}

/// The host that is named to read.
fn reader(request: &HttpStream) -> Option<String> {
    let all = request.request_headers().all(HEADER);
    assert!(all.len() <= 1, "{all:?}");
    all.first().cloned()
}

fn counted(proxy: &Proxy, end: &str) -> u64 {
    let name = format!("weir_prefills_total;.;reason=.={end};.;");
    proxy.host.metrics().counter(&name)
}

#[test]
fn a_long_prompt_is_read_by_one_host_and_answered_by_another() {
    let proxy = proxy(&[C]);
    let request = ask(&proxy, "rivers", 17);
    assert!([A, B].contains(&&*request.first()), "{}", request.first());
    assert_eq!(reader(&request).as_deref(), Some(C));
    assert_eq!((counted(&proxy, "named"), counted(&proxy, "short")), (1, 0));
}

#[test]
fn a_prompt_that_is_not_long_is_read_where_it_is_answered() {
    let proxy = proxy(&[C]);
    let request = ask(&proxy, "rivers", 16);
    assert!(!request.destination().is_empty());
    assert_eq!(reader(&request), None, "the caller's is removed");
    assert_eq!((counted(&proxy, "named"), counted(&proxy, "short")), (0, 1));
}

#[test]
fn a_prompt_that_its_host_has_nearly_all_of_is_read_there() {
    let proxy = proxy(&[C]);
    let first = ask(&proxy, "rivers", 40);
    assert_eq!(reader(&first).as_deref(), Some(C));
    let writer = first.first();
    first.answered_by(&writer);
    let second = ask(&proxy, "rivers", 56);
    assert_eq!((second.first(), reader(&second)), (writer.clone(), None));
    second.answered_by(&writer);
    assert_eq!(counted(&proxy, "cached"), 1);
    // By 24 new ones.
    let third = ask(&proxy, "rivers", 80);
    assert_eq!((third.first(), reader(&third)), (writer, Some(C.into())));
}

#[test]
fn where_no_host_is_known_to_read_the_one_that_answers_does() {
    let down = |address| weir_harness::host(address, v1::HostState::Down);
    let mut none_up = prompts("readers", &[]);
    none_up.hosts = vec![down(C), down(D)];
    for more in [None, Some(none_up)] {
        let tables: Vec<_> = [prompts("rules", &[A, B])]
            .into_iter()
            .chain(more)
            .collect();
        let proxy = proxy_of(PREFILL, &tables);
        let request = ask(&proxy, "rivers", 40);
        assert!(!request.destination().is_empty());
        assert_eq!(reader(&request), None);
        assert_eq!(counted(&proxy, "no_host"), 1);
    }
}

#[test]
fn what_a_caller_says_of_reading_goes_nowhere_also_where_envoy_chooses() {
    let off = PREFILL.replace(r#""key""#, r#""enabled":false,"key""#);
    for (configuration, tables) in [
        (PREFILL.to_owned(), Vec::new()),
        (off, vec![prompts("rules", &[A]), prompts("readers", &[C])]),
    ] {
        let proxy = proxy_of(&configuration, &tables);
        let request = ask(&proxy, "rivers", 40);
        assert_eq!(request.destination(), Vec::<String>::new());
        assert_eq!(reader(&request), None, "{configuration}");
        assert_eq!(counted(&proxy, "named"), 0);
    }
}

#[test]
fn the_next_prompt_goes_to_the_host_that_has_less_to_read() {
    let proxy = proxy(&[C, D]);
    let first = ask(&proxy, "rivers", 80);
    let second = ask(&proxy, "lakes", 20);
    let other = |host: String| if host == C { D } else { C };
    let (long, short) = (reader(&first).unwrap(), reader(&second).unwrap());
    assert_eq!(short, other(long.clone()));
    let third = ask(&proxy, "seas", 20);
    assert_eq!(reader(&third), Some(short), "twice 20 are less than 80");
    // Whoever read the beginning reads on, where all have been read.
    for request in [first, second, third] {
        let writer = request.first();
        request.answered_by(&writer);
    }
    let next = ask(&proxy, "rivers", 136);
    assert_eq!(reader(&next), Some(long), "it has 80 of them");
}

#[test]
fn a_prompt_counts_where_it_is_read_until_its_answer_begins_or_it_ends() {
    let proxy = proxy(&[C]);
    let open: Vec<_> = ["rivers", "lakes", "seas"]
        .map(|about| ask(&proxy, about, 40))
        .into();
    proxy.run(SHARING);
    let writing = || proxy.in_flight(A) + proxy.in_flight(B);
    assert_eq!((proxy.in_flight(C), writing()), (3, 3));
    // The answer begins.
    open[0].answer(&open[0].first(), &[(":status", "200")]);
    proxy.run(SHARING);
    assert_eq!((proxy.in_flight(C), writing()), (2, 3));
    // The caller leaves.
    open[1].finish().unwrap();
    proxy.run(SHARING);
    assert_eq!((proxy.in_flight(C), writing()), (1, 2));
    // Envoy answers itself: the connection was reset.
    open[2].set_property(&["response", "flags"], 0x10_u64.to_le_bytes());
    open[2].response([(":status", "503")]).unwrap();
    open[2].finish().unwrap();
    open[0].finish().unwrap();
    proxy.run(SHARING);
    assert_eq!((proxy.in_flight(C), writing()), (0, 0));
    let records = proxy.records().into_iter();
    let clusters = records.flat_map(|record| record.clusters);
    let readers = clusters.filter(|record| record.cluster == "readers");
    let ends = readers.flat_map(|record| record.hosts);
    let ends = ends.map(|host| (host.assigned, host.ok, host.no_answer));
    assert_eq!(ends.collect::<Vec<_>>(), [(3, 1, 2)], "once each");
}
