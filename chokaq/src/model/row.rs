//! What goes to the storage and what comes back.

use std::{collections::HashMap, time::Duration};

use crate::model::{FailureReason, JobId, JobStatus, LeaseId, OnCrash, Timestamp, WorkerId};

/// When a new job is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Due {
    /// At once.
    #[default]
    Now,
    /// This long after the database's now.
    After(Duration),
    /// At this moment.
    At(Timestamp),
}

/// A job to insert: checked against the limits, with every policy that rescue and resurrection need.
#[derive(Debug, Clone)]
pub struct NewJob {
    /// Chosen by the producer, so that a repeated insert recognises itself.
    pub id: JobId,
    /// The queue.
    pub queue: String,
    /// The type's key.
    pub job_type: String,
    /// JSON text.
    pub payload: String,
    /// A JSON array of strings.
    pub tags: Option<String>,
    /// Unique per type among active jobs.
    pub idempotency_key: Option<String>,
    /// Who enqueued it.
    pub created_by: Option<String>,
    /// Higher first.
    pub priority: i32,
    /// When it is due.
    pub due: Due,
    /// Re-executions after the first.
    pub retries: u32,
    /// How long one attempt may run.
    pub timeout: Duration,
    /// The deadline is this long after it was first due.
    pub max_age: Duration,
    /// What rescue does when the worker died.
    pub on_crash: OnCrash,
}

/// What an enqueue did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnqueueOutcome {
    /// The job stands in the storage (also when a repeated call found it there, or already finished).
    Stored,
    /// An active job of the type holds the idempotency key; nothing was inserted.
    Duplicate {
        /// The job that holds it.
        of: JobId,
    },
}

/// The proof that a worker holds a job. Only a fetch makes one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    pub(crate) job: JobId,
    pub(crate) seq: i64,
    pub(crate) fence: LeaseId,
    pub(crate) worker: WorkerId,
}

impl Lease {
    /// The job.
    pub fn job(&self) -> JobId {
        self.job
    }

    /// The fetch's fence.
    pub fn lease_id(&self) -> LeaseId {
        self.fence
    }

    /// The holder.
    pub fn worker(&self) -> &WorkerId {
        &self.worker
    }
}

/// A claimed row, before it starts.
#[derive(Debug, Clone)]
pub struct FetchedJob {
    /// The proof of ownership.
    pub lease: Lease,
    /// The queue.
    pub queue: String,
    /// The type's key.
    pub job_type: String,
    /// JSON text.
    pub payload: String,
    /// A JSON array of strings.
    pub tags: Option<String>,
    /// Higher first.
    pub priority: i32,
    /// Attempts that were started before.
    pub attempts: u32,
    /// Re-executions after the first.
    pub retries: u32,
    /// How long one attempt may run.
    pub timeout: Duration,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// When it was due.
    pub due_at: Timestamp,
    /// For how long it has gone round workers that do not know its type.
    pub unknown_for: Option<Duration>,
    /// What was left of its lifetime when it was fetched; zero past its deadline.
    pub expires_in: Duration,
}

/// A request for work.
#[derive(Debug, Clone)]
pub struct FetchRequest {
    /// Who asks.
    pub worker: WorkerId,
    /// A fresh id, or that of a call whose reply was lost: the rows that carry it are returned again.
    pub lease: LeaseId,
    /// Whether an earlier call with this lease may have been committed.
    pub is_repeat: bool,
    /// The queues served; `None` serves all.
    pub queues: Option<Vec<String>>,
    /// At most this many rows; 0 asks for none (the control part is answered all the same).
    pub take: usize,
    /// At most this many rows of queues with a MaxWorkers limit: the permits that are idle now.
    pub take_limited: usize,
    /// Stop claiming when this many bytes of payload are reached (one row is always allowed).
    pub max_bytes: usize,
    /// Queues that had work and got no share of this worker's earlier batches, with how many batches in a row:
    /// they come first, so that a flood elsewhere cannot starve them. Taken from the last reply.
    pub passed_over: HashMap<String, u32>,
    /// Whether to answer [`FetchReply::control`] too: a round trip saved when a control read is due anyway.
    pub with_control: bool,
}

