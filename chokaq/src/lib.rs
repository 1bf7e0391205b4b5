#![doc = include_str!("../README.md")]
//!
//! # Map of the crate
//!
//! [`job`] declares a job, [`Job`] says what it does, [`Enqueue`] puts it in the database behind a [`Pool`]. A
//! [`Worker`] runs jobs; [`run()`] and [`app()`] are the one line in `main`. [`Operator`] is for the people who watch.

#![cfg_attr(
    not(feature = "sqlite"),
    allow(dead_code, reason = "without a backend, what only backends call has no caller")
)]

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
pub use model::{
    ArchiveRow, AttemptRecord, Backoff, CancelOutcome, Circuit, CircuitState, DlqErrorGroup,
    DlqRow, FailureReason, JobDetail, JobId, JobState, JobStatus, JobType, OnCrash, PageCursor,
    Purge, QueueHealth, QueueStats, ResurrectOutcome, SummaryStats, ThroughputPoint, Timestamp,
};
pub use operator::{Edits, Operator};
pub use pool::{Pool, PoolBuilder};
pub use run::{App, app, run};
pub use serde;
#[cfg(feature = "mssql")]
pub use storage::mssql::AccessTokens;
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
