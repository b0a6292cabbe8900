// SPDX-License-Identifier: Apache-2.0
//! Names as files have them, and as C++ and Rust write them.

use cpp_demangle::DemangleOptions;

/// Whether `written` is how its language writes the function that the file calls `mangled`: Rust without the hash,
/// C++ with or without parameters.
pub(super) fn is_written(mangled: &str, written: &str) -> bool {
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

fn as_written(mangled: &str) -> String {
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
