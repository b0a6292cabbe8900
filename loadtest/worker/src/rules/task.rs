// SPDX-License-Identifier: Apache-2.0
//! What the joblets of a rule-processing job do.

use std::sync::Arc;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use weir_executor::{Kind, Product, Request, ResultId, Step, Work};
use weir_feeds::{FeedLimits, ItemStore, Object, StoreError};
use weir_rules::{EvaluateError, Feed, Limits, Output, Plan, Rules, SinkClosed, Stop};

/// A second core is worth its while for so many bytes of the stored object.
const BYTES_PER_CORE: u64 = 1 << 20;

/// What a result counts in the cache beside its items: about what its entry takes, and each of its
/// fields beside the name. Without it, results without items would be kept without end.
const ENTRY: usize = 1024;
const FIELD: usize = 128;

/// One joblet of a rule-processing job.
#[derive(Debug, Clone)]
pub enum Task {
    /// FeedSource: reads and decodes the items of a project.
    Fetch(Object),
    /// SharedOperators and Operators.
    Apply {
        /// What to apply.
        rules: Rules,
        /// To whose items, for the log.
        project: Arc<str>,
    },
    /// OutputFeed: writes the answer.
    Answer {
        /// What to write.
        output: Arc<Output>,
        /// Takes it. Unbounded, as a core shall not wait for a slow client; [`Limits`] bound it.
        sink: mpsc::UnboundedSender<Bytes>,
        /// Of the request, for the log.
        session: Arc<str>,
    },
}

/// Why a joblet has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TaskError {
    /// The items cannot be had.
    #[error("{0}")]
    Store(Arc<StoreError>),
    /// The rules cannot be applied.
    #[error("{0}")]
    Evaluate(Arc<EvaluateError>),
    /// A defect of this program; the host goes on.
    #[error("the joblet failed by a defect of the host: see its log")]
    Defect,
}

impl Work for Task {
    type Output = Arc<Feed>;
    type Error = TaskError;
}

/// What tasks work with.
#[derive(Debug)]
pub struct Tools {
    /// Where items come from.
    pub store: ItemStore,
    /// Limits of a feed while it is read.
    pub feed_limits: FeedLimits,
    /// Limits of an evaluation.
    pub limits: Limits,
    /// Drives the store's I/O while a task's thread waits for it.
    pub io: Handle,
}

impl Task {
    /// What it is about, for the log: the project of a FeedSource, project/digest of the rules of
    /// SharedOperators and Operators, the session of an OutputFeed.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Fetch(object) => object.project.to_string(),
            Self::Apply { rules, project } => {
                format!("{project}/{:032x}", u128::from_be_bytes(rules.id()))
            }
            Self::Answer { session, .. } => session.to_string(),
        }
    }

    /// Does the work on so many cores. Blocks; `stop` ends it between two batches.
    pub fn run(
        &self,
        input: Option<Arc<Feed>>,
        cores: usize,
        tools: &Tools,
        stop: &Stop,
    ) -> Result<Product<Arc<Feed>>, TaskError> {
        match (self, input) {
            (Self::Fetch(object), _) => {
                let Tools {
                    store, feed_limits, ..
                } = tools;
                let fetched = tools
                    .io
                    .block_on(store.fetch(object, cores, feed_limits, stop));
                let feed = fetched.map_err(|e| TaskError::Store(Arc::new(e)))?;
                Ok(product(feed))
            }
            (Self::Apply { rules, .. }, Some(input)) => {
                let feed = rules.apply(&input, cores, &tools.limits, stop)?;
                Ok(product(feed))
            }
            (Self::Answer { output, sink, .. }, Some(input)) => {
                let mut send = |chunk| sink.send(chunk).map_err(|_| SinkClosed);
                output.write(&input, cores, &tools.limits, stop, &mut send)?;
                Ok(Product {
                    output: input,
                    bytes: 0,
                })
            }
            (_, None) => Err(TaskError::Defect),
        }
    }
}

impl From<EvaluateError> for TaskError {
    fn from(error: EvaluateError) -> Self {
        Self::Evaluate(Arc::new(error))
    }
}

fn product(feed: Feed) -> Product<Arc<Feed>> {
    let names = feed.schema().fields().iter();
    let names: usize = names.map(|field| field.name().len() + FIELD).sum();
    let bytes = (feed.bytes() + names + ENTRY) as u64;
    Product {
        output: Arc::new(feed),
        bytes,
    }
}

/// The joblets of a prefetch: FeedSource alone (document 001, section 3.2).
#[must_use]
pub fn prefetch(object: &Object, class: u8) -> Request<Task> {
    Request {
        class,
        steps: vec![fetch(object)],
    }
}

/// The joblets of a job. One whose rules are empty is left out.
#[must_use]
pub fn job(
    object: &Object,
    plan: &Plan,
    class: u8,
    session: &str,
    sink: mpsc::UnboundedSender<Bytes>,
) -> Request<Task> {
    let mut steps = vec![fetch(object)];
    let mut version = Digest::of(object.version);
    for (kind, rules) in [
        (Kind::SharedOperators, &plan.shared),
        (Kind::Operators, &plan.own),
    ] {
        if rules.is_empty() {
            continue;
        }
        version = version.then(kind, rules.id());
        steps.push(Step {
            kind,
            result: Some(ResultId {
                kind,
                key: Arc::clone(&object.project),
                version: version.0,
            }),
            keep: plan.cache,
            cores: useful_cores(object),
            work: Task::Apply {
                rules: rules.clone(),
                project: Arc::clone(&object.project),
            },
        });
    }
    steps.push(Step {
        kind: Kind::OutputFeed,
        result: None,
        keep: false,
        cores: useful_cores(object),
        work: Task::Answer {
            output: Arc::new(plan.output.clone()),
            sink,
            session: session.into(),
        },
    });
    Request { class, steps }
}

fn fetch(object: &Object) -> Step<Task> {
    Step {
        kind: Kind::FeedSource,
        result: Some(ResultId {
            kind: Kind::FeedSource,
            key: Arc::clone(&object.project),
            version: object.version,
        }),
        keep: true,
        cores: useful_cores(object),
        work: Task::Fetch(object.clone()),
    }
}

fn useful_cores(object: &Object) -> usize {
    usize::try_from(object.bytes.div_ceil(BYTES_PER_CORE)).unwrap_or(usize::MAX)
}

/// Names a result by all that it came from.
#[derive(Clone, Copy)]
struct Digest(u128);

impl Digest {
    fn of(items: u128) -> Self {
        Self(items)
    }

    fn then(self, kind: Kind, rules: [u8; 16]) -> Self {
        use sha2::{Digest as _, Sha256};
        let mut hash = Sha256::new();
        hash.update(self.0.to_le_bytes());
        hash.update([kind as u8]);
        hash.update(rules);
        let mut first = [0; 16];
        first.copy_from_slice(&hash.finalize()[..16]);
        Self(u128::from_le_bytes(first))
    }
}
