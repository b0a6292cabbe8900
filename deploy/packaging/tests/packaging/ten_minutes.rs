// SPDX-License-Identifier: Apache-2.0
//! The first page for operators: its commands, from the hosts to the end.

use std::fs;

use tempfile::TempDir;

use crate::Test;
use crate::guide;
use crate::needs::{self, ENVOY, FILTER, Need, PROGRAMS};

pub(crate) const TESTS: &[Test] = &[(
    "the_first_ten_minutes_are_as_their_page_says",
    &[ENVOY, FILTER, PROGRAMS, Need::UserNamespace],
    the_page_is_true,
)];

/// All that are played: what comes before them is downloaded and built.
const SECTIONS: [&str; 8] = [
    "2. Hosts",
    "3. weir-control",
    "4. Envoy",
    "5. The first chosen request",
    "6. See that it works",
    "7. Try it first, on part of the keys",
    "8. Turn it off",
    "9. Stop",
];
/// Where the page has its files.
const PLACE: &str = "/tmp/weir";

fn the_page_is_true() {
    let folder = TempDir::new().unwrap();
    let [clone, place, programs] = guide::folders(&folder, ["clone", "weir", "bin"]);
    let page = fs::read_to_string(needs::root().join("envoy-config/TEN_MINUTES.md")).unwrap();
    // What each section says is behind its name.
    let script: String = SECTIONS
        .map(|section| format!("echo '== {section}'\n{}", guide::blocks(&page, section)))
        .concat();
    let script = script.replace(PLACE, place.to_str().unwrap());
    // What takes effect within a second on a reader's machine takes longer beside other tests.
    let script = script.replace("sleep 3", "sleep 8");
    guide::clone(&clone, &script, &["weir-control", "weirctl"]);

    let said = guide::play(&script, &clone, &programs);
    for (section, expected) in [
        ("2. Hosts", "weir_host_cores 4"),
        ("3. weir-control", "ok: 1 cluster, 3 hosts"),
        ("4. Envoy", "weir_filter_connected"),
        ("5. The first", "x-weir-reason: not_cached"),
        ("5. The first", "_cached\r\nx-weir-host: 127.0.0.1:900"),
        ("6. See", "weir_decisions_total"),
        ("6. See", "every link holds"),
        ("6. See", "30 200"),
        ("7. Try", "web: mode shadow"),
        ("7. Try", "next 127.0.0.1:900"),
        ("8. Turn", "\n0\n"),
    ] {
        let of_section = said.split("== ").find(|said| said.starts_with(section));
        let of_section = of_section.unwrap_or_else(|| panic!("{section}:\n{said}"));
        assert!(of_section.contains(expected), "{expected}:\n{said}");
    }
    println!("{said}");
}
