//! What a job is: ids, states, rows, outcomes and policies. Pure data, no I/O.

mod circuit;
mod ids;
mod job_type;
mod limits;
mod outcome;
mod policy;
mod purge;
mod row;
mod state;
mod stats;
mod time;

pub use circuit::{Circuit, CircuitReport, CircuitState};
pub use ids::{JobId, LeaseId, WorkerId};
pub use job_type::JobType;
pub use limits::Limits;
pub use outcome::{AttemptError, FailureReason, Finish, FinishOutcome, Outcome};
pub use policy::{Backoff, JobPolicy, OnCrash, PolicyDefaults};
pub use purge::Purge;
pub use row::{
    AttemptRecord, Beat, BeatOutcome, CancelOutcome, Control, Due, EnqueueOutcome, FetchReply,
    FetchRequest, FetchedJob, JobDetail, JobState, Lease, MarkOutcome, NewJob, PayloadEdit,
    QueueSettings, Release, ResurrectEdits, ResurrectOutcome, Zombie, ZombieScan,
};
pub use state::{JobStatus, TRANSITIONS, Transition};
pub use stats::{
    ArchiveRow, DlqErrorGroup, DlqRow, PageCursor, QueueHealth, QueueStats, SummaryStats,
    ThroughputPoint,
};
pub use time::Timestamp;
