// SPDX-License-Identifier: Apache-2.0
//! Reports of one stream that wait for the state's owner, as one.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

use super::MAX_REPORT_BYTES;
use super::end::End;
use crate::share::Share;

/// One or more reports, encoded: a decoded one takes several times the memory.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) report: Bytes,
    /// How many.
    pub(super) reports: u64,
    pub(super) share: Share,
}

/// What is looked at before a report is decoded.
#[derive(Clone, PartialEq, prost::Message)]
struct Kind {
    /// As `Report.changes`.
    #[prost(bool, tag = "3")]
    changes: bool,
}

impl Waiting {
    pub(super) fn new(report: Bytes, mut share: Share) -> Result<Self, End> {
        share.hold(report.len())?;
        Ok(Self {
            report,
            reports: 1,
            share,
        })
    }

    /// One more. A whole report says all that those before it do. One of changes says them again in no case: encoded
    /// messages one after another are one message, with the records of all.
    pub(super) fn add(&mut self, report: Bytes) -> Result<(), End> {
        self.reports += 1;
        if !Kind::decode(report.clone())
            .map_err(End::malformed)?
            .changes
        {
            self.share.hold(report.len())?;
            self.report = report;
            return Ok(());
        }
        let bytes = self.report.len() + report.len();
        if bytes > MAX_REPORT_BYTES {
            return Err(End::TooFast);
        }
        self.share.hold(bytes)?;
        let mut both = std::mem::take(&mut self.report)
            .try_into_mut()
            .unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        both.put(report);
        self.report = both.freeze();
        Ok(())
    }
}
