// SPDX-License-Identifier: Apache-2.0
use discovery::DeltaDiscoveryRequest;
use envoy_types::pb::envoy::config::core::v3::BuildVersion;
use envoy_types::pb::envoy::r#type::v3::SemanticVersion;
use tonic::Code;

use weir_fleet::snapshot::Resource;

use super::*;

/// More than a test asks for.
const ROOM: usize = 1 << 30;

const HOSTS: &str = "type.googleapis.com/weir.v1.HostTable";

fn request(type_url: &str, names: &[&str]) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: Some(Node {
            id: "proxy".to_owned(),
            ..Default::default()
        }),
        type_url: type_url.to_owned(),
        resource_names_subscribe: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Default::default()
    }
}

#[test]
fn a_name_that_would_break_a_line_of_the_log_is_refused() {
    for id in ["", "a\nINFO all is well", "\u{1b}[2J"] {
        let mut first = request(HOSTS, &[]);
        first.node.as_mut().unwrap().id = id.to_owned();
        assert!(Session::open(&first).is_err(), "{id:?}");
        assert!(crate::newest::checked("proxy", id).is_err(), "{id:?}");
    }
}

fn snapshot(types: &[(&'static str, &[(&str, &str)])]) -> Snapshot {
    let resource = |(name, version): &(&str, &str)| {
        (
            (*name).to_owned(),
            Resource {
                version: (*version).into(),
                body: Default::default(),
            },
        )
    };
    let of_type = |resources: &[_]| Arc::new(resources.iter().map(resource).collect());
    Snapshot {
        resources: types
            .iter()
            .map(|(url, all)| (*url, of_type(all)))
            .collect(),
        ..Default::default()
    }
}

fn open(requests: &[DeltaDiscoveryRequest]) -> Session {
    let mut session = Session::open(&requests[0]).unwrap();
    for request in requests {
        session.on_request(request, ROOM).unwrap();
    }
    session
}

/// All that is due, and its acceptance, until nothing is.
fn drain(session: &mut Session, snapshot: &Snapshot) -> Vec<String> {
    let mut said = Vec::new();
    let mut waiting = Vec::new();
    loop {
        while let Some(response) = session.on_snapshot(snapshot) {
            let kind = response.type_url.rsplit('.').next().unwrap();
            said.extend(
                response
                    .delta
                    .resources
                    .iter()
                    .map(|(name, _)| format!("{kind} {name}")),
            );
            said.extend(
                response
                    .delta
                    .removed
                    .iter()
                    .map(|name| format!("-{kind} {name}")),
            );
            waiting.push(DeltaDiscoveryRequest {
                type_url: response.type_url.to_owned(),
                response_nonce: response.delta.nonce.to_string(),
                ..Default::default()
            });
        }
        if waiting.is_empty() {
            return said;
        }
        said.push("|".to_owned());
        for answer in waiting.drain(..) {
            assert!(session.on_request(&answer, ROOM).unwrap().is_some());
        }
    }
}

#[test]
fn a_stream_must_say_whose_it_is_and_of_what_it_speaks() {
    let nobody = DeltaDiscoveryRequest {
        type_url: HOSTS.to_owned(),
        ..Default::default()
    };
    assert_eq!(
        Status::from(Session::open(&nobody).unwrap_err()).code(),
        Code::InvalidArgument
    );
    let mut session = Session::open(&request(HOSTS, &[])).unwrap();
    assert!(session.weir);
    for wrong in ["", types::CLUSTER] {
        let error = session.on_request(&request(wrong, &[]), ROOM).unwrap_err();
        assert_eq!(Status::from(error).code(), Code::InvalidArgument);
    }
    assert!(!Session::open(&request(types::CLUSTER, &[])).unwrap().weir);
}

#[test]
fn a_stream_has_a_limited_number_of_types() {
    let mut session = Session::open(&request(types::CLUSTER, &[])).unwrap();
    for i in 0..MAX_TYPES {
        session
            .on_request(&request(&format!("t{i}"), &[]), ROOM)
            .unwrap();
    }
    let error = session
        .on_request(&request("one more", &[]), ROOM)
        .unwrap_err();
    assert_eq!(Status::from(error).code(), Code::ResourceExhausted);
}

#[test]
fn the_types_of_a_stream_share_its_room() {
    let mut session = Session::open(&request(types::CLUSTER, &[])).unwrap();
    let names: Vec<String> = (0..100).map(|i| i.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    session.on_request(&request("t0", &names), ROOM).unwrap();
    let room = 3 * session.bytes();
    let mut taken = 1;
    let refused = loop {
        match session.on_request(&request(&format!("t{taken}"), &names), room) {
            Ok(_) => taken += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!((taken, refused), (3, Refusal::Full(Full::StreamBytes)));
    let long = "t".repeat(MAX_TYPE_URL_BYTES + 1);
    let refused = session.on_request(&request(&long, &[]), room);
    assert!(matches!(refused, Err(Refusal::Invalid(_))));
}

#[test]
fn a_type_that_is_not_known_yet_takes_nothing_away() {
    let mut resuming = request(types::CLUSTER, &[]);
    resuming
        .initial_resource_versions
        .insert("a".to_owned(), "1".to_owned());
    let mut session = open(&[resuming]);
    assert!(drain(&mut session, &snapshot(&[])).is_empty());
    assert_eq!(
        drain(&mut session, &snapshot(&[(types::CLUSTER, &[])])),
        ["-Cluster a", "|"]
    );
}

#[test]
fn who_asks_for_a_table_that_is_not_known_yet_hears_that_it_was_heard() {
    for versions in [&[][..], &[("a", "1")]] {
        let mut first = request(HOST_TABLE_TYPE, &["a"]);
        let versions = versions
            .iter()
            .map(|(name, version)| ((*name).to_owned(), (*version).to_owned()));
        first.initial_resource_versions = versions.collect();
        let mut session = open(&[first]);
        let mut snapshot = snapshot(&[(HOST_TABLE_TYPE, &[])]);
        let tables = snapshot.resources.get_mut(HOST_TABLE_TYPE).unwrap();
        Arc::make_mut(tables).insert("a".to_owned(), Resource::unknown());
        assert_eq!(
            drain(&mut session, &snapshot).len(),
            1,
            "an answer with nothing in it"
        );
        assert!(drain(&mut session, &snapshot).is_empty());
    }
}

#[test]
fn clusters_come_before_what_routes_to_them_and_leave_after() {
    let all = [
        types::EXTENSION,
        types::ROUTE,
        types::LISTENER,
        types::CLUSTER,
    ];
    let mut requests = all.map(|type_url| request(type_url, &[])).to_vec();
    requests.push(request(types::ENDPOINTS, &["a", "b"]));
    let mut session = open(&requests);
    let one = snapshot(&[
        (types::CLUSTER, &[("a", "1")]),
        (types::ENDPOINTS, &[("a", "1")]),
        (types::LISTENER, &[("l", "1")]),
        (types::ROUTE, &[("l", "1")]),
        (types::EXTENSION, &[("weir", "1")]),
    ]);
    assert_eq!(
        drain(&mut session, &one),
        [
            "Cluster a",
            "ClusterLoadAssignment a",
            "-ClusterLoadAssignment b",
            "TypedExtensionConfig weir",
            "|",
            "Listener l",
            "RouteConfiguration l",
            "|",
        ]
    );
    let other = snapshot(&[
        (types::CLUSTER, &[("b", "1")]),
        (types::ENDPOINTS, &[("b", "1")]),
        (types::LISTENER, &[("l", "1")]),
        (types::ROUTE, &[("l", "2")]),
        (types::EXTENSION, &[("weir", "1")]),
    ]);
    assert_eq!(
        drain(&mut session, &other),
        [
            "Cluster b",
            "ClusterLoadAssignment b",
            "|",
            "RouteConfiguration l",
            "|",
            "-Cluster a",
            "-ClusterLoadAssignment a",
            "|",
        ]
    );
}

#[test]
fn types_do_not_wait_for_each_other_on_the_filters_stream() {
    let shards = "type.googleapis.com/weir.v1.CacheShard";
    let mut session = open(&[request(HOSTS, &["rules"]), request(shards, &["rules/1/0"])]);
    let both = snapshot(&[(HOSTS, &[("rules", "1")]), (shards, &[("rules/1/0", "1")])]);
    assert!(session.on_snapshot(&both).is_some());
    assert!(session.on_snapshot(&both).is_some());
    assert!(session.on_snapshot(&both).is_none());
}

#[test]
fn a_version_is_kept_short_and_in_plain_characters() {
    let told = |version| {
        let mut first = request(HOSTS, &[]);
        first.node.as_mut().unwrap().user_agent_version_type = version;
        let session = Session::open(&first).unwrap();
        session.version.map(|version| version.to_string())
    };
    let text = |text: &str| Some(UserAgentVersionType::UserAgentVersion(text.to_owned()));
    assert_eq!(told(None), None);
    assert_eq!(told(text("")), None, "a filter of before");
    assert_eq!(told(text("0.1.0")).unwrap(), "0.1.0");
    assert_eq!(told(text("1\u{1b}[2J\n\u{202e}")).unwrap(), "1?[2J??");
    assert_eq!(told(text(&"x".repeat(9_000))).unwrap().len(), 64);
    let number = SemanticVersion {
        major_number: 1,
        minor_number: 40,
        patch: 2,
    };
    let build = BuildVersion {
        version: Some(number),
        metadata: None,
    };
    let envoy = UserAgentVersionType::UserAgentBuildVersion(build);
    assert_eq!(told(Some(envoy)).unwrap(), "1.40.2");
}

#[test]
fn the_version_that_a_filter_tells_is_where_envoys_own_messages_have_it() {
    use prost::Message;
    let told = weir_tables::discovery::DeltaDiscoveryRequest {
        node: Some(weir_tables::discovery::Node {
            id: "proxy".to_owned(),
            user_agent_version: "0.1.0".to_owned(),
            ..Default::default()
        }),
        type_url: HOSTS.to_owned(),
        ..Default::default()
    };
    let first = DeltaDiscoveryRequest::decode(&*told.encode_to_vec()).unwrap();
    let session = Session::open(&first).unwrap();
    assert_eq!(session.version.as_deref(), Some("0.1.0"));
}
