//! What passes through the tower layers of a worker.

use crate::job::JobContext;

/// One run of a job, as a worker's layers see it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JobCall {
    /// The job's context: id, type, queue, attempt, cancellation, state.
    pub context: JobContext,
    /// The payload, JSON text.
    pub payload: String,
}

impl JobCall {
    pub(crate) fn new(context: JobContext, payload: String) -> Self {
        Self { context, payload }
    }
}

/// What a run that succeeded leaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobOutput {
    /// The output as JSON text; `None` for `()`.
    pub json: Option<String>,
    /// Why no output is kept, where it could not be (too large, not serialisable).
    pub note: Option<String>,
}
