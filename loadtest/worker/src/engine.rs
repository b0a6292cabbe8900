// SPDX-License-Identifier: Apache-2.0
//! What gives joblets their time: a model, or cores that do the work.

pub mod emulated;

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use weir_executor::{Event, Executor, Full, JobId, Load, Request, Work};

/// How long a joblet that nobody wants any more may go on, unless it is set otherwise: its result may be of use to
/// others, but a caller that leaves shall not keep cores for as long as its rules like.
pub const UNWANTED: Duration = Duration::from_secs(30);

/// Runs an [`Executor`]. Times are since the host began.
pub trait Engine: Debug + Send + 'static {
    /// What its joblets do.
    type Work: Work;

    /// Accepts a job.
    fn submit(&mut self, now: Duration, request: Request<Self::Work>) -> Result<JobId, Full>;

    /// Forgets a job; what runs for it goes on to its end.
    fn cancel(&mut self, now: Duration, job: JobId);

    /// Forgets a job, and stops what runs for it alone.
    fn abort(&mut self, now: Duration, job: JobId);

    /// Asks everything that runs to end, wanted or not.
    fn stop(&mut self);

    /// Whether nothing runs that this process would have to wait for.
    fn is_still(&self) -> bool;

    /// What has happened up to `now` and was not told yet.
    fn advance(&mut self, now: Duration) -> Vec<Event<<Self::Work as Work>::Error>>;

    /// Returns when `advance` may have something new. May be dropped and asked again.
    fn wake(&mut self, now: Duration) -> impl Future<Output = ()> + Send;

    /// The load now.
    fn load(&mut self, now: Duration) -> Load;

    /// The executor underneath.
    fn executor(&self) -> &Executor<Self::Work>;
}
