// SPDX-License-Identifier: Apache-2.0
//! A short round for real. Counts alone; times are for `cargo xtask demo`.

use std::path::PathBuf;
use std::process::Command;

use super::ways::Kind;
use super::*;
use weir_needs::{Lacking, program, provided};
use weir_stage::command::Run;

pub(crate) fn programs() -> Result<Programs, Lacking> {
    Ok(Programs {
        fleet: crate::programs::Programs {
            envoy: provided("WEIR_ENVOY")?,
            filter: provided("WEIR_FILTER_WASM")?,
            control: program("weir-control")?,
            worker: program("weir-worker")?,
        },
        replay: program("weir-replay")?,
        feeds: None,
        traces: PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../traces")),
    })
}

#[test]
fn what_hosts_give_back_is_run_once_and_every_request_is_answered() -> Result<()> {
    let programs = match programs() {
        Ok(programs) => programs,
        Err(lacking) => {
            weir_needs::skip(lacking.need, &lacking);
            return Ok(());
        }
    };
    let folder = tempfile::tempdir()?;
    let way = WAYS.iter().find(|way| way.name.ends_with(" bounces"));
    let ways = vec![way.context("no way has bounces")?];
    let mut demo = Demo::new(programs, Plan::short(), ways, String::new(), folder.path())?;
    let told = demo.play(&demo.turns()[0])?.remove(0);
    let (all, usage) = (&told.figures.all, &told.envoys);
    assert!(all.requests > 500, "{}", all.requests);
    assert_eq!((all.failed, all.shed), (0, 0));
    assert!(usage.given_back > 0, "{usage:?}");
    assert_eq!(usage.sent_on, usage.given_back);
    assert_eq!(usage.runs, all.requests);
    assert!(usage.hosts_cpu.is_some_and(|cpu| cpu > 0.0), "{usage:?}");
    Ok(())
}

#[test]
fn weir_control_takes_the_configuration_of_every_way() -> Result<()> {
    let programs = match programs() {
        Ok(programs) => programs.fleet,
        Err(lacking) => {
            weir_needs::skip(lacking.need, &lacking);
            return Ok(());
        }
    };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("weir-control.yaml");
    let (plan, host) = (Plan::short(), ["127.0.0.1:1".parse()?]);
    for way in &WAYS {
        let Kind::Weir {
            selection,
            overload,
        } = way.kind
        else {
            continue;
        };
        let settings = stage::settings(&plan, selection, overload);
        let config = settings.config(&host, &host, &programs.filter);
        std::fs::write(&file, config.to_string())?;
        let mut check = Command::new(&programs.control);
        check.arg("--check").arg("--config").arg(&file);
        check.captured().context(way.name)?;
    }
    Ok(())
}
