// SPDX-License-Identifier: Apache-2.0
//! Numbers in text.

/// The number a text holds: decimal, finite, white space around it allowed. Minus zero is zero, so
/// that equal numbers are equal in every ordering.
pub(crate) fn read(text: &str) -> Option<f64> {
    let number = text.trim().parse::<f64>().ok()?;
    number.is_finite().then_some(number + 0.0)
}

/// The shortest decimal text that reads back as `number`; with `decimals`, exactly so many digits
/// after the point, a half rounded away from zero. The shortest text is what is rounded, so 1.005
/// becomes 1.01 although the nearest binary number is a little less.
pub(crate) fn write(number: f64, decimals: Option<usize>) -> String {
    let shortest = (number + 0.0).to_string();
    match decimals {
        Some(decimals) => round(&shortest, decimals),
        None => shortest,
    }
}

/// `shortest` is digits, perhaps with a sign before and a point within: f64 never prints exponents.
fn round(shortest: &str, decimals: usize) -> String {
    let (sign, digits) = match shortest.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", shortest),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let (kept, dropped) = fraction.split_at(decimals.min(fraction.len()));
    let mut rounded: Vec<u8> = whole.bytes().chain(kept.bytes()).collect();
    rounded.resize(whole.len() + decimals, b'0');
    if dropped
        .as_bytes()
        .first()
        .is_some_and(|digit| *digit >= b'5')
    {
        increment(&mut rounded);
    }
    let sign = if rounded.iter().all(|digit| *digit == b'0') {
        ""
    } else {
        sign
    };
    let point = rounded.len() - decimals;
    let mut text = String::with_capacity(rounded.len() + 2);
    text.push_str(sign);
    for (at, digit) in rounded.iter().enumerate() {
        if at == point {
            text.push('.');
        }
        text.push(char::from(*digit));
    }
    text
}

/// Adds one to decimal digits.
fn increment(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_trimmed_finite_decimal_text() {
        assert_eq!(read(" 15.00\t"), Some(15.0));
        assert_eq!(read("-1e3"), Some(-1000.0));
        assert_eq!(read("-0").map(f64::to_bits), Some(0));
        for text in [
            "", " ", "1,5", "15 EUR", "inf", "NaN", "1e999", "0x10", "1_000",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_half_is_rounded_away_from_zero_as_it_is_written() {
        let cases = [
            (1.005, 2, "1.01"),
            (2.5, 0, "3"),
            (-2.5, 0, "-3"),
            (9.99, 1, "10.0"),
            (-0.04, 1, "0.0"),
            (15.0, 2, "15.00"),
            (1e21, 1, "1000000000000000000000.0"),
            (1e-9, 3, "0.000"),
        ];
        for (number, decimals, text) in cases {
            assert_eq!(write(number, Some(decimals)), text);
        }
        assert_eq!(write(-0.0, None), "0");
        assert_eq!(write(0.1 + 0.2, None), "0.30000000000000004");
    }
}
