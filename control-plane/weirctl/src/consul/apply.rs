// SPDX-License-Identifier: Apache-2.0
//! Entries are planned one by one; where one is refused, none is written.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::Value;
use weir_consul::{Kind, Outcome, Share, Written};

use super::check::heeded;
use super::client::{Client, done};
use super::evidence::Reached;
use super::wish;
use crate::doctor::finding::{Finding, Verdict};
use crate::flags::consul::{Apply, Change, Remove};
use crate::screen::{BAD, FAIR, GOOD, styled};

/// What came of each entry, or would.
#[derive(Clone, Debug, Serialize)]
pub struct Applied {
    /// Nothing was written.
    pub dry_run: bool,
    /// In the order in which they are written.
    pub entries: Vec<Row>,
    /// What makes them useless.
    pub findings: Vec<Finding>,
}

/// An entry.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Of the entry.
    pub kind: Kind,
    /// Of the entry.
    pub name: String,
    /// None where it is refused.
    pub outcome: Option<Outcome>,
    /// What changes; where it is refused, why.
    pub said: Vec<String>,
    /// The whole entry after it.
    pub entry: Option<Value>,
}

/// An entry as it stands and as it is to be.
struct Step {
    share: Share,
    stands: Option<Value>,
    plan: Result<Written, weir_consul::Refused>,
}

impl Applied {
    /// Whether an entry is refused, or has no effect.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        self.is_refused() || !self.findings.is_empty()
    }

    fn is_refused(&self) -> bool {
        self.entries.iter().any(|row| row.outcome.is_none())
    }
}

/// Writes what is asked for.
///
/// # Errors
/// Consul does not answer, or refuses, and what was written is put back; or somebody else changes an entry meanwhile, and
/// those before it are written.
pub async fn apply(asked: &Apply, variable: impl Fn(&str) -> Option<String>) -> Result<Applied> {
    let client = Client::new(&asked.server, variable)?;
    let weir = wish::weir(&asked.names, &asked.filter)?;
    let datacenter = client.datacenter().await?;
    wish::tried(&weir, &datacenter)?;
    let mut steps = Vec::new();
    for share in weir.shares(&datacenter)? {
        let stands = client.entry(&share.kind.to_string(), &share.name).await?;
        let plan = share.with(stands.as_ref(), asked.change.adopt);
        steps.push(Step {
            share,
            stands,
            plan,
        });
    }
    let mut applied = execute(&client, &asked.change, steps).await?;
    let reached = Reached::gather(&client, &weir).await;
    applied.findings = reached.iter().flat_map(heeded).collect();
    applied
        .findings
        .retain(|finding| finding.verdict == Verdict::Broken);
    Ok(applied)
}

/// Takes out what [`apply`] has written.
///
/// # Errors
/// The same.
pub async fn remove(asked: &Remove, variable: impl Fn(&str) -> Option<String>) -> Result<Applied> {
    let client = Client::new(&asked.server, variable)?;
    let weir = wish::any(&asked.names);
    let datacenter = client.datacenter().await?;
    let (mut steps, mut still_reached) = (Vec::new(), BTreeSet::new());
    // Callers first, and before services what says who else reaches them.
    for share in weir.shares(&datacenter)?.into_iter().rev() {
        let stands = client.entry(&share.kind.to_string(), &share.name).await?;
        let others = share.kind == Kind::Defaults && still_reached.contains(&share.name);
        let wanted = match others {
            true => None,
            false => Some(share.without(stands.as_ref(), asked.change.adopt)),
        };
        let plan = wanted.unwrap_or_else(|| {
            Ok(Written {
                outcome: Outcome::Same,
                entry: stands.clone(),
                changes: vec!["other callers need it".to_owned()],
            })
        });
        if share.kind == Kind::Intentions
            && let Ok(left) = &plan
            && Share::serves_others(left.entry.as_ref())
        {
            still_reached.insert(share.name.clone());
        }
        steps.push(Step {
            share,
            stands,
            plan,
        });
    }
    execute(&client, &asked.change, steps).await
}

