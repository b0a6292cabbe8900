// SPDX-License-Identifier: Apache-2.0
//! Axes: what they span, where values fall on them, and which values are labelled.

/// How values are spread along an axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal distances for equal differences.
    #[default]
    Linear,
    /// Equal distances for equal ratios; only values above 0 have a place.
    Log,
    /// As `Log` where values are large, and linear near 0, so that 0 has a place: for counts that
    /// span decades. Negative values have none.
    LogFromZero,
}

/// One axis of a plot.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Axis {
    /// What is shown, with its unit: `wait / ms`.
    pub label: String,
    /// How values are spread.
    pub scale: Scale,
    /// First and last value shown; from the data where `None` or where it makes no sense.
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// A linear axis that spans the data.
    #[must_use]
    pub fn linear(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ..Self::default()
        }
    }

    /// A logarithmic axis that spans the data.
    #[must_use]
    pub fn log(label: impl Into<String>) -> Self {
        Self {
            scale: Scale::Log,
            ..Self::linear(label)
        }
    }

    /// An axis that is logarithmic for large values and begins with 0.
    #[must_use]
    pub fn log_from_zero(label: impl Into<String>) -> Self {
        Self {
            scale: Scale::LogFromZero,
            ..Self::linear(label)
        }
    }

    /// The same axis from `first` to `last`.
    #[must_use]
    pub fn range(mut self, first: f64, last: f64) -> Self {
        self.range = Some((first, last));
        self
    }

    /// Whether `value` has a place on this axis, in sight or not.
    pub(crate) fn holds(&self, value: f64) -> bool {
        let has_place = match self.scale {
            Scale::Linear => true,
            Scale::Log => value > 0.0,
            Scale::LogFromZero => value >= 0.0,
        };
        value.is_finite() && has_place
    }

    /// The span that shows all `values`; `None` when there is nothing to show.
    /// `whole_steps` widens it to the next labelled values.
    pub(crate) fn span(
        &self,
        values: impl Iterator<Item = f64>,
        whole_steps: bool,
    ) -> Option<Span> {
        let (low, high) = values
            .filter(|value| self.holds(*value))
            .fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            return None;
        }
        let scale = self.scale;
        let asked = |(l, h): &(f64, f64)| self.holds(*l) && self.holds(*h) && l < h;
        if let Some((low, high)) = self.range.filter(asked) {
            return Some(Span { scale, low, high });
        }
        Some(match scale {
            Scale::Linear => linear_span(low, high, whole_steps),
            Scale::Log => log_span(low, high, whole_steps),
            Scale::LogFromZero => log_from_zero_span(high, whole_steps),
        })
    }
}

fn linear_span(low: f64, high: f64, whole_steps: bool) -> Span {
    let (mut low, mut high) = (low, high);
    // Differences should not look larger than they are: show zero when it is near.
    if whole_steps && low > 0.0 && low <= high / 2.0 {
        low = 0.0;
    }
    let size = low.abs().max(high.abs());
    if high / 2.0 - low / 2.0 <= size * SAME {
        let around = if size == 0.0 { 1.0 } else { size / 10.0 };
        (low, high) = (low - around, high + around);
    }
    if whole_steps {
        let step = step(low, high);
        low = low.min((low / step).floor() * step);
        high = high.max((high / step).ceil() * step);
    }
    Span {
        scale: Scale::Linear,
        low: low.max(f64::MIN),
        high: high.min(f64::MAX),
    }
}

fn log_span(low: f64, high: f64, whole_steps: bool) -> Span {
    let (mut low, mut high) = (low, high);
    if high / low <= 1.0 + SAME {
        (low, high) = (low / 2.0, high * 2.0);
    }
    if whole_steps {
        low = low.min(below(low));
        high = high.max(10.0 / below(10.0 / high));
    }
    Span {
        scale: Scale::Log,
        low: low.max(f64::MIN_POSITIVE),
        high: high.min(f64::MAX),
    }
}

fn log_from_zero_span(high: f64, whole_steps: bool) -> Span {
    // Some decades at least, so that ones and twos do not look like a lot.
    let mut high = high.max(10.0);
    if whole_steps {
        high = high.max(10.0 / below(10.0 / high));
    }
    Span {
        scale: Scale::LogFromZero,
        low: 0.0,
        high: high.min(f64::MAX),
    }
}

/// Values that differ by less than this share are one value: labels could not tell them apart.
const SAME: f64 = 1e-9;

/// The largest of 1, 2, 5 × 10ⁿ that is not above `value`.
fn below(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    // A hair of room: 10.0 / 0.2 must count as 50.
    let digit = value / decade * (1.0 + 1e-12);
    let lead = [5.0, 2.0, 1.0].into_iter().find(|lead| *lead <= digit);
    decade * lead.unwrap_or(1.0)
}

/// The distance between labels: 1, 2 or 5 × 10ⁿ, for four to nine labels.
fn step(low: f64, high: f64) -> f64 {
    let least = (high / 8.0 - low / 8.0).max(f64::MIN_POSITIVE);
    1.0 / below(1.0 / least)
}

/// What an axis shows, from `low` to `high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    scale: Scale,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// A labelled value. The faint ones give way where space is short.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    /// Share of the axis before it, 0 to 1.
    pub(crate) at: f64,
    pub(crate) label: String,
    pub(crate) faint: bool,
}

