// SPDX-License-Identifier: Apache-2.0
//! Durations, sizes and numbers as people write them.

use std::time::Duration;

/// Units of time, longest suffix first where one ends in another.
const TIME: [(&str, f64); 5] = [
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];
const SIZE: [(&str, f64); 7] = [
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("B", 1.0),
];

/// `1s`, `500ms`, `1.5m`. The error is the reason.
pub fn duration(text: &str) -> Result<Duration, String> {
    let seconds = quantity(text, &TIME).ok_or_else(|| {
        format!("{text:?} is not a duration; write a number and us, ms, s, m or h, as in 500ms")
    })?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{text:?} is too long"))
}

/// `4MiB`, `64KiB`, `100B`. The error is the reason.
pub fn size(text: &str) -> Result<usize, String> {
    let bytes = quantity(text, &SIZE).ok_or_else(|| {
        format!(
            "{text:?} is not a size; write a number and B, KiB, MiB, GiB, kB, MB or GB, as in 4MiB"
        )
    })?;
    Ok(bytes as usize)
}

/// A number and one of the units, each with what it stands for.
pub fn quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start();
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<f64>().ok().map(|number| number * factor)
}

/// The duration as it would be written.
pub fn show_duration(duration: Duration) -> String {
    let micros = duration.as_micros();
    let (unit, name) = match micros {
        m if m % 1_000_000 == 0 => (1_000_000, "s"),
        m if m % 1000 == 0 => (1000, "ms"),
        _ => (1, "us"),
    };
    format!("{}{name}", micros / unit)
}

/// The size as it would be written.
pub fn show_size(bytes: usize) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    format!("{bytes}B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_need_a_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5 s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert!(duration("5").unwrap_err().contains("write a number and"));
        assert!(
            duration("s").is_err()
                && duration("-1s").is_err()
                && duration("").is_err()
                && duration("1..2s").is_err()
        );
        assert!(
            duration("99999999999999999999999h")
                .unwrap_err()
                .contains("too long")
        );
        assert_eq!(size("4MiB"), Ok(4 << 20));
        assert_eq!(size("100B"), Ok(100));
        assert!(size("100").is_err() && size("MiB").is_err());
    }

    #[test]
    fn what_is_shown_can_be_read_back() {
        for text in ["1s", "1500ms", "20us"] {
            assert_eq!(show_duration(duration(text).unwrap()), text);
        }
        assert_eq!(show_size(size("4MiB").unwrap()), "4MiB");
        assert_eq!(show_size(1023), "1023B");
    }
}
