//! Background jobs for Rust on SQL Server, with an embedded SQLite default.

extern crate self as chokaq;

#[doc(hidden)]
pub mod config;
mod enqueue;
mod error;
mod job;
#[doc(hidden)]
pub mod model;
mod operator;
mod pool;
mod registry;
mod run;
#[doc(hidden)]
pub mod storage;
mod worker;

pub use chokaq_macros::job;
pub use enqueue::{Enqueue, EnqueueAll, EnqueueOne, Enqueued, EnqueuedAll};
pub use error::{Error, Result};
pub use job::{CancelCause, Job, JobCall, JobContext, JobError, JobOutput};
pub use model::{Backoff, FailureReason, JobId, OnCrash, Timestamp};
pub use operator::{Edits, Operator};
pub use pool::Pool;
pub use run::{App, app, run};
pub use serde;
pub use worker::{DeadLetter, JobSet, Worker, WorkerBuilder, WorkerHandle};

/// What `#[job]` expands to; not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
    pub use serde;

    pub use crate::{
        enqueue::Enqueue,
        model::{Backoff, JobPolicy, JobType, OnCrash},
        registry::Registration,
    };
    pub use std::time::Duration;

    /// serde's derives under a name that explains the compiler's error when a struct derives them above `#[job]`.
    pub mod job_stands_above_derives {
        pub use serde::{Deserialize, Serialize};
    }
}

/// What a file with jobs needs: `use chokaq::prelude::*;`.
pub mod prelude {
    pub use crate::{Enqueue, Job, JobContext, JobError, job};
}
