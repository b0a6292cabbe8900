// SPDX-License-Identifier: Apache-2.0
//! What is to be generated.

use crate::object::Format;

/// What is to be generated.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// All that is random follows from it.
    pub seed: u64,
    /// Projects: 1 to 100,000.
    pub projects: usize,
    /// Items of the smallest possible project, at least 1.
    pub items_min: u64,
    /// Items of the largest possible project, at most a billion.
    pub items_max: u64,
    /// How steeply projects get rarer with their size: the exponent of the bounded Pareto
    /// distribution, over 0 and at most 10. Smaller is a heavier tail.
    pub items_shape: f64,
    /// Channels of the project with the most, 1 to 1,000.
    pub channels_max: u32,
    /// How items are written down.
    pub format: Format,
}

impl Default for Settings {
    /// Document 001 (section 4.1.2) has projects of hundreds and of millions of items, with one
    /// channel and with hundreds, most close to each other. The numbers and the shape are ours.
    fn default() -> Self {
        Self {
            seed: 1,
            projects: 24,
            items_min: 200,
            items_max: 200_000,
            items_shape: 1.0,
            channels_max: 5,
            format: Format::Parquet,
        }
    }
}

/// A setting that is out of its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {value}, and must be {range}")]
pub struct BadSetting {
    /// Which.
    pub name: &'static str,
    /// As given.
    pub value: String,
    /// What it may be.
    pub range: String,
}

impl Settings {
    /// Whether each setting is in its range.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), BadSetting> {
        let whole = |name, value: u64, low: u64, high: u64| {
            let range = format!("from {low} to {high}");
            refuse(name, value, (low..=high).contains(&value), range)
        };
        whole("projects", self.projects as u64, 1, 100_000)?;
        whole("items-max", self.items_max, 1, 1_000_000_000)?;
        whole("items-min", self.items_min, 1, self.items_max)?;
        whole("channels-max", u64::from(self.channels_max), 1, 1000)?;
        let shape = self.items_shape;
        let fits = shape > 0.0 && shape <= 10.0;
        refuse("items-shape", shape, fits, "over 0 and at most 10".into())
    }
}

fn refuse(
    name: &'static str,
    value: impl ToString,
    fits: bool,
    range: String,
) -> Result<(), BadSetting> {
    match fits {
        true => Ok(()),
        false => Err(BadSetting {
            name,
            value: value.to_string(),
            range,
        }),
    }
}
