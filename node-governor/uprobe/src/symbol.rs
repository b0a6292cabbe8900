// SPDX-License-Identifier: Apache-2.0
//! Finds a function in a file, by the name that the file or its language gives it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::Error;
use binary::{Binary, Function};

mod binary;
mod entry;
mod exits;
mod functions;
mod name;

pub use entry::Pace;
pub use functions::Functions;
pub use name::as_written;

/// Where a function is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// As the file has it.
    pub name: String,
    /// Of the instruction that is watched, from the start of the file: what the kernel counts by.
    pub offset: u64,
    /// What an entry costs there.
    pub pace: Pace,
    /// How the end of a call is seen.
    pub ends: Ends,
}

/// How the end of a call is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ends {
    /// The kernel puts an address of its own in the place of the return address (a uretprobe). An exception that
    /// passes through the function ends the program, for whoever unwinds the stack does not know that address.
    Kernel,
    /// The instructions that leave the function are watched, at these offsets in the file. Nothing of the program
    /// is changed; one costs what an entry of [`Pace::Slow`] does.
    Instructions(Vec<u64>),
}

/// How many names an error lists.
const LISTED: usize = 5;

/// Looks `symbol` up: a name as the file has it, else as its language writes it, or an offset in the file.
/// `no_unwinding`: nothing unwinds the stack through this function, whatever the file can do.
pub fn find(path: &Path, symbol: &str, no_unwinding: bool) -> Result<Site, Error> {
    let data = binary::open(path)?;
    let binary = Binary::parse(path, &data)?;
    let refuse = |reason: String| Error::Symbol {
        binary: path.to_owned(),
        symbol: symbol.to_owned(),
        reason,
    };
    if binary.is_go() {
        let reason =
            "a function of Go goes on in another thread than it began in: it cannot be followed";
        return Err(refuse(reason.into()));
    }
    let functions = binary.all_functions()?;
    let (name, start) = match symbol.strip_prefix("0x") {
        Some(offset) => {
            let offset =
                u64::from_str_radix(offset, 16).map_err(|error| refuse(error.to_string()))?;
            (symbol, offset)
        }
        None => {
            let function = choose(&functions, symbol, binary.is_stripped()).map_err(refuse)?;
            let offset = binary.offset(function.address);
            let offset = offset
                .ok_or_else(|| refuse("it is not in a part of the file that is run".into()))?;
            (&*function.name, offset)
        }
    };
    let (offset, pace) = binary
        .entry(start)
        .ok_or_else(|| refuse("no code is at this offset".into()))?;
    let ends = match no_unwinding || !binary.can_unwind() {
        true => Ends::Kernel,
        false => {
            let exits = binary.exits(&functions, start).map_err(|reason| {
                refuse(format!(
                    "{reason}, and an exception through it would end the program: say `no_unwinding` where there is none"
                ))
            })?;
            Ends::Instructions(exits)
        }
    };
    Ok(Site {
        name: name.to_owned(),
        offset,
        pace,
        ends,
    })
}

/// The offset of the instruction that a program starts with.
pub(crate) fn first_instruction(path: &Path) -> Result<u64, Error> {
    let data = binary::open(path)?;
    Binary::parse(path, &data)?.first_instruction()
}

fn choose<'a>(
    functions: &'a BTreeSet<Function>,
    symbol: &str,
    stripped: bool,
) -> Result<&'a Function, String> {
    let exact = functions.iter().filter(|one| one.name == symbol);
    let mut found = exact.collect::<Vec<_>>();
    if found.is_empty() {
        let written = functions.iter();
        found = written
            .filter(|one| name::is_written(&one.name, symbol))
            .collect();
    }
    // Several names of one function are one.
    found.dedup_by_key(|one| one.address);
    match found[..] {
        [] => Err(absent(functions, symbol, stripped)),
        [only] if only.indirect => Err(
            "it is chosen when the program starts (IFUNC): name the variant that runs, or its offset"
                .into(),
        ),
        [only] => Ok(only),
        _ => {
            let listed = found.iter().take(LISTED).map(|one| &*one.name);
            Err(format!(
                "{} functions have this name: give one as the file has it, or its offset as 0x...: {}",
                found.len(),
                listed.collect::<Vec<_>>().join(", ")
            ))
        }
    }
}

fn absent(functions: &BTreeSet<Function>, symbol: &str, stripped: bool) -> String {
    let names = functions.iter().map(|one| &*one.name);
    let near = match name::nearest(names, symbol, LISTED) {
        near if near.is_empty() => String::new(),
        near => format!("; near it: {}", near.join(", ")),
    };
    let count = functions.len();
    match stripped {
        true => format!(
            "the file is stripped and exports {count} functions, not this one: install its debug symbols, or give the \
             offset as 0x...{near}"
        ),
        false => {
            format!("none of its {count} functions; it may be inlined, or in a library{near}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(address: u64, name: &str) -> Function {
        Function {
            address,
            name: name.to_owned(),
            size: 1,
            indirect: name == "memcpy",
        }
    }

    #[test]
    fn a_name_that_stands_for_several_functions_is_refused_with_all_of_them() {
        let functions = BTreeSet::from([
            function(16, "_ZN6search8evaluateEi"),
            function(32, "_ZN6search8evaluateEl"),
            function(48, "main"),
            function(48, "its_other_name"),
            function(64, "memcpy"),
        ]);
        let choose = |symbol| choose(&functions, symbol, false).map(|one| one.address);
        let both = choose("search::evaluate").expect_err("two");
        assert!(both.starts_with("2 functions"), "{both}");
        assert!(
            both.ends_with("_ZN6search8evaluateEi, _ZN6search8evaluateEl"),
            "{both}"
        );
        assert_eq!(choose("search::evaluate(long)"), Ok(32));
        assert_eq!(choose("main"), Ok(48));
        assert!(choose("memcpy").is_err_and(|reason| reason.contains("IFUNC")));
    }
}
