// SPDX-License-Identifier: Apache-2.0
//! A host takes a request only while it has an idle core, and callers keep what has none: the slots of delay scheduling
//! (Zaharia et al., *Delay Scheduling*, EuroSys 2010, section 2), which document 001 names in section 5.2.

use crate::Level;
use crate::feedback::HostFeedback;
use crate::outlook::Outlook;
use crate::standing::Clock;

/// Open while a core is idle, as `estimate` sees it. Open, too, where nobody has told how many cores there are and
/// nothing is heard of the host: not to know is not to be busy.
pub(crate) fn level(row: &HostFeedback, outlook: Option<Outlook>, clock: Clock) -> Level {
    let load = row.load.as_ref();
    let is_heard = load.is_some_and(|load| clock.believes(load.observed));
    let is_known = row.cores().is_some() || is_heard;
    match outlook {
        Some(outlook) if is_known && !outlook.is_idle() => Level::NONE,
        _ => Level::ALL,
    }
}
