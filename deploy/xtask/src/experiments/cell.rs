// SPDX-License-Identifier: Apache-2.0
//! One simulation: what is asked for, who chooses, under which circumstances, from which seed.

use std::path::Path;

use crate::experiments::policies::Policy;
use crate::experiments::workloads::{Requests, Workload};

#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) setting: Setting,
    pub(super) seed: u64,
    /// Shorter where the workload knows how.
    pub(super) quick: bool,
}

/// A cell without its seed: what figures are the mean of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) workload: &'static Workload,
    pub(super) policy: &'static Policy,
    pub(super) callers: u32,
    pub(super) poll: &'static str,
    pub(super) orca: bool,
    pub(super) trouble: Trouble,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    None,
    /// A host is gone from the middle on.
    Lost,
    /// A host takes three times as long from the middle on.
    Slowed,
}

impl Trouble {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lost => "lost",
            Self::Slowed => "slowed",
        }
    }
}

impl Setting {
    /// The circumstances in which policies are compared on a workload.
    pub(super) fn plain(workload: &'static Workload, policy: &'static Policy) -> Self {
        Self {
            workload,
            policy,
            callers: 1,
            poll: workload.poll,
            orca: workload.orca || policy.weighs_answers(),
            trouble: Trouble::None,
        }
    }

    /// No two are called the same.
    pub(super) fn name(&self) -> String {
        let policy: String = self.policy.name.replace(" + ", "+");
        let policy = policy.replace(' ', "-").replace(['(', ')'], "");
        let orca = if self.orca { "orca" } else { "polls" };
        format!(
            "{}.{policy}.c{}.{}.{orca}.{}",
            self.workload.name,
            self.callers,
            self.poll,
            self.trouble.name()
        )
    }
}

impl Cell {
    pub(super) fn name(&self) -> String {
        let quick = if self.quick { ".quick" } else { "" };
        format!("{}.s{}{quick}", self.setting.name(), self.seed)
    }

    /// The arguments of weir-sim; `requests` is the workload's file, where it has one.
    pub(super) fn arguments(&self, requests: Option<&Path>) -> Vec<String> {
        let setting = &self.setting;
        let workload = setting.workload;
        let mut arguments = vec!["cell".to_owned()];
        let mut add = |flags: &str| arguments.extend(flags.split_whitespace().map(str::to_owned));
        match &workload.requests {
            Requests::Replayed(_, from) => add(&format!("--from {from}")),
            Requests::Simulated(_, short) if self.quick => add(short),
            Requests::Simulated(flags, _) => add(flags),
        }
        add(workload.fleet);
        add(setting.policy.flags);
        add(&format!(
            "--deadline {} --callers {} --poll {} --seed {}",
            workload.deadline, setting.callers, setting.poll, self.seed
        ));
        if !setting.orca {
            add("--no-orca");
        }
        let happens = |what: &str| format!("--trouble {}:3:{what}", workload.middle);
        match setting.trouble {
            Trouble::None => {}
            Trouble::Lost => add(&happens("lost")),
            Trouble::Slowed => add(&happens("3.0")),
        }
        // Last: a file's name may have blanks.
        let file = requests.map(|file| file.display().to_string());
        arguments.push("--workload".to_owned());
        arguments.push(file.unwrap_or_else(|| workload.name.to_owned()));
        arguments
    }
}
