// SPDX-License-Identifier: Apache-2.0
//! Sampled stacks, and what share of them each function has.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

/// A function, as the governor's configuration names it.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Function {
    /// The file that it is in; none of a JVM's.
    pub binary: Option<PathBuf>,
    /// `class.method` as `Class.getName` writes the class; of a file, the symbol that it has.
    pub name: String,
}

impl Function {
    /// Of a JVM.
    #[must_use]
    pub fn method(name: impl Into<String>) -> Self {
        Self {
            binary: None,
            name: name.into(),
        }
    }

    /// As its language writes it.
    #[must_use]
    pub fn written(&self) -> String {
        match self.binary {
            None => self.name.clone(),
            Some(_) => weir_uprobe::as_written(&self.name),
        }
    }

    /// The class or the module that it belongs to; the function itself where its language has none.
    #[must_use]
    pub fn owner(&self) -> String {
        let (plain, separator) = self.plain();
        let owner = plain
            .rsplit_once(separator)
            .map_or(&*plain, |(owner, _)| owner);
        owner.to_owned()
    }

    /// Its class or module and its own name.
    #[must_use]
    pub fn short(&self) -> String {
        let (plain, separator) = self.plain();
        let parts: Vec<&str> = plain.split(separator).collect();
        parts[parts.len().saturating_sub(2)..].join(separator)
    }

    /// Without parameters, which may have anything in them, and what comes between its parts.
    fn plain(&self) -> (String, &'static str) {
        let written = self.written();
        let plain = written.split(['(', '<']).next().unwrap_or_default();
        let separator = match self.binary {
            None => ".",
            Some(_) => "::",
        };
        (plain.to_owned(), separator)
    }

    /// Whether events of it can be had, and mean the program's own work: not what runs any program, and nothing
    /// whose name is made up at each start.
    #[must_use]
    pub fn can_be_named(&self) -> bool {
        const RUNTIME: [&str; 6] = [
            "java.",
            "javax.",
            "jdk.",
            "sun.",
            "com.sun.",
            "dev.weir.events.",
        ];
        match self.binary {
            Some(_) => true,
            None => {
                let is_made_up = [
                    "$$Lambda",
                    "lambda$",
                    "$Proxy",
                    "<init>",
                    "<clinit>",
                    "LambdaForm",
                ];
                !RUNTIME.iter().any(|prefix| self.name.starts_with(prefix))
                    && !is_made_up.iter().any(|part| self.name.contains(part))
            }
        }
    }
}

/// How much of the time a function has, with all that it calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// Which.
    pub function: Function,
    /// Of all samples.
    pub of_all: f64,
    /// Of its samples, those whose caller belongs to another class or module.
    pub entered: f64,
    /// Frames that were above it, on average.
    pub depth: f64,
}

/// All that was sampled.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// Each stack, the outermost function first, with how often it was seen.
    seen: BTreeMap<Vec<Function>, u64>,
    samples: u64,
}

#[derive(Default)]
struct Sums {
    samples: u64,
    entered: u64,
    depth: u64,
}

impl Stacks {
    /// One more, the outermost function first.
    pub fn add(&mut self, stack: Vec<Function>) {
        if !stack.is_empty() {
            *self.seen.entry(stack).or_default() += 1;
            self.samples += 1;
        }
    }

    /// How many there are.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Of each function that can be named, the largest first, and of equal ones the outermost.
    #[must_use]
    pub fn shares(&self) -> Vec<Share> {
        let mut sums: BTreeMap<&Function, Sums> = BTreeMap::new();
        let owners = self.owners();
        for (stack, samples) in &self.seen {
            let mut above: Option<&String> = None;
            let mut within = HashSet::new();
            for (depth, function) in stack.iter().enumerate() {
                let Some(owner) = owners.get(function) else {
                    continue;
                };
                // Of a function that calls itself the outermost call.
                if within.insert(function) {
                    let sum = sums.entry(function).or_default();
                    sum.samples += samples;
                    sum.entered += samples * u64::from(above != Some(owner));
                    sum.depth += samples * depth as u64;
                }
                above = Some(owner);
            }
        }
        let share = |(function, sum): (&Function, Sums)| Share {
            function: function.clone(),
            of_all: sum.samples as f64 / self.samples as f64,
            entered: sum.entered as f64 / sum.samples as f64,
            depth: sum.depth as f64 / sum.samples as f64,
        };
        let mut shares: Vec<Share> = sums.into_iter().map(share).collect();
        shares.sort_by(|a, b| {
            let larger = b.of_all.total_cmp(&a.of_all);
            larger.then_with(|| a.depth.total_cmp(&b.depth))
        });
        shares
    }

    /// Of all functions that can be named: a name is taken apart once, however often it was sampled.
    fn owners(&self) -> HashMap<&Function, String> {
        let all: HashSet<&Function> = self.seen.keys().flatten().collect();
        let named = all.into_iter().filter(|function| function.can_be_named());
        named.map(|function| (function, function.owner())).collect()
    }

