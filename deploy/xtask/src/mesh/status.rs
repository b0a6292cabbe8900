// SPDX-License-Identifier: Apache-2.0
//! What runs, how it is, and what it costs.

use std::path::Path;

use anyhow::{Result, bail};
use weir_mesh::background::{self, Health, Row};

/// Prints a table of the processes, and who has died.
pub(super) fn print(folder: &Path) -> Result<()> {
    let status = background::status(folder)?;
    let Some(supervisor) = status.supervisor else {
        bail!("no mesh is up; `cargo xtask mesh up` starts one");
    };
    println!("supervisor {supervisor}\n");
    println!(
        "{:<22} {:>8} {:>8} {:>8}  {:<8} ports",
        "process", "pid", "CPU s", "MiB", "health"
    );
    for row in &status.rows {
        println!("{}", line(row));
    }
    if !status.died.is_empty() {
        println!("\ndied since the start:\n{}", status.died);
    }
    if !status.ready {
        println!("\nnot up yet");
    }
    Ok(())
}

fn line(row: &Row) -> String {
    let Row {
        name,
        id,
        cpu,
        resident,
        health,
        ports,
        role,
    } = row;
    let cpu = cpu.map_or("-".to_owned(), |cpu| format!("{:.1}", cpu.as_secs_f64()));
    let resident = resident.map_or("-".to_owned(), |bytes| (bytes >> 20).to_string());
    let health = match health {
        Health::Good => "good",
        Health::Bad => "BAD",
        Health::Gone => "GONE",
        Health::Unknown => "-",
    };
    let role = role
        .as_ref()
        .map_or(String::new(), |role| format!(" ({role})"));
    format!("{name:<22} {id:>8} {cpu:>8} {resident:>8}  {health:<8} {ports}{role}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_row_tells_what_is_known() {
        let row = Row {
            name: "rules-1".into(),
            id: 12,
            cpu: Some(Duration::from_millis(1500)),
            resident: Some(3 << 20),
            health: Health::Good,
            ports: "127.0.0.1:1".into(),
            role: None,
        };
        let expected = "rules-1                      12      1.5        3  good     127.0.0.1:1";
        assert_eq!(line(&row), expected);
        let leading = Row {
            role: Some("leading".into()),
            ..row.clone()
        };
        assert_eq!(line(&leading), format!("{expected} (leading)"));
        let gone = Row {
            cpu: None,
            resident: None,
            health: Health::Gone,
            ..row
        };
        assert!(line(&gone).contains("-        -  GONE"));
    }
}
