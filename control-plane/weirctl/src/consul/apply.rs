// SPDX-License-Identifier: Apache-2.0
//! Entries are planned one by one; where one is refused, none is written.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use serde_json::Value;
use weir_consul::{Kind, Outcome, Share, Written, says_the_same};

use super::check::{failing, heeded, unread};
use super::client::{Client, Denied, done};
use super::evidence::{Reached, Wanted, callers};
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
/// Consul does not answer, or refuses, and what was written is put back as far as nobody has changed it since; or somebody
/// else changes an entry meanwhile, and those before it are written.
pub async fn apply(asked: &Apply, variable: impl Fn(&str) -> Option<String>) -> Result<Applied> {
    let client = Client::federated(&asked.server, variable).await?;
    let weir = wish::weir(&asked.names, &asked.filter)?;
    let datacenter = client.datacenter().await?;
    wish::tried(&weir, &datacenter)?;
    let shares = weir.shares(&datacenter)?;
    let wanted = Wanted::of(&weir, datacenter, shares.iter());
    let callers = callers(&client, &weir, &wanted).await;
    let failing = failing(&callers, &wanted);
    // An entry that is useless does no harm; by this one requests would fail.
    ensure!(
        failing.is_empty(),
        "nothing was written:\n{}",
        failing
            .iter()
            .map(Finding::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    );
    let mut steps = Vec::new();
    for share in shares {
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
    // It is written, and may have broken what could not be looked at.
    applied.findings.extend(unread(&callers));
    Ok(applied)
}

/// Takes out what [`apply`] has written.
///
/// # Errors
/// The same.
pub async fn remove(asked: &Remove, variable: impl Fn(&str) -> Option<String>) -> Result<Applied> {
    let client = Client::federated(&asked.server, variable).await?;
    let weir = wish::any(&asked.names);
    let datacenter = client.datacenter().await?;
    let shares = weir.shares(&datacenter)?;
    // A caller may be a service of others: intentions of every name say who still reaches it.
    let mut entries = BTreeMap::new();
    for share in &shares {
        for kind in [share.kind, Kind::Intentions] {
            let key = (kind, share.name.clone());
            if let Entry::Vacant(place) = entries.entry(key) {
                place.insert(client.entry(&kind.to_string(), &share.name).await?);
            }
        }
    }
    let adopt = asked.change.adopt;
    let mut left: BTreeMap<_, _> = (entries.iter())
        .filter(|((kind, _), _)| *kind == Kind::Intentions)
        .map(|((_, name), entry)| (name.clone(), entry.clone()))
        .collect();
    for share in shares.iter().filter(|one| one.kind == Kind::Intentions) {
        let stands = left.get(&share.name).and_then(Option::as_ref);
        if let Ok(plan) = share.without(stands, adopt) {
            left.insert(share.name.clone(), plan.entry);
        }
    }
    // Callers first.
    let steps = shares.into_iter().rev().map(|mut share| {
        let key = (share.kind, share.name.clone());
        let stands = entries.get(&key).cloned().flatten();
        let intentions = left.get(&share.name).and_then(Option::as_ref);
        share.reached = share.kind == Kind::Defaults && Share::serves_others(intentions);
        let mut plan = share.without(stands.as_ref(), adopt);
        if let Ok(plan) = &mut plan
            && share.reached
            && plan.outcome == Outcome::Same
        {
            plan.changes.push("other callers need it".to_owned());
        }
        Step {
            share,
            stands,
            plan,
        }
    });
    let steps = steps.collect();
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
                    let mut undone = Vec::new();
                    // Where only the answer was lost, the entry may be written.
                    if !error.is::<Denied>() {
                        match step.now(client).await {
                            Ok(now) if step.is_as_planned(now.as_ref()) => written.push(step),
                            Ok(now) if same(now.as_ref(), step.stands.as_ref()) => (),
                            _ => undone.push(format!("{kind} {name} may have been written")),
                        }
                    }
                    undone.extend(undo(client, &written).await);
                    let undone = match undone.is_empty() {
                        true => "nothing has changed in Consul".to_owned(),
                        false => undone.join("; "),
                    };
                    return Err(error.context(format!("{kind} {name}")).context(undone));
                }
            }
        }
        // What was right as it stood was not checked by any write.
        for step in steps.iter().filter(|step| !step.changes()) {
            let now = step.now(client).await;
            let now = now.context("all is written; whether the rest is as it was is not known")?;
            let index = |entry: Option<&Value>| entry.map(|entry| entry["ModifyIndex"].clone());
            ensure!(
                index(now.as_ref()) == index(step.stands.as_ref()),
                "{} {}: somebody has changed it meanwhile; all others are written: try again",
                step.share.kind,
                step.share.name
            );
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

    async fn now(&self, client: &Client) -> Result<Option<Value>> {
        let kind = self.share.kind.to_string();
        client.entry(&kind, &self.share.name).await
    }

    fn is_as_planned(&self, now: Option<&Value>) -> bool {
        let plan = self.plan.as_ref();
        plan.is_ok_and(|plan| same(now, plan.entry.as_ref()))
    }

    /// Puts back what stood there, if nobody has changed it since.
    async fn undo(&self, client: &Client) -> Result<bool> {
        let now = self.now(client).await?;
        if !self.is_as_planned(now.as_ref()) {
            return Ok(false);
        }
        client
            .replace(&self.share, now.as_ref(), self.stands.as_ref())
            .await
    }
}

fn same(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => says_the_same(one, other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// What did not go, in words.
async fn undo(client: &Client, written: &[&Step]) -> Option<String> {
    let mut left = Vec::new();
    for step in written.iter().rev().filter(|step| step.changes()) {
        if !matches!(step.undo(client).await, Ok(true)) {
            left.push(format!("{} {}", step.share.kind, step.share.name));
        }
    }
    (!left.is_empty()).then(|| {
        format!(
            "these could not be put back, see to them: {}",
            left.join(", ")
        )
    })
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

#[cfg(test)]
mod tests;
