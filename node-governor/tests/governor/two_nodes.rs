// SPDX-License-Identifier: Apache-2.0
//! One plan on two nodes, each with a governor of its own: document 004's, part 3, and a job that waits for one of the
//! other node.
//!
//! Both nodes are this machine, of which they have one core for jobs; the jobs are shells.

use std::fmt::Write as _;

use rustix::process::Signal;

use crate::processes::get;
use crate::shares::{JOB, Node};

const SHORT: &str = "echo begun >> DONE; echo ended >> DONE";
const FOUR: [(&str, &str); 2] = [("ferret", JOB), ("dedup", SHORT)];
const EIGHT: [(&str, &str); 4] = [
    ("freqmine", SHORT),
    ("blackscholes", SHORT),
    ("fft", "echo begun >> DONE; echo ended >> DONE; exit 3"),
    ("canneal", JOB),
];
/// Of the document, but for ferret before canneal.
const STEPS: [(&str, &str, &str); 6] = [
    ("ferret", "four", ""),
    ("dedup", "four", "ferret, fft"),
    ("freqmine", "eight", ""),
    ("blackscholes", "eight", "freqmine"),
    ("fft", "eight", "freqmine"),
    ("canneal", "eight", "blackscholes, ferret"),
];

/// The file that both nodes have but for `here` and what is the test's.
fn configure(node: &Node, here: &str, listen: &str, [four, eight]: [&str; 2]) {
    let mut plan = format!("static_plan:\n    node: {here}\n    nodes:\n");
    for (name, admin) in [("four", four), ("eight", eight)] {
        let node = format!("name: {name}, cores: 0-1, service: 0, url: 'http://{admin}'");
        writeln!(plan, "    - {{ {node} }}").unwrap();
    }
    writeln!(plan, "    steps:").unwrap();
    for (job, node, after) in STEPS {
        let step = format!("job: {job}, node: {node}, cores: 1, after: [{after}]");
        writeln!(plan, "    - {{ {step} }}").unwrap();
    }
    let jobs = node.yaml(&[&FOUR[..], &EIGHT[..]].concat());
    node.configure_as(&plan, &jobs, "tick: 10ms\n");
    let text = std::fs::read_to_string(node.path("g.yaml")).unwrap();
    let text = text.replace("'127.0.0.1:0'", &format!("'{listen}'"));
    std::fs::write(node.path("g.yaml"), text).unwrap();
}

/// Whether the other node's governor answers, and what is known of its job.
fn knows(node: &Node, job: &str) -> (bool, Option<bool>) {
    let state = node.state();
    let peer = &state["shares"]["peers"][0];
    (
        peer["answers"].as_bool().unwrap(),
        peer["jobs"][job].as_bool(),
    )
}

fn ticks(node: &Node) -> u64 {
    node.state()["ticks"].as_u64().unwrap()
}

fn once(node: &Node, jobs: &[(&str, &str)]) {
    for (job, _) in jobs {
        assert_eq!(node.done(job), ["begun", "ended"], "{job}");
    }
}

#[test]
fn a_job_waits_for_one_of_another_node_whose_governor_is_killed_meanwhile() {
    let Some(four) = Node::new(&FOUR) else { return };
    let Some(eight) = Node::new(&EIGHT) else {
        return;
    };
    // Any port at first, where nobody knows the other; each then stays where it is.
    let any_port = |node: &Node, here: &str| {
        configure(node, here, "127.0.0.1:0", ["127.0.0.1:9"; 2]);
        node.start().kill();
        node.admin()
    };
    let four_admin = any_port(&four, "four");
    let eight_admin = any_port(&eight, "eight");
    let admins = [&*four_admin, &*eight_admin];
    configure(&four, "four", admins[0], admins);
    configure(&eight, "eight", admins[1], admins);
    let at_eight = eight.start();
    eight.wait("the document's order", || {
        eight.done("blackscholes").len() == 2
    });
    let decided = ticks(&eight);
    eight.wait("some decisions", || ticks(&eight) > decided + 20);
    assert_eq!(
        eight.done("canneal"),
        [""; 0],
        "nobody has said anything of ferret"
    );
    let at_four = four.start();
    eight.wait("ferret to be known", || {
        knows(&eight, "ferret") == (true, Some(false))
    });
    // One that has failed there has ended, as here.
    four.wait("fft to be known", || {
        knows(&four, "fft") == (true, Some(true))
    });
    eight.wait("the document's order", || {
        eight.done("blackscholes").len() == 2
    });
    assert_eq!(four.done("ferret"), ["begun"]);

    at_four.kill();
    eight.wait("silence", || {
        knows(&eight, "ferret") == (false, Some(false))
    });
    let page = get(admins[1], "/metrics");
    assert!(
        page.contains("\nweir_governor_peer_answers{node=\"four\"} 0.0\n"),
        "{page}"
    );
    let log = std::fs::read_to_string(eight.path("governor.log")).unwrap();
    assert!(log.contains("another node's jobs are not known"), "{log}");
    four.may_end();
    four.wait("ferret", || four.done("ferret").len() == 2);
    assert_eq!(
        eight.done("canneal"),
        [""; 0],
        "nobody said that ferret has ended"
    );

    let at_four = four.start();
    eight.wait("canneal", || eight.done("canneal") == ["begun"]);
    four.wait("dedup", || four.done("dedup").len() == 2);

    // One that begins anew beside silence stops nothing that runs.
    at_four.kill();
    at_eight.kill();
    let mut at_eight = eight.start();
    eight.wait("silence", || knows(&eight, "ferret") == (false, None));
    assert!(!eight.is_frozen("canneal"));
    eight.may_end();
    eight.wait("canneal's end", || eight.done("canneal").len() == 2);
    let mut at_four = four.start();
    eight.wait("the end to be known", || {
        knows(&eight, "ferret") == (true, Some(true))
    });
    once(&four, &FOUR);
    once(&eight, &EIGHT);
    for governor in [&mut at_four, &mut at_eight] {
        governor.signal(Signal::TERM);
        assert_eq!(governor.code(), Some(0));
    }
}
