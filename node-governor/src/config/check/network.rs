// SPDX-License-Identifier: Apache-2.0
//! The interface that the service and the jobs send by.

use serde_saphyr::Spanned;
use weir_settings::{Error, Scope};

use super::written;
use crate::config::shares::{Division, Network};

const UNITS: [(&str, f64); 3] = [("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)];

/// None where it is left alone; else the policy goes by it from now on.
pub(super) fn network(
    written: &Option<Spanned<written::Network>>,
    division: &mut Division,
    root: &Scope<'_>,
) -> Result<Option<Network>, Error> {
    let Some(section) = written else {
        return Ok(None);
    };
    let scope = root.section("network").at(section.referenced.line());
    let value = &section.value;
    let Some(wanted) = division.link() else {
        let reason = "only core policy heracles reads it, and parties with network_steps";
        return Err(scope.refuse(&None, "", reason));
    };
    let interface = scope.text(&value.interface, "interface", "", is_name, "as in eth0")?;
    if interface.is_empty() {
        return Err(scope.refuse(&None, "interface", "required: as ip link names it"));
    }
    let range = "1 Mbit/s to 1000 Gbit/s";
    scope.note("link", "rate", None, Some(range.to_owned()));
    let link = scope.parse(&value.link, "link", None, |text| {
        let bits = weir_settings::quantity(text, &UNITS);
        let bits = bits.filter(|bits| (1e6..=1e12).contains(bits));
        let bits = bits.map(|bits| Some(bits as u64));
        bits.ok_or_else(|| format!("{text:?} is not a rate of {range}"))
    })?;
    let Some(link) = link else {
        return Err(scope.refuse(&None, "link", "required: what the interface can send"));
    };
    *wanted = Some(link);
    Ok(Some(Network { interface, link }))
}

/// What the kernel takes for one (`dev_valid_name`), without what a program may take for an option.
fn is_name(text: &str) -> bool {
    let is_bad = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    (1..16).contains(&text.len())
        && !matches!(text, "." | "..")
        && !text.starts_with('-')
        && !text.contains(is_bad)
}