async fn execute(client: &Client, change: &Change, steps: Vec<Step>) -> Result<Applied> {
    let refused = steps.iter().any(|step| step.plan.is_err());
    if !refused && !change.dry_run {
        let mut written = Vec::new();
        for step in &steps {
            let Share { kind, name, .. } = &step.share;
            match step.write(client).await {
                Ok(true) => written.push(step),
                // Whoever it was may build on what stands before it, which does no harm: it is not put back.
                Ok(false) => bail!(
                    "{kind} {name}: somebody has changed it meanwhile; those before it are written: try again"
                ),
                Err(error) => {
                    let undone = undo(client, &written).await;
                    return Err(error.context(format!("{kind} {name}")).context(undone));
                }
            }
        }
    }
    Ok(Applied {
        dry_run: change.dry_run,
        entries: steps.into_iter().map(Row::from).collect(),
        findings: Vec::new(),
    })
}

impl Step {
    fn changes(&self) -> bool {
        matches!(&self.plan, Ok(plan) if plan.outcome != Outcome::Same)
    }

    /// Whether nobody else has changed it meanwhile.
    async fn write(&self, client: &Client) -> Result<bool> {
        match &self.plan {
            Ok(plan) if self.changes() => {
                let entry = plan.entry.as_ref();
                client
                    .replace(&self.share, self.stands.as_ref(), entry)
                    .await
            }
            _ => Ok(true),
        }
    }

    /// Puts back what stood there, if nobody has changed it since.
    async fn undo(&self, client: &Client) -> Result<bool> {
        let now = client
            .entry(&self.share.kind.to_string(), &self.share.name)
            .await?;
        client
            .replace(&self.share, now.as_ref(), self.stands.as_ref())
            .await
    }
}

/// What came of it, in words.
async fn undo(client: &Client, written: &[&Step]) -> String {
    let mut left = Vec::new();
    for step in written.iter().rev().filter(|step| step.changes()) {
        if !matches!(step.undo(client).await, Ok(true)) {
            left.push(format!("{} {}", step.share.kind, step.share.name));
        }
    }
    match left.is_empty() {
        true => "nothing has changed in Consul".to_owned(),
        false => format!(
            "these could not be put back, see to them: {}",
            left.join(", ")
        ),
    }
}

impl From<Step> for Row {
    fn from(step: Step) -> Self {
        let Share { kind, name, .. } = step.share;
        let (outcome, said, entry) = match step.plan {
            Ok(plan) => (Some(plan.outcome), plan.changes, plan.entry),
            Err(refused) => (None, refused.reasons, step.stands),
        };
        Self {
            kind,
            name,
            outcome,
            said,
            entry,
        }
    }
}

impl fmt::Display for Applied {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.entries {
            let (style, done) = match row.outcome {
                None => (BAD, "REFUSED"),
                Some(outcome @ Outcome::Same) => (GOOD, done(outcome)),
                Some(outcome) => (FAIR, done(outcome)),
            };
            let done = styled(style, &format!("{done:<9}"));
            writeln!(to, "{done}  {:<18} {}", row.kind.to_string(), row.name)?;
            for said in &row.said {
                writeln!(to, "{:<11}{said}", "")?;
            }
        }
        for finding in &self.findings {
            writeln!(to, "\n{finding}")?;
        }
        let changes = self.entries.iter();
        let changes = changes.filter(|row| row.outcome.is_some_and(|one| one != Outcome::Same));
        let said = match (self.is_refused(), self.dry_run, changes.count()) {
            (true, ..) => styled(BAD, "nothing was written: see what is refused"),
            (_, _, 0) => styled(GOOD, "nothing to write"),
            (_, true, _) => styled(FAIR, "a dry run: nothing was written"),
            (_, false, _) => styled(GOOD, "written"),
        };
        writeln!(to, "\n{said}")?;
        match self.findings.is_empty() {
            true => Ok(()),
            false => writeln!(
                to,
                "{}",
                styled(BAD, "it has no effect while that stands beside it")
            ),
        }
    }
}
