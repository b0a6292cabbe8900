// SPDX-License-Identifier: Apache-2.0
//! What matches of a regular expression are replaced by.

use regex::Regex;

use super::group;
use crate::plan::Part;
use crate::request::BadRequest;
use crate::request::path::Path;

/// Splits `$1`, `${1}`, `${name}` and `$$` from the text around them. Known beforehand, the length
/// of a result can be checked while it grows.
pub(super) fn parts(
    at: &Path<'_>,
    replacement: &str,
    regex: &Regex,
) -> Result<Vec<Part>, BadRequest> {
    let mut parts = Vec::new();
    let mut rest = replacement;
    while let Some((before, after)) = rest.split_once('$') {
        text(&mut parts, before);
        if let Some(after) = after.strip_prefix('$') {
            text(&mut parts, "$");
            rest = after;
            continue;
        }
        let Some((name, after)) = reference(after) else {
            return Err(
                at.refuse("a `$` must start `$1`, `${name}` or `$$`, which stands for one `$`")
            );
        };
        let Some(number) = group(regex, name) else {
            return Err(at.refuse(format!("the regular expression has no group {name:?}")));
        };
        parts.push(Part::Group(number));
        rest = after;
    }
    text(&mut parts, rest);
    Ok(parts)
}

/// The name of a group and what follows it.
fn reference(after: &str) -> Option<(&str, &str)> {
    if let Some(braced) = after.strip_prefix('{') {
        return braced.split_once('}');
    }
    let end = after
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(after.len());
    (end > 0).then(|| after.split_at(end))
}

fn text(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(Part::Text(before)) => before.push_str(text),
        _ => parts.push(Part::Text(text.to_owned())),
    }
}
