// SPDX-License-Identifier: Apache-2.0
//! A host takes a request only while it has an idle core, and callers keep what has none: the slots of delay scheduling
//! (Zaharia et al., *Delay Scheduling*, EuroSys 2010, section 2), which document 001 names in section 5.2.

use crate::feedback::HostFeedback;
use crate::outlook::Outlook;
use crate::{Level, Load};

/// Open while a core is idle, as `estimate` sees it. Open, too, where nobody has told how many cores there are and
/// nothing is heard of the host: not to know is not to be busy.
pub(crate) fn level(row: &HostFeedback, load: Option<&Load>, outlook: Option<Outlook>) -> Level {
    let is_known = row.cores().is_some() || load.is_some();
    match outlook {
        Some(outlook) if is_known && !outlook.is_idle() => Level::NONE,
        _ => Level::ALL,
    }
}
