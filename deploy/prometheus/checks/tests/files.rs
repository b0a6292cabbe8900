// SPDX-License-Identifier: Apache-2.0
//! What Prometheus' own promtool says of the files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use weir_dashboard_checks::deploy;

/// What promtool says, if it is there and agrees.
fn promtool(arguments: &[&str], folder: &std::path::Path) {
    let Some(program) = weir_needs::provided_or_skip("WEIR_PROMTOOL") else {
        return;
    };
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "promtool {arguments:?}:\n{said}");
}

fn folder() -> PathBuf {
    deploy().join("prometheus")
}

#[test]
fn promtool_takes_the_rules_and_the_configuration() {
    promtool(&["check", "rules", "rules/weir.yml"], &folder());
    promtool(&["check", "config", "prometheus.yml"], &folder());
}

#[test]
fn alerts_fire_when_they_should_and_else_not() {
    promtool(&["test", "rules", "rules/weir_test.yml"], &folder());
}

/// Debian builds Prometheus without Consul's discovery. So its targets come from a file here, and all else is checked.
#[test]
fn promtool_takes_the_configuration_for_consul_but_for_its_discovery() {
    let text = std::fs::read_to_string(folder().join("prometheus-consul.yml")).unwrap();
    let mut written = String::new();
    let mut services = 0;
    for line in text.lines() {
        let line = match line.trim() {
            "consul_sd_configs:" => "    file_sd_configs:".to_owned(),
            "- server: 127.0.0.1:8500" => "      - files: [targets.yml]".to_owned(),
            service if service.starts_with("services: [") => {
                services += 1;
                continue;
            }
            "- rules/weir.yml" => format!("  - {}", folder().join("rules/weir.yml").display()),
            _ => line.to_owned(),
        };
        written.push_str(&line);
        written.push('\n');
    }
    assert_eq!(services, 4, "each job names its service");
    let temporary = tempfile::tempdir().unwrap();
    std::fs::write(temporary.path().join("prometheus.yml"), written).unwrap();
    std::fs::write(temporary.path().join("targets.yml"), "[]\n").unwrap();
    promtool(&["check", "config", "prometheus.yml"], temporary.path());
}

#[test]
fn every_alert_says_what_it_means_and_what_to_do() {
    let rules = std::fs::read_to_string(folder().join("rules/weir.yml")).unwrap();
    let alerts: Vec<&str> = rules.split("      - alert: ").skip(1).collect();
    assert!(alerts.len() > 25);
    for alert in alerts {
        for part in [
            "\n        labels: { severity: ",
            "\n          summary: ",
            "\n          action: ",
            "\n          runbook: ",
        ] {
            assert_eq!(alert.matches(part).count(), 1, "{part} of\n{alert}");
        }
    }
}

/// What a section of a runbook has, beside its commands.
const PARTS: [&str; 4] = ["Means", "Users feel", "Mend", "Ignore when"];

/// Each section of the runbooks, by the link that an alert has to it.
fn runbooks() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder().join("runbooks")).unwrap() {
        let path = entry.unwrap().path();
        let page = path.file_name().unwrap().to_string_lossy().into_owned();
        if page == "README.md" {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for section in text.split("\n## ").skip(1) {
            let (name, text) = section.split_once('\n').unwrap();
            let link = format!(
                "deploy/prometheus/runbooks/{page}#{}",
                name.to_ascii_lowercase()
            );
            assert!(
                found.insert(link, text.to_owned()).is_none(),
                "{name} twice"
            );
        }
    }
    found
}

#[test]
fn every_alert_has_a_section_in_the_runbooks_and_every_section_an_alert() {
    let rules = std::fs::read_to_string(folder().join("rules/weir.yml")).unwrap();
    let mut sections = runbooks();
    for alert in rules.split("      - alert: ").skip(1) {
        let name = alert.lines().next().unwrap();
        let mut lines = alert.lines().map(str::trim_start);
        let link = lines.find_map(|line| line.strip_prefix("runbook: "));
        let link = link.unwrap_or_else(|| panic!("{name} names no runbook"));
        let (_, anchor) = link.split_once('#').unwrap();
        assert_eq!(anchor, name.to_ascii_lowercase());
        let section = sections.remove(link);
        let section = section.unwrap_or_else(|| panic!("{name}: no section {link}"));
        for part in PARTS {
            let said = section.matches(&format!("\n- **{part}**: ")).count();
            assert_eq!(said, 1, "{part} in {link}");
        }
        let commands = section.split("```").nth(1).unwrap_or_default();
        let looks = commands.lines().filter(|line| line.starts_with('#'));
        assert_eq!(looks.count(), 3, "things to look at in {link}");
    }
    assert!(sections.is_empty(), "no alert has {:?}", sections.keys());
}
