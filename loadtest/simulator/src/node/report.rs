// SPDX-License-Identifier: Apache-2.0
//! Everything as Markdown.

use std::fmt::Write;

use weir_report::Table;

use super::cell::{Cell, Costs, Lab};
use super::document002::{experiments, facts, report, shards};
use super::{Governor, Load, Params, Terms, attributed, beside_schedutil, compared, document000};

/// What every figure is.
const LABEL: &str = "Every time is **SIMULATED**, every power and energy of a **MODEL**: nothing here was measured on a real machine.";

fn seeds(lab: &Lab) -> String {
    match lab.seeds() {
        1 => "seed 1".to_owned(),
        seeds => {
            format!("means of seeds 1 to {seeds}, in brackets the least and the most of a seed")
        }
    }
}

/// What document 002 says beside what the model says.
pub fn document002(lab: &mut Lab) -> String {
    let facts = facts::facts(lab, false);
    let held = |fitted: bool| {
        let of: Vec<_> = facts.iter().filter(|fact| fact.fitted == fitted).collect();
        format!(
            "{} of {}",
            of.iter().filter(|fact| fact.holds()).count(),
            of.len()
        )
    };
    let mut text = format!(
        "## Document 002: wanted and got\nMedeiros, *Profile-guided frequency scaling for search workloads*, 2020. {LABEL} {}. \
         *fitted*: the model's numbers were moved until these came near ({} hold). *check*: the search does not see them, but we did while the model was built: low at base load and mixed against low were fitted at first, and \
         low and mixed at 3× were checks. *holds*: within a margin of ours, see `facts.rs` \
         ({} hold).\n\n{}",
        seeds(lab),
        held(true),
        held(false),
        report::facts_table(&facts).markdown()
    );
    for one in experiments::experiments() {
        let table = report::table(lab, &one).markdown();
        // A String takes whatever is written.
        let _ = write!(
            text,
            "\n## Section {}: {}\nThe text: {}\n\n{table}",
            one.section, one.title, one.said
        );
    }
    text
}

/// Document 002's figure 4.1.
pub fn shards(lab: &mut Lab) -> String {
    format!(
        "## Section 4.1: how the index is divided (figure 4.1)\n{LABEL} {}. The work of a shard is in proportion to its \
         size, by assumption; a thread each, ondemand, 12 cores.\n\n{}",
        seeds(lab),
        shards::table(lab).markdown()
    )
}

/// What document 000 concludes of migrations.
pub fn document000(lab: &mut Lab) -> String {
    format!(
        "## Document 000: changes of frequency and service time\n{LABEL} {}. Document 000 moves threads between cores of two \
         kinds; here cores change their frequency. Events and ticks cost what document 002's agent costs.\n\n{}",
        seeds(lab),
        document000::table(lab).markdown()
    )
}

/// Every policy on every load.
pub fn policies(lab: &mut Lab) -> String {
    format!(
        "## All policies, with the costs of our events and ticks\n{LABEL} {}. *best*: the setting of this family that takes least \
         energy with p99 within 0.97 s, searched for each load by itself on 10 minutes of seed 1, a choice that no governor has. \
         *clairvoyant*: knows each shard's work when it begins, sets one frequency for it, and leaves what would need more \
         than its most to be late; its settings were searched, too. It is the least that was found with this knowledge, not \
         a proof that there is none lower.\n\n{}",
        seeds(lab),
        compared::table(lab).markdown()
    )
}

/// What the governor makes of energy, beside the truth.
pub fn energy(lab: &mut Lab) -> String {
    format!(
        "## Energy by class: the governor's attribution beside the truth\n{LABEL} {}. The truth: what cores take while they \
         work on shards of a class. The governor sees calls of the hot function once a tick, and the MODEL's whole energy \
         once a second as RAPL would count it. *Another processor*: told watts that leak three times as much, lower the voltage \
         more, and have a smaller package.\n\n{}",
        seeds(lab),
        attributed::table(lab).markdown()
    )
}

/// Every policy beside the kernel's schedutil.
pub fn schedutil(lab: &mut Lab) -> String {
    let mut others = Lab::new(lab.params().clone(), lab.seeds()).from(2);
    format!(
        "## Every policy beside schedutil\n{LABEL} Means of seeds 2 to {}, in brackets the least and the most of a seed. In \
         *italics*: the setting that takes least energy with p99 within 0.995 of schedutil's, searched on 10 minutes of seed 1, \
         which is none of those. *Class*: by number of terms, where the program has a hot function for each. *Clairvoyant*: knows \
         each shard's work when it begins.\n\n{}",
        lab.seeds() + 1,
        beside_schedutil::table(&mut others).markdown()
    )
}

/// Few short runs of seed 1: a test makes them again.
#[must_use]
pub fn taste(params: &Params) -> String {
    let mut lab = Lab::new(params.clone(), 1);
    let mut rows = Vec::new();
    for terms in [Terms::Low, Terms::Mixed, Terms::High] {
        let load = Load::base(terms, 1);
        let cell = |governor, costs| Cell::new(governor, costs, load).lasting(2);
        let first = cell(Governor::ondemand(), Costs::None);
        for (name, one) in [
            ("ondemand", first.clone()),
            (
                "three_state 450/50",
                cell(Governor::three_state(450, 50), Costs::Document),
            ),
            ("performance", cell(Governor::performance(), Costs::None)),
        ] {
            rows.push(report::row(&mut lab, terms.name(), name, &one, &first));
        }
    }
    let table = Table {
        header: report::header(),
        rows,
    };
    format!(
        "## A taste: 2 minutes of seed 1\n{LABEL}\n\n{}",
        table.markdown()
    )
}

/// All of it, as a file.
pub fn text(lab: &mut Lab) -> String {
    let parts = [
        document002(lab),
        policies(lab),
        energy(lab),
        schedutil(lab),
        taste(lab.params()),
    ];
    format!(
        "# One machine\n\n{LABEL} Made by\n```sh\nweir-sim node report --seeds {}\n```\n\n{}",
        lab.seeds(),
        parts.join("\n")
    )
}
