// SPDX-License-Identifier: Apache-2.0
//! A short stretch of the document's day for real: orders alone.

use std::time::Duration;

use super::*;
use weir_needs::{Lacking, provided};

fn programs() -> Result<Programs, Lacking> {
    Ok(Programs {
        demo: demo::tests::programs()?,
        consul: provided("WEIR_CONSUL")?,
        prometheus: provided("WEIR_PROMETHEUS")?,
    })
}

#[test]
fn runs_come_in_the_documents_order_and_in_the_simulators() -> Result<()> {
    let programs = match programs() {
        Ok(programs) => programs,
        Err(lacking) => {
            weir_needs::skip(lacking.need, &lacking);
            return Ok(());
        }
    };
    let folder = tempfile::tempdir()?;
    let plan = Plan {
        // Nobody waits for the few that take longer.
        deadline: Duration::from_secs(15),
        ..Plan::emulated(0, 2)
    };
    let runs = vec![Run::BaselineBaseline, Run::BreakerDynamic, Run::Estimate];
    let mut experiment = Document001::new(programs, plan, runs, String::new(), folder.path())?;
    let mut rounds = Vec::new();
    for run in experiment.turns() {
        rounds.append(&mut experiment.play(&run)?);
    }
    let claims = experiment.verdicts(&rounds);
    assert_eq!(claims.len(), 3, "{claims:?}");
    assert!(!claims.iter().any(Verdict::fails), "{claims:?}");
    for told in &rounds {
        let simulated = told.simulated.as_ref().context("hosts are emulated")?;
        let both = [&told.measured, simulated].map(|outcome| &outcome.tallies[0]);
        assert!(both[0].requests > 5000, "{}", told.name);
        assert_eq!(both[0].requests, both[1].requests, "{}", told.name);
    }
    Ok(())
}
