// SPDX-License-Identifier: Apache-2.0
//! Durations as people write them.

use std::time::Duration;

/// Nothing that is measured here lasts longer: ten years. Sums of such durations stay far from overflow.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Reads `250us`, `20ms`, `1.5s` or `2m`; at most ten years.
pub fn duration(text: &str) -> Result<Duration, String> {
    let split = text
        .find(|c: char| c.is_ascii_alphabetic())
        .ok_or("the unit is missing: us, ms, s or m")?;
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        other => return Err(format!("unknown unit {other:?}: us, ms, s or m")),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| format!("{number:?} is not a number"))?;
    let duration = Duration::try_from_secs_f64(number * factor).map_err(|e| e.to_string())?;
    match duration > LONGEST {
        true => Err("longer than ten years".to_owned()),
        false => Ok(duration),
    }
}

/// Reads a finite number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if n.is_finite() && n > 0.0 => Ok(n),
        _ => Err("expected a number above 0".to_owned()),
    }
}

/// Reads a finite number from 0 up.
pub fn not_negative(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if n.is_finite() && n >= 0.0 => Ok(n),
        _ => Err("expected a number from 0 up".to_owned()),
    }
}

/// Reads a number within a range.
pub fn within(text: &str, from: f64, to: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if (from..=to).contains(&n) => Ok(n),
        _ => Err(format!("expected a number from {from} to {to}")),
    }
}

/// Reads a number from 0 to 1.
pub fn share(text: &str) -> Result<f64, String> {
    within(text, 0.0, 1.0)
}

/// Reads a number above 0 and up to 1.
pub fn share_above_0(text: &str) -> Result<f64, String> {
    match share(text) {
        Ok(share) if share > 0.0 => Ok(share),
        _ => Err("expected a number above 0 and up to 1".to_owned()),
    }
}

/// Reads a [`duration`] that is not 0.
pub fn duration_above_0(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("expected a duration above 0".to_owned()),
        duration => Ok(duration),
    }
}

/// Whole microseconds.
#[must_use]
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_number_and_a_unit() {
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "5", "5 h", "-1s", "s", "1e999s", "1e9s", "1e18m"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert_eq!(duration("5256000m"), Ok(LONGEST));
    }

    #[test]
    fn numbers_keep_to_their_ranges() {
        assert_eq!((not_negative("0"), share("1")), (Ok(0.0), Ok(1.0)));
        assert_eq!(
            (share_above_0("1"), duration_above_0("1s")),
            (Ok(1.0), Ok(Duration::from_secs(1)))
        );
        for bad in ["", "-1", "NaN", "inf", "two"] {
            assert!(not_negative(bad).is_err() && share(bad).is_err(), "{bad}");
        }
        assert!(share("1.1").is_err() && share_above_0("0").is_err());
        assert!(duration_above_0("0s").is_err());
    }
}