/// What a fetch brings.
#[derive(Debug, Clone, Default)]
pub struct FetchReply {
    /// The claimed rows, in the order to run them.
    pub jobs: Vec<FetchedJob>,
    /// When the next delayed row is due, from now; `None` when there is none.
    pub next_due: Option<Duration>,
    /// Queues that had work and got no share.
    pub passed_over: HashMap<String, u32>,
    /// What operators have set or asked, where the request wanted it.
    pub control: Option<Control>,
}

/// What operators have set or asked that concerns one worker.
#[derive(Debug, Clone, Default)]
pub struct Control {
    /// The served queues whose rows may not be fetched or started now (paused or inactive).
    pub stopped_queues: Vec<String>,
    /// The served queues that have a lease of their own.
    pub queue_leases: Vec<(String, Duration)>,
    /// Running jobs of this worker whose cancellation was asked.
    pub cancels: Vec<JobId>,
}

impl Control {
    /// From the settings of queues: name, whether it is stopped, and a lease of its own.
    pub(crate) fn new(
        settings: impl IntoIterator<Item = (String, bool, Option<Duration>)>,
        cancels: Vec<JobId>,
    ) -> Self {
        let mut control = Self { cancels, ..Self::default() };
        for (queue, is_stopped, lease) in settings {
            control.queue_leases.extend(lease.map(|lease| (queue.clone(), lease)));
            if is_stopped {
                control.stopped_queues.push(queue);
            }
        }
        control
    }
}

/// The answer to a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkOutcome {
    /// User code may run.
    Started {
        /// This attempt; the first is 1.
        attempt: u32,
        /// When it started, by the database's clock.
        started_at: Timestamp,
    },
    /// The row is not this lease's any more: user code must not run.
    LeaseLost,
}

/// One running job's heartbeat.
#[derive(Debug, Clone)]
pub struct Beat {
    /// The proof of ownership.
    pub lease: Lease,
    /// Progress to store, when it changed: a share of 0.0 to 1.0 and a note.
    pub progress: Option<(f64, String)>,
}

/// The answer to one heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeatOutcome {
    /// The lease holds.
    Alive,
    /// The lease holds, and an operator asked for the job's cancellation.
    CancelRequested,
    /// The row is not this lease's any more.
    LeaseLost,
}

/// A fetched row to give back.
#[derive(Debug, Clone)]
pub struct Release {
    /// The proof of ownership.
    pub lease: Lease,
    /// When it is due again; `None` leaves the due time as it is.
    pub delay: Option<Duration>,
    /// Whether it goes back because this worker does not know its type: the storage notes since when.
    pub unknown_type: bool,
}

/// The limits of a scan for zombies.
#[derive(Debug, Clone, Copy)]
pub struct ZombieScan {
    /// The lease, where the queue sets no limit of its own.
    pub lease: Duration,
    /// The least time between the scan that notes a suspect and the one that moves it: two beats.
    pub suspicion: Duration,
    /// At most this many rows move.
    pub batch: usize,
}

/// A job that rescue moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zombie {
    /// The job.
    pub job: JobId,
    /// Its queue.
    pub queue: String,
    /// Its type.
    pub job_type: String,
    /// The worker that held it.
    pub worker: Option<String>,
    /// Why it is dead; `None`: it is Pending again (`on_crash = "retry"`, attempts left).
    pub reason: Option<FailureReason>,
}

/// What a cancel did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// It was waiting: it stands in the dead-letter queue now.
    Cancelled,
    /// It runs: its worker is told.
    Requested,
    /// No active job has this id.
    NotActive,
}

/// What may be changed when a dead job is resurrected; `None` keeps.
#[derive(Debug, Clone, Default)]
pub struct ResurrectEdits {
    /// Another payload, JSON text.
    pub payload: Option<PayloadEdit>,
    /// Other tags, a JSON array; `Some(None)` removes them.
    pub tags: Option<Option<String>>,
    /// Another priority.
    pub priority: Option<i32>,
    /// Another queue.
    pub queue: Option<String>,
}

