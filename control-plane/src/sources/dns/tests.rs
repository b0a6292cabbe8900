// SPDX-License-Identifier: Apache-2.0
//! The dialogue with a DNS server that does as each test wants, on a free port, by TCP.

use std::net::SocketAddr;
use std::time::Duration;

use hickory_resolver::proto::op::Message;
use hickory_resolver::proto::rr::rdata::{A, AAAA, CNAME, SRV};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::*;

fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}

fn record(of: &str, data: RData) -> Record {
    Record::from_rdata(name(of), 30, data)
}

fn v4(of: &str, last: u8) -> Record {
    record(of, RData::A(A::new(127, 0, 0, last)))
}

fn srv(priority: u16, port: u16, target: &str) -> Record {
    let service = SRV::new(priority, 7, port, name(target));
    record("_http._tcp.rules.example.", RData::SRV(service))
}

/// What is answered to a question for a name's records.
type Answers = fn(&str, RecordType, &mut Message);

/// A server, and what it is asked.
async fn server(answers: Answers) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, questions) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, answers, asked.clone()));
        }
    });
    (address, questions)
}

async fn serve(
    mut stream: TcpStream,
    answers: Answers,
    asked: mpsc::UnboundedSender<String>,
) -> std::io::Result<()> {
    loop {
        let mut bytes = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut bytes).await?;
        let mut message = Message::from_vec(&bytes).unwrap().into_response();
        let question = message.queries[0].clone();
        let (of, kind) = (question.name().to_ascii(), question.query_type());
        // Not every test wants to know.
        let _ = asked.send(format!("{of} {kind}"));
        message.additionals.clear();
        answers(&of, kind, &mut message);
        let bytes = message.to_vec().unwrap();
        stream.write_u16(bytes.len() as u16).await?;
        stream.write_all(&bytes).await?;
    }
}

fn settings(server: SocketAddr, name: &str, port: Option<u16>) -> Dns {
    Dns {
        name: name.into(),
        port,
        metrics_port: None,
        server: Some(server),
        interval: Duration::from_millis(1),
        timeout: Duration::from_secs(30),
    }
}

/// The addresses found, sorted.
async fn found(settings: &Dns) -> Result<Vec<String>, String> {
    let found = hosts(settings).await.map_err(|error| error.to_string())?;
    Ok(found.hosts.into_iter().map(|host| host.address).collect())
}

fn all(questions: &mut mpsc::UnboundedReceiver<String>) -> Vec<String> {
    let mut all = Vec::new();
    while let Ok(question) = questions.try_recv() {
        all.push(question);
    }
    all.sort();
    all
}

#[tokio::test]
async fn a_names_addresses_are_the_hosts_of_another_names_where_it_stands_for_that() {
    let (server, _) = server(|of, kind, message| {
        let alias = RData::CNAME(CNAME(name("others.example.")));
        match (of, kind) {
            ("rules.example.", RecordType::A) => {
                message.add_answers([v4(of, 2), v4(of, 1)]);
            }
            ("alias.example.", RecordType::A) => {
                message.add_answers([record(of, alias), v4("others.example.", 9)]);
            }
            _ => {}
        }
    })
    .await;
    let rules = settings(server, "rules.example", Some(80));
    assert_eq!(
        found(&rules).await.unwrap(),
        ["127.0.0.1:80", "127.0.0.2:80"]
    );
    let alias = settings(server, "alias.example.", Some(80));
    assert_eq!(found(&alias).await.unwrap(), ["127.0.0.9:80"]);
}

#[tokio::test]
async fn addresses_of_ipv6_count_where_there_are_none_of_ipv4() {
    let (server, mut questions) = server(|of, kind, message| {
        if of == "both.example." && kind == RecordType::A {
            message.add_answer(v4(of, 1));
        }
        if kind == RecordType::AAAA {
            let address = AAAA::new(0, 0, 0, 0, 0, 0, 0, 1);
            message.add_answer(record(of, RData::AAAA(address)));
        }
    })
    .await;
    let both = settings(server, "both.example", Some(80));
    assert_eq!(found(&both).await.unwrap(), ["127.0.0.1:80"]);
    assert_eq!(all(&mut questions), ["both.example. A"]);
    let newer = settings(server, "newer.example", Some(80));
    assert_eq!(found(&newer).await.unwrap(), ["[::1]:80"]);
}

#[tokio::test]
async fn services_of_the_least_priority_are_the_hosts_and_only_missing_addresses_are_asked_for() {
    let (server, mut questions) = server(|of, kind, message| match (of, kind) {
        ("_http._tcp.rules.example.", RecordType::SRV) => {
            message.add_answers([
                srv(2, 80, "spare.example."),
                srv(1, 81, "a.example."),
                srv(1, 82, "b.example."),
                srv(1, 83, "b.example."),
            ]);
            // One with both kinds is one host, and whose servers answer is none.
            let v6 = RData::AAAA(AAAA::new(0, 0, 0, 0, 0, 0, 0, 1));
            message.add_additionals([record("a.example.", v6), v4("a.example.", 1)]);
            message.add_additional(v4("ns.example.", 53));
        }
        ("b.example.", RecordType::A) => {
            message.add_answer(v4(of, 2));
            message.add_additional(v4("ns.example.", 53));
        }
        _ => {}
    })
    .await;
    let rules = settings(server, "_http._tcp.rules.example", None);
    let hosts = ["127.0.0.1:81", "127.0.0.2:82", "127.0.0.2:83"];
    assert_eq!(found(&rules).await.unwrap(), hosts);
    let asked = ["_http._tcp.rules.example. SRV", "b.example. A"];
    assert_eq!(all(&mut questions), asked);
}