impl Span {
    /// The share of the axis before `value`: 0 at the low end, 1 at the high one.
    pub(crate) fn place(&self, value: f64) -> f64 {
        match self.scale {
            // Halved, so that the widest spans do not overflow.
            Scale::Linear => (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0),
            Scale::Log => (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
            Scale::LogFromZero => {
                (value.ln_1p() - self.low.ln_1p()) / (self.high.ln_1p() - self.low.ln_1p())
            }
        }
    }

    /// Whether `value` is in sight.
    pub(crate) fn shows(&self, value: f64) -> bool {
        (0.0..=1.0).contains(&self.place(value))
    }

    pub(crate) fn ticks(&self) -> Vec<Tick> {
        match self.scale {
            Scale::Linear => self.even_ticks(),
            Scale::Log => self.ratio_ticks(),
            Scale::LogFromZero => self.ticks_from_zero(),
        }
    }

    fn even_ticks(&self) -> Vec<Tick> {
        let step = step(self.low, self.high);
        let first = (self.low / step - 1e-9).ceil();
        let decimals = (-(step.log10() + 1e-9).floor()).clamp(0.0, 9.0) as usize;
        (0..16)
            .map(|n| (first + f64::from(n)) * step)
            .take_while(|value| self.place(*value) <= 1.0 + 1e-9)
            .enumerate()
            .map(|(n, value)| self.tick(value, decimals, n % 2 == 1))
            .collect()
    }

    fn ratio_ticks(&self) -> Vec<Tick> {
        let decades = self.high.log10() - self.low.log10();
        // Less than a decade may hold a single 1, 2 or 5.
        if decades < 0.999 {
            self.even_ticks_of_values()
        } else if decades <= 3.0 {
            self.power_ticks(&[1.0, 2.0, 5.0], 1, |_, lead| lead != 1.0 && decades > 1.2)
        } else {
            let every = (decades / 7.0).ceil() as usize;
            self.power_ticks(&[1.0], every, |n, _| n % 2 == 1 && decades > 4.0)
        }
    }

    /// 0, and powers of ten; what is between them where there are few.
    fn ticks_from_zero(&self) -> Vec<Tick> {
        let decades = self.high.log10();
        let mut ticks = Vec::new();
        if self.low <= 0.0 {
            ticks.push(self.tick(0.0, 0, false));
        }
        let few = decades <= 2.5;
        let leads: &[f64] = if few { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let every = (decades / 7.0).ceil().max(1.0) as usize;
        for power in (0..=decades.ceil() as i32).step_by(every) {
            for lead in leads {
                let value = lead * 10f64.powi(power);
                if value > self.low && self.place(value) <= 1.0 + 1e-9 {
                    ticks.push(self.tick(value, 0, *lead != 1.0));
                }
            }
        }
        ticks
    }

    /// A label at each of `leads` times every n-th power of ten; `faint` is told which power it is
    /// and the lead.
    fn power_ticks(
        &self,
        leads: &[f64],
        every: usize,
        faint: impl Fn(usize, f64) -> bool,
    ) -> Vec<Tick> {
        let powers = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let mut ticks = Vec::new();
        for (n, power) in powers.step_by(every).enumerate() {
            for lead in leads {
                let value = lead * 10f64.powi(power);
                if (-1e-9..=1.0 + 1e-9).contains(&self.place(value)) {
                    let decimals = (-power).clamp(0, 9) as usize;
                    ticks.push(self.tick(value, decimals, faint(n, *lead)));
                }
            }
        }
        ticks
    }

    /// The labels of a linear span with the same ends, at their places on this one.
    fn even_ticks_of_values(&self) -> Vec<Tick> {
        let even = Self {
            scale: Scale::Linear,
            ..*self
        };
        let place = |at| self.place(self.low + at * (self.high - self.low));
        let ticks = even.even_ticks().into_iter();
        ticks
            .map(|tick| Tick {
                at: place(tick.at).clamp(0.0, 1.0),
                ..tick
            })
            .collect()
    }

    fn tick(&self, value: f64, decimals: usize, faint: bool) -> Tick {
        Tick {
            at: self.place(value).clamp(0.0, 1.0),
            label: number(value, decimals),
            faint,
        }
    }
}

/// A number for people: thousands apart, powers of ten when very large or small.
pub(crate) fn number(value: f64, decimals: usize) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e7).contains(&size) {
        return scientific(value);
    }
    let plain = format!("{size:.decimals$}");
    let (whole, fraction) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let sign = if value < 0.0 && plain.contains(|c| ('1'..='9').contains(&c)) {
        "−"
    } else {
        ""
    };
    format!("{sign}{}{fraction}", grouped(whole))
}

/// Groups of three digits from five digits on, apart by a narrow space that does not break.
fn grouped(digits: &str) -> String {
    if digits.len() < 5 {
        return digits.to_owned();
    }
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// `2×10⁹`, or `10⁹` when the lead is 1.
fn scientific(value: f64) -> String {
    let text = format!("{:.2e}", value.abs());
    let (lead, power) = text.split_once('e').unwrap_or((&text, "0"));
    let lead = lead.trim_end_matches('0').trim_end_matches('.');
    let lead = if lead == "1" {
        String::new()
    } else {
        format!("{lead}×")
    };
    let raised: String = power.chars().map(superscript).collect();
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{lead}10{raised}")
}

fn superscript(c: char) -> char {
    match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        // The others lie side by side: U+2070, U+2074 to U+2079.
        digit => char::from_u32(0x2070 + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit),
    }
}

#[cfg(test)]
#[path = "axis/tests.rs"]
mod tests;
