// SPDX-License-Identifier: Apache-2.0
//! Names as files have them, and as C++ and Rust write them.

use cpp_demangle::DemangleOptions;

/// In the name of a part of a function that its compiler moved away, because it hardly ever runs.
pub(super) const COLD: &str = ".cold";

/// Whether `written` is how its language writes the function that the file calls `mangled`: Rust without the hash,
/// C++ with or without parameters.
pub(super) fn is_written(mangled: &str, written: &str) -> bool {
    if mangled.contains(COLD) {
        return false;
    }
    if let Ok(rust) = rustc_demangle::try_demangle(mangled) {
        return format!("{rust:#}") == written;
    }
    let Ok(cpp) = cpp_demangle::Symbol::new(mangled) else {
        return false;
    };
    let whole = DemangleOptions::new();
    let no_parameters = DemangleOptions::new().no_params().no_return_type();
    [whole, no_parameters].iter().any(|options| {
        cpp.demangle_with_options(options)
            .is_ok_and(|name| name == written)
    })
}

/// How its language writes the function that the file calls `mangled`.
pub fn as_written(mangled: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(mangled) {
        return format!("{rust:#}");
    }
    let cpp = cpp_demangle::Symbol::new(mangled).ok();
    let cpp = cpp.and_then(|name| name.demangle().ok());
    cpp.unwrap_or_else(|| mangled.to_owned())
}

/// Names alike enough to be what was meant, the likest first.
pub(super) fn nearest<'a>(
    names: impl Iterator<Item = &'a str>,
    symbol: &str,
    at_most: usize,
) -> Vec<String> {
    /// From 0, nothing alike, to 1; below this a name is not what was meant.
    const ALIKE: f64 = 0.85;
    let last = |name: &str| name.rsplit("::").next().unwrap_or(name).to_lowercase();
    let wanted = last(symbol);
    let mut near = names
        .map(as_written)
        .filter_map(|name| {
            let here = last(name.split(['(', '<']).next().unwrap_or(&name));
            let alike = strsim::jaro_winkler(&here, &wanted);
            let holds = wanted.len() >= 3 && name.to_lowercase().contains(&wanted);
            (holds || alike >= ALIKE).then_some((alike, name))
        })
        .collect::<Vec<_>>();
    near.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.cmp(other)));
    near.dedup_by(|(_, one), (_, other)| one == other);
    near.into_iter()
        .take(at_most)
        .map(|(_, name)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD_RUST: &str = "_ZN4core3str5count14do_count_chars17h0123456789abcdefE";
    const RUST: &str = "_RNvNtCsgStHSCytQ6I_3hot6search8evaluate";
    const CPP: &str = "_ZN6search8evaluateEi";

    #[test]
    fn a_function_is_named_as_its_language_names_it() {
        assert!(is_written(OLD_RUST, "core::str::count::do_count_chars"));
        assert!(is_written(RUST, "hot::search::evaluate"));
        assert!(is_written(CPP, "search::evaluate"));
        assert!(is_written(CPP, "search::evaluate(int)"));
        assert!(!is_written(CPP, "search::evaluate(long)"));
        assert!(!is_written(CPP, "evaluate"));
        assert!(!is_written(
            "_ZN6search8evaluateEi.cold",
            "search::evaluate"
        ));
        assert!(!is_written("evaluate", "search::evaluate"));
    }

    #[test]
    fn what_was_meant_is_near_what_was_written() {
        let names = [OLD_RUST, RUST, CPP, "main"];
        let near = |symbol| nearest(names.into_iter(), symbol, 5);
        assert_eq!(
            near("serch::evalaute"),
            ["hot::search::evaluate", "search::evaluate(int)"]
        );
        assert_eq!(near("count_chars"), ["core::str::count::do_count_chars"]);
        assert_eq!(near("x"), [""; 0]);
    }
}