    /// The way down the stacks on which most time is spent, each function with its share: the next is always the one
    /// that most samples go through, until none has half of those of the one before.
    #[must_use]
    pub fn path(&self) -> Vec<(Function, f64)> {
        let mut path: Vec<(Function, f64)> = Vec::new();
        let mut stacks: Vec<(&[Function], u64)> = self
            .seen
            .iter()
            .map(|(stack, samples)| (&**stack, *samples))
            .collect();
        let mut before = self.samples;
        loop {
            let mut next: BTreeMap<&Function, u64> = BTreeMap::new();
            for (stack, samples) in &stacks {
                if let Some(function) = stack.first() {
                    *next.entry(function).or_default() += samples;
                }
            }
            let Some((function, samples)) = next.into_iter().max_by_key(|(_, samples)| *samples)
            else {
                return path;
            };
            if samples * 2 < before {
                return path;
            }
            before = samples;
            path.push((function.clone(), samples as f64 / self.samples as f64));
            let function = function.clone();
            stacks = stacks
                .into_iter()
                .filter_map(|(stack, samples)| {
                    let (first, rest) = stack.split_first()?;
                    (*first == function).then_some((rest, samples))
                })
                .collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(names: &[&str]) -> Vec<Function> {
        names.iter().map(|name| Function::method(*name)).collect()
    }

    fn share<'a>(shares: &'a [Share], name: &str) -> &'a Share {
        let named = |share: &&Share| share.function.name == name;
        shares.iter().find(named).expect("it was sampled")
    }

    #[test]
    fn a_function_has_the_samples_of_all_that_it_calls_once_each() {
        let mut stacks = Stacks::default();
        stacks.add(stack(&[
            "java.lang.Thread.run",
            "a.A.run",
            "a.B.work",
            "a.A.run",
        ]));
        stacks.add(stack(&["java.lang.Thread.run", "a.A.run", "a.A.rest"]));
        stacks.add(stack(&["java.lang.Thread.run"]));
        stacks.add(Vec::new());
        assert_eq!(stacks.samples(), 3);
        let shares = stacks.shares();
        let names: Vec<&str> = shares.iter().map(|share| &*share.function.name).collect();
        assert_eq!(
            names,
            ["a.A.run", "a.A.rest", "a.B.work"],
            "nothing of the runtime"
        );
        assert_eq!(share(&shares, "a.A.run").of_all, 2.0 / 3.0);
        assert_eq!(share(&shares, "a.A.run").depth, 1.0);
        assert_eq!(share(&shares, "a.A.run").entered, 1.0);
        assert_eq!(share(&shares, "a.A.rest").entered, 0.0);
        assert_eq!(share(&shares, "a.B.work").entered, 1.0);
    }

    #[test]
    fn what_has_no_name_of_its_own_does_not_come_between() {
        let mut stacks = Stacks::default();
        stacks.add(stack(&[
            "a.A.run",
            "a.A$$Lambda$7.get",
            "a.A.lambda$run$0",
            "a.A.rest",
        ]));
        let shares = stacks.shares();
        assert_eq!(shares.len(), 2);
        assert_eq!(share(&shares, "a.A.rest").entered, 0.0);
    }

    #[test]
    fn the_path_goes_where_most_time_goes() {
        let mut stacks = Stacks::default();
        for (times, names) in [
            (6, &["r", "a", "b"][..]),
            (2, &["r", "a", "c"]),
            (1, &["r", "d"]),
            (1, &["s"]),
        ] {
            (0..times).for_each(|_| stacks.add(stack(names)));
        }
        let path = stacks.path();
        let path: Vec<(&str, f64)> = path
            .iter()
            .map(|(function, share)| (&*function.name, *share))
            .collect();
        assert_eq!(path, [("r", 0.9), ("a", 0.8), ("b", 0.6)]);
    }

    #[test]
    fn owners_are_as_the_language_has_them() {
        let of_file = |name: &str| Function {
            binary: Some("/bin/x".into()),
            name: name.to_owned(),
        };
        assert_eq!(
            Function::method("a.b.Outer$Inner.run").owner(),
            "a.b.Outer$Inner"
        );
        assert_eq!(of_file("_ZN6search8evaluateEi").owner(), "search");
        assert_eq!(
            of_file("_RNvNtCsgStHSCytQ6I_3hot6search8evaluate").owner(),
            "hot::search"
        );
        assert_eq!(of_file("evaluate").owner(), "evaluate");
        assert_eq!(of_file("evaluate").short(), "evaluate");
        assert_eq!(
            of_file("_ZN1a6search8evaluateEi").short(),
            "search::evaluate"
        );
        assert_eq!(
            Function::method("a.b.Outer$Inner.run").short(),
            "Outer$Inner.run"
        );
    }
}
