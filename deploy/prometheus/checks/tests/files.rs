// SPDX-License-Identifier: Apache-2.0
//! What Prometheus' own promtool says of the files.

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
        ] {
            assert_eq!(alert.matches(part).count(), 1, "{part} of\n{alert}");
        }
    }
}
