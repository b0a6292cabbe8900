// SPDX-License-Identifier: Apache-2.0
//! Watts and classes.

use std::time::Duration;

use weir_settings::{Error, Scope, Value};

use super::{Function, ms, written};
use crate::book::energy::{Class, OTHER, SHARED};
use crate::config::Energy;
use crate::energy::Power;
use crate::sensed::FUNCTIONS;

/// No core and no package takes more.
const MOST_WATTS: f64 = 10_000.0;

/// Watts by state, and the class of each function; that of one that is not configured has its number.
pub(super) fn energy(
    written: &written::Energy,
    functions: &[Function<'_>],
    scope: &Scope<'_>,
) -> Result<Energy, Error> {
    let default = Power::default();
    let watts = |value: &Value, field: &str, default: f64| {
        scope.share(value, field, default, 0.0..=MOST_WATTS)
    };
    let power = Power {
        core_watts: watts(&written.core_watts, "core_watts", default.core_watts)?,
        leak_watts: watts(&written.leak_watts, "leak_watts", default.leak_watts)?,
        low_volts: scope.share(
            &written.low_volts,
            "low_volts",
            default.low_volts,
            0.0..=1.0,
        )?,
        idle_watts: watts(&written.idle_watts, "idle_watts", default.idle_watts)?,
        package_watts: watts(
            &written.package_watts,
            "package_watts",
            default.package_watts,
        )?,
        awake_watts: watts(&written.awake_watts, "awake_watts", default.awake_watts)?,
    };
    let class = |number: usize| {
        let configured = functions
            .iter()
            .find(|function| usize::from(function.id) == number);
        configured.map_or(
            Class {
                name: format!("function{number}"),
                good_within: None,
            },
            |function| function.class.clone(),
        )
    };
    Ok(Energy {
        power,
        classes: (0..FUNCTIONS).map(class).collect(),
    })
}

/// The class of a function.
pub(super) fn class(
    written: &written::Function,
    id: u8,
    name: &str,
    scope: &Scope<'_>,
) -> Result<Class, Error> {
    let fits = |text: &str| (1..=256).contains(&text.len()) && ![OTHER, SHARED].contains(&text);
    let shape = "1 to 256 bytes, and neither other nor shared";
    let default = match fits(name) {
        true => name.to_owned(),
        false => format!("function{id}"),
    };
    scope.note(
        "good_within",
        "duration",
        None,
        Some("1ms to 1h".to_owned()),
    );
    let good_within = match &written.good_within {
        Some(_) => {
            const MOST: Duration = ms(3_600_000);
            Some(scope.duration(&written.good_within, "good_within", MOST, ms(1)..=MOST)?)
        }
        None => None,
    };
    Ok(Class {
        name: scope.text(&written.class, "class", &default, fits, shape)?,
        good_within,
    })
}
