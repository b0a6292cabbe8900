// SPDX-License-Identifier: Apache-2.0
//! Frequencies as people write them.

use crate::frequency::{Frequency, Khz};

const UNITS: [(&str, f64); 4] = [("GHz", 1e6), ("MHz", 1e3), ("kHz", 1.0), ("%", -1.0)];
/// No core is faster.
const MOST_KHZ: f64 = 100e6;

/// `2.0 GHz`, `800 MHz`, `62 %`. The error is the reason.
pub(super) fn parse(text: &str) -> Result<Frequency, String> {
    let refuse = || {
        format!(
            "{text:?} is not a frequency; write a number and GHz, MHz or kHz, as in 2.0 GHz, or a share of what the core can do, as in 62 %"
        )
    };
    let value = weir_settings::quantity(text, &UNITS).ok_or_else(refuse)?;
    match text.ends_with('%') {
        true if (-100.0..=0.0).contains(&value) => Ok(Frequency::Share(-value / 100.0)),
        true => Err(format!("{text:?} is not in 0 % to 100 %")),
        false if (1.0..=MOST_KHZ).contains(&value) => {
            Ok(Frequency::Absolute(Khz(value.round() as u32)))
        }
        false => Err(format!("{text:?} is not in 1 kHz to 100 GHz")),
    }
}

/// As it would be written.
pub(super) fn show(frequency: Frequency) -> String {
    match frequency {
        Frequency::Absolute(khz) => khz.to_string(),
        Frequency::Share(share) => format!("{} %", share * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_absolute_or_shares() {
        let khz = |khz| Ok(Frequency::Absolute(Khz(khz)));
        assert_eq!(parse("2.0 GHz"), khz(2_000_000));
        assert_eq!(parse("800MHz"), khz(800_000));
        assert_eq!(parse("2601000 kHz"), khz(2_601_000));
        assert_eq!(parse("62 %"), Ok(Frequency::Share(0.62)));
        assert!(parse("2").unwrap_err().contains("as in 2.0 GHz"));
        assert!(parse("101 %").unwrap_err().contains("0 % to 100 %"));
        assert!(parse("0 GHz").unwrap_err().contains("1 kHz"));
        assert!(parse("fast").is_err() && parse("").is_err() && parse("-1 GHz").is_err());
    }
}
