// SPDX-License-Identifier: Apache-2.0
//! How one policy of cpufreq was found.

use std::io;

use serde::{Deserialize, Serialize};

use super::cpufreq::{Driver, Files, Settings};
use super::heat;
use crate::root::Root;
use crate::state::{self, Held, Remembered};

/// What one policy was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// How it is set since.
    pub driver: Driver,
    /// As it was.
    pub settings: Settings,
}

/// The settings of a policy, and the upper limit that is the kernel's own, with what holds it down.
pub(super) struct Seen {
    /// Without that limit: it goes by itself.
    pub(super) settings: Settings,
    pub(super) held_down: Option<(u32, String)>,
}

impl Seen {
    /// As it is now.
    pub(super) fn now(root: &Root, files: &Files) -> io::Result<Seen> {
        let mut settings = files.settings()?;
        let (limit, highest) = (settings.max, files.highest()?);
        let by = match limit < highest {
            true => heat::holds_down(root, files, limit),
            false => None,
        };
        if by.is_some() {
            settings.max = highest;
        }
        Ok(Seen {
            settings,
            held_down: by.map(|by| (limit, by)),
        })
    }
}

/// Those that a former run has left.
pub fn remembered(held: &Held) -> Result<Remembered<Found>, state::Error> {
    let remembered = held.remembered("found.json")?;
    match remembered
        .found()
        .keys()
        .find(|n| Files::number(n).is_none())
    {
        Some(name) => {
            let reason = format!("{name:?} is no policy");
            Err(state::broken(remembered.path(), &reason))
        }
        None => Ok(remembered),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_policies_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let held = Held::take(folder.path(), &Root::new("/")).unwrap();
        let settings = Settings {
            governor: "schedutil".into(),
            setspeed: None,
            min: 1,
            max: 9,
        };
        let found = Found {
            driver: Driver::Clamp,
            settings,
        };
        let mut odd = held.remembered("found.json").unwrap();
        odd.remember([("../policy0".to_owned(), found)]).unwrap();
        let error = remembered(&held).unwrap_err().to_string();
        assert!(error.contains("\"../policy0\" is no policy"), "{error}");
    }
}
