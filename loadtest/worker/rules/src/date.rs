// SPDX-License-Identifier: Apache-2.0
//! Dates in text.

use std::cmp::Ordering;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::Offset;

/// A day, or an instant within one (in UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    day: Date,
    instant: Option<Timestamp>,
}

impl Moment {
    /// The moment a text holds: `2024-05-01` or an RFC 3339 date-time, white space around it allowed.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let shape = text.as_bytes();
        // jiff reads more forms than these two; a feed's other numbers must not become dates.
        let (date, time) = shape.split_at_checked(10)?;
        if !looks_like(date, b"0000-00-00") {
            return None;
        }
        if time.is_empty() {
            let day = text.parse().ok()?;
            return Some(Self { day, instant: None });
        }
        if !is_time(time) {
            return None;
        }
        let instant: Timestamp = text.parse().ok()?;
        let day = Offset::UTC.to_datetime(instant).date();
        Some(Self {
            day,
            instant: Some(instant),
        })
    }

    /// Earlier or later. Where one side is a whole day, days are compared.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self.instant, other.instant) {
            (Some(one), Some(two)) => one.cmp(&two),
            _ => self.day.cmp(&other.day),
        }
    }

    /// Whether both are on one day of UTC.
    pub(crate) fn same_day(&self, other: &Self) -> bool {
        self.day == other.day
    }

    /// A text that only equal moments share.
    pub(crate) fn identity(&self) -> String {
        match self.instant {
            Some(instant) => instant.to_string(),
            None => self.day.to_string(),
        }
    }
}

/// As RFC 3339, section 5.6, has it behind a date: `T10:00:00`, a fraction of a second or none, `Z` or `+02:00`. Letters
/// may be small.
fn is_time(text: &[u8]) -> bool {
    let Some((clock, rest)) = text.split_at_checked(9) else {
        return false;
    };
    let zone = match rest.strip_prefix(b".") {
        None => rest,
        Some(fraction) => match fraction.iter().position(|byte| !byte.is_ascii_digit()) {
            None | Some(0) => return false,
            Some(end) => &fraction[end..],
        },
    };
    matches!(clock[0], b'T' | b't')
        && looks_like(&clock[1..], b"00:00:00")
        && (matches!(zone, b"Z" | b"z")
            || looks_like(zone, b"+00:00")
            || looks_like(zone, b"-00:00"))
}

/// Any digit stands where the pattern has a 0.
fn looks_like(text: &[u8], pattern: &[u8]) -> bool {
    let alike = |(byte, wanted): (&u8, &u8)| match wanted {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    };
    text.len() == pattern.len() && text.iter().zip(pattern).all(alike)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> Moment {
        Moment::read(text).unwrap_or_else(|| panic!("{text:?} is a date"))
    }

    #[test]
    fn only_iso_dates_and_rfc_3339_date_times_are_dates() {
        for text in [
            "2024-02-29",
            " 2024-02-29 ",
            "2024-02-29T10:00:00Z",
            "2024-02-29T10:00:00.5+02:00",
            "2024-02-29t10:00:00z",
            "2024-02-29T10:00:00-02:00",
        ] {
            assert!(Moment::read(text).is_some(), "{text:?}");
        }
        let others = [
            "",
            "2023-02-29",
            "20240229",
            "2024-02-29T10:00:00",
            "2024-02-29T10:00Z",
            "2024-02-29 10:00:00Z",
            "2024-02-29T10:00:00,5Z",
            "2024-02-29T10:00:00.Z",
            "2024-02-29T10:00:00+0200",
            "2024-02-29T10:00:00+02",
            "29-02-2024",
            "2024-2-29",
            "soon",
            "2024-02-29T10:00:00Z[UTC]",
            "٢024-02-29",
        ];
        for text in others {
            assert_eq!(Moment::read(text), None, "{text:?}");
        }
    }

    #[test]
    fn instants_are_compared_as_instants_and_days_as_days() {
        let (early, late) = (
            moment("2024-05-01T23:00:00-04:00"),
            moment("2024-05-02T03:00:01Z"),
        );
        assert_eq!(early.compare(&late), Ordering::Less);
        assert_eq!(early.compare(&moment("2024-05-02")), Ordering::Equal);
        assert!(early.same_day(&late) && !early.same_day(&moment("2024-05-01")));
    }
}
