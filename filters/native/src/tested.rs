// SPDX-License-Identifier: Apache-2.0
//! Whether the Envoy that loads the module is the release that it was tested with.
//!
//! Envoy tells a module no version, and takes one that was built for another. What tells releases apart is the callbacks
//! that their programs offer: 521 in 1.38.2, 607 in 1.39.3, 781 in 1.40.0. Older ones lack a callback that is in use
//! (`abi::SINCE_1_40`) and are refused by the loader; a later one may number and mean things otherwise.

use std::error::Error;
use std::fs::File;

use object::read::elf::ElfFile64;
use object::{Object, ObjectSymbol, ReadCache};

/// Of Envoy 1.40.0: `nm -D --defined-only envoy | grep -c envoy_dynamic_module_callback_`.
const CALLBACKS: usize = 781;
const CALLBACK: &[u8] = b"envoy_dynamic_module_callback_";
/// The program of this process.
const PROGRAM: &str = "/proc/self/exe";
/// Where this is set, any Envoy is taken that has the callbacks in use.
const ANY: &str = "WEIR_NATIVE_ANY_ENVOY";

/// Why this Envoy is refused, unless it is the one or whoever started it wants the module in any.
pub(crate) fn refusal() -> Option<String> {
    match std::env::var_os(ANY) {
        Some(_) => None,
        None => judge(callbacks(PROGRAM)),
    }
}

fn judge(callbacks: Result<usize, Box<dyn Error>>) -> Option<String> {
    let why = match callbacks {
        Ok(CALLBACKS) => return None,
        Ok(others) => {
            format!("it has {others} callbacks for modules, and Envoy 1.40 has {CALLBACKS}")
        }
        Err(error) => format!("{PROGRAM}: {error}"),
    };
    Some(format!(
        "weir: this Envoy is not the release that the module was tested with: {why}. Take the module of WebAssembly, or \
         set {ANY}=1 where Envoy is started, once the tests have passed with it"
    ))
}

fn callbacks(program: &str) -> Result<usize, Box<dyn Error>> {
    let file = ReadCache::new(File::open(program)?);
    let program = ElfFile64::<object::Endianness, _>::parse(&file)?;
    let offered = program.dynamic_symbols().filter(|symbol| {
        let name = symbol.name_bytes().unwrap_or_default();
        symbol.is_definition() && name.starts_with(CALLBACK)
    });
    Ok(offered.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envoy_with_as_many_callbacks_is_taken_and_others_are_refused_with_what_to_do() {
        assert_eq!(judge(Ok(CALLBACKS)), None);
        for others in [0, CALLBACKS - 1, CALLBACKS + 1] {
            let refusal = judge(Ok(others)).unwrap();
            assert!(refusal.contains(&format!("it has {others} callbacks")));
            assert!(refusal.contains("set WEIR_NATIVE_ANY_ENVOY=1"));
        }
    }

    #[test]
    fn a_program_that_cannot_be_read_is_refused_by_its_name() {
        let refusal = judge(callbacks("/nowhere")).unwrap();
        assert!(
            refusal.contains("/proc/self/exe: No such file"),
            "{refusal}"
        );
        let refusal = judge(callbacks("/proc/self/status")).unwrap();
        assert!(refusal.contains("/proc/self/exe: "), "{refusal}");
        // No Envoy, and readable.
        assert_eq!(callbacks(PROGRAM).unwrap(), 0);
    }
}