/// A payload that was checked to be JSON within the limits.
#[derive(Debug, Clone)]
pub struct PayloadEdit(pub(crate) String);

impl PayloadEdit {
    /// Checks the text.
    ///
    /// # Errors
    /// Not JSON, or too large.
    pub fn new(limits: &crate::model::Limits, json: impl Into<String>) -> crate::Result<Self> {
        let json = json.into();
        serde_json::from_str::<serde::de::IgnoredAny>(&json)
            .map_err(|e| crate::Error::invalid(format!("the edited payload is not JSON: {e}")))?;
        limits.check_payload("edited", &json)?;
        Ok(Self(json))
    }
}

/// What a resurrect did with one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResurrectOutcome {
    /// It is Pending again.
    Resurrected,
    /// No job in the dead-letter queue has this id.
    NotDead,
    /// An active job of its type holds its idempotency key: it stays where it is.
    KeyHeld {
        /// The active job.
        by: JobId,
    },
}

/// A queue's settings; for a change, `None` keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// Paused: nothing is fetched; what runs goes on.
    pub paused: Option<bool>,
    /// Inactive: as paused, and the queue is hidden from what operators watch.
    pub active: Option<bool>,
    /// At most this many jobs fetched or running, over all workers; `Some(None)` removes the limit.
    pub max_workers: Option<Option<u32>>,
    /// The lease of its running jobs; `Some(None)` goes back to the global one.
    pub zombie_timeout: Option<Option<Duration>>,
}

/// Where a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobState {
    /// In JobsHot.
    Active(JobStatus),
    /// In JobsArchive.
    Succeeded,
    /// In JobsDLQ.
    Dead(FailureReason),
}

/// One failed attempt, as kept.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct AttemptRecord {
    /// The attempt; the first is 1.
    pub attempt: u32,
    /// When it failed, milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// A stable word for the kind of failure.
    pub kind: String,
    /// The error and its causes, cut at 8 KB.
    pub text: String,
}

/// Everything known of one job.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JobDetail {
    /// The job.
    pub id: JobId,
    /// Where it is.
    pub state: JobState,
    /// The queue.
    pub queue: String,
    /// The type's key.
    pub job_type: String,
    /// JSON text.
    pub payload: String,
    /// A JSON array of strings.
    pub tags: Option<String>,
    /// The idempotency key.
    pub idempotency_key: Option<String>,
    /// Who enqueued it.
    pub created_by: Option<String>,
    /// Higher first.
    pub priority: i32,
    /// Attempts that were started.
    pub attempts: u32,
    /// Re-executions after the first.
    pub retries: u32,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// When it is, or was last, due.
    pub due_at: Timestamp,
    /// After this moment it is not retried.
    pub deadline_at: Timestamp,
    /// When its last attempt started.
    pub started_at: Option<Timestamp>,
    /// When it left JobsHot.
    pub finished_at: Option<Timestamp>,
    /// The worker that holds or finished it.
    pub worker: Option<String>,
    /// When an operator asked for its cancellation.
    pub cancel_requested_at: Option<Timestamp>,
    /// The share done, 0.0 to 1.0, and a note.
    pub progress: Option<(f64, String)>,
    /// The output as JSON text.
    pub output: Option<String>,
    /// Why no output is kept, where it could not be.
    pub output_note: Option<String>,
    /// The errors of its newest attempts, oldest first.
    pub errors: Vec<AttemptRecord>,
}

impl JobDetail {
    /// The output as the type that the handler returned; `None` while there is none (`()` leaves none).
    ///
    /// # Errors
    /// The output is not such a value.
    pub fn output<T: serde::de::DeserializeOwned>(&self) -> crate::Result<Option<T>> {
        let Some(json) = &self.output else { return Ok(None) };
        serde_json::from_str(json).map(Some).map_err(|e| {
            crate::Error::invalid(format!(
                "the output of job {} is not a {}: {e}",
                self.id,
                std::any::type_name::<T>()
            ))
        })
    }
}