#[tokio::test]
async fn an_answer_of_which_a_part_is_missing_is_none() {
    let (server, _) = server(|of, kind, message| match (of, kind) {
        ("_http._tcp.rules.example.", RecordType::SRV) => {
            message.add_answers([srv(1, 81, "a.example."), srv(1, 82, "b.example.")]);
            message.add_additional(v4("a.example.", 1));
        }
        _ => message.metadata.response_code = ResponseCode::ServFail,
    })
    .await;
    let rules = settings(server, "_http._tcp.rules.example", None);
    let error = found(&rules).await.unwrap_err();
    assert!(error.starts_with("bad_status: "), "{error}");
}

#[tokio::test]
async fn nobody_is_an_answer_and_no_answer_is_an_error() {
    let (there, _) = server(|of, _, message| match of {
        "gone.example." => message.metadata.response_code = ResponseCode::NXDomain,
        "broken.example." => message.metadata.response_code = ResponseCode::Refused,
        _ => {}
    })
    .await;
    for nobody in ["gone.example", "bare.example"] {
        let found = hosts(&settings(there, nobody, Some(80))).await.unwrap();
        let complaint = format!("{nobody:?} has no A or AAAA record");
        assert_eq!((found.hosts, found.complaints), (vec![], vec![complaint]));
    }
    let error = found(&settings(there, "broken.example", Some(80))).await;
    assert!(
        error
            .as_ref()
            .is_err_and(|error| error.starts_with("bad_status: ")),
        "{error:?}"
    );
    // Nobody listens there.
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let away = closed.local_addr().unwrap();
    drop(closed);
    let error = found(&settings(away, "rules.example", Some(80))).await;
    let refused = format!("refused: {away}: no server takes a connection by TCP");
    assert_eq!(error, Err(refused));
}

#[tokio::test]
async fn a_server_that_says_nothing_is_not_waited_for() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut settings = settings(silent.local_addr().unwrap(), "rules.example", Some(80));
    settings.timeout = Duration::from_millis(20);
    let error = found(&settings).await.unwrap_err();
    assert!(error.starts_with("timed_out: "), "{error}");
}

#[tokio::test]
async fn a_cluster_is_asked_for_again_and_again_until_nobody_listens() {
    let (server, _) = server(|of, kind, message| {
        if kind == RecordType::A {
            message.add_answer(v4(of, 1));
        }
    })
    .await;
    let settings = Arc::new(settings(server, "rules.example", Some(80)));
    let (sender, mut news) = mpsc::channel(1);
    let task = tokio::spawn(run("c".into(), settings.clone(), sender));
    for _ in 0..3 {
        let answered = news.recv().await.unwrap();
        assert!(answered.registry.is(&Registry::Dns(settings.clone())));
        assert!(matches!(answered.said, Said::Hosts(Ok(found)) if found.hosts.len() == 1));
    }
    drop(news);
    task.await.unwrap();
}

/// A failure is no answer: the next name of the list is another one's.
#[tokio::test]
async fn a_server_that_fails_for_the_first_name_of_the_search_list_is_not_asked_for_the_next() {
    let (server, mut questions) = server(|of, kind, message| match (of, kind) {
        ("rules.a.example.", RecordType::A) => {
            message.metadata.response_code = ResponseCode::ServFail
        }
        ("rules.a.example.", RecordType::AAAA) | ("rules.b.example.", _) => {
            message.add_answers([v4(of, 9)]);
        }
        _ => message.metadata.response_code = ResponseCode::NXDomain,
    })
    .await;
    let settings = settings(server, "rules", Some(80));
    let (config, options) = servers(&settings).unwrap();
    let search = vec![name("a.example."), name("b.example.")];
    let searched = ResolverConfig::from_parts(None, search, config.name_servers().to_vec());
    let names = names("rules", &searched, 1).unwrap();
    let of = |names: &[Name]| names.iter().map(Name::to_ascii).collect::<Vec<_>>();
    assert_eq!(
        of(&names),
        ["rules.a.example.", "rules.b.example.", "rules."]
    );
    let resolver = resolver(&config, options).unwrap();
    let asked = ask_for(&resolver, &names, &settings).await;
    assert!(asked.is_err(), "{asked:?}");
    assert!(
        all(&mut questions)
            .iter()
            .all(|asked| asked == "rules.a.example. A")
    );
    let rest = ask_for(&resolver, &names[1..], &settings).await.unwrap();
    assert_eq!(rest.hosts[0].address, "127.0.0.9:80");
}

#[test]
fn a_name_with_enough_dots_is_looked_for_as_it_is_first_and_a_whole_one_alone() {
    let search = vec![name("svc.example.")];
    let config = ResolverConfig::from_parts(None, search, Vec::new());
    let of = |written: &str, ndots| {
        let names = names(written, &config, ndots).unwrap();
        names.iter().map(Name::to_ascii).collect::<Vec<_>>()
    };
    assert_eq!(
        of("rules.shop", 1),
        ["rules.shop.", "rules.shop.svc.example."]
    );
    assert_eq!(
        of("rules.shop", 5),
        ["rules.shop.svc.example.", "rules.shop."]
    );
    assert_eq!(of("rules.shop.", 5), ["rules.shop."]);
}
