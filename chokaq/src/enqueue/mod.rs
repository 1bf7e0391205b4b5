//! The typed way into the storage.

mod all;

pub use all::{EnqueueAll, EnqueuedAll};

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    time::Duration,
};

use serde::Serialize;

use crate::{
    Error, Pool, Result,
    config::Pretty,
    model::{Due, EnqueueOutcome, JobId, JobType, Limits, NewJob, Timestamp},
};

/// Comes from `#[job]` on a struct: what it declared, and the calls that put it in the database.
/// Implemented by the attribute, not by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job",
    label = "this type has no `#[job]` attribute",
    note = "put `#[job]` above the struct, and above its derives"
)]
pub trait Enqueue: Serialize + Sized + Send + 'static {
    /// What `#[job(...)]` declared.
    const JOB_TYPE: JobType;

    /// Puts this job in the database. Set options on the returned builder, then `.await` it.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use chokaq::prelude::*;
    /// # #[job(enqueue_only)] struct SendReceipt { order_id: u64 }
    /// # async fn f(pool: &chokaq::Pool) -> chokaq::Result<()> {
    /// let enqueued = SendReceipt { order_id: 7 }
    ///     .enqueue(pool)
    ///     .delay(Duration::from_secs(60))
    ///     .idempotency_key("order-7")
    ///     .await?;
    /// println!("{} (a duplicate: {})", enqueued.id, enqueued.duplicate);
    /// # Ok(()) }
    /// ```
    fn enqueue(self, pool: &Pool) -> EnqueueOne {
        EnqueueOne { pool: pool.clone(), job: draft(pool, &self) }
    }

    /// Puts many jobs in the database, in transactions of up to 1,000 jobs or 4 MB, with bounded memory.
    ///
    /// If it fails half-way, [`Error::committed`] says how many jobs, in the iterator's order, are in the database.
    fn enqueue_all<I>(pool: &Pool, jobs: I) -> EnqueueAll<Self, I::IntoIter>
    where
        I: IntoIterator<Item = Self>,
    {
        EnqueueAll::new(pool, jobs.into_iter())
    }
}

/// What an enqueue did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enqueued {
    /// The job: the new one, or the active one that holds the idempotency key.
    pub id: JobId,
    /// Whether an active job of this type already held the idempotency key, so that nothing was added.
    pub duplicate: bool,
}

fn draft<T: Enqueue>(pool: &Pool, job: &T) -> Result<NewJob> {
    let job_type = T::JOB_TYPE;
    let payload = serde_json::to_string(job).map_err(|e| {
        Error::invalid(format!(
            "a {} cannot be written as JSON ({e}): mend the field or its `Serialize`",
            job_type.rust_name
        ))
    })?;
    pool.limits().check_payload(job_type.key, &payload)?;
    Ok(new_job(pool, &job_type, payload))
}

/// A job of a type with the type's defaults, and the pool's where the type has none.
fn new_job(pool: &Pool, job_type: &JobType, payload: String) -> NewJob {
    let defaults = pool.policy_defaults();
    NewJob {
        id: JobId::new(),
        queue: job_type.queue.to_owned(),
        job_type: job_type.key.to_owned(),
        payload,
        tags: None,
        idempotency_key: None,
        created_by: None,
        priority: job_type.priority,
        due: Due::Now,
        retries: job_type.policy.retries.unwrap_or(defaults.retries),
        timeout: job_type.policy.timeout.unwrap_or(defaults.timeout),
        max_age: job_type.policy.max_age.unwrap_or(defaults.max_age),
        on_crash: job_type.policy.on_crash,
    }
}

/// One job on its way into the database: set options, then `.await`.
#[must_use = "a job is enqueued only when this is awaited"]
#[derive(Debug)]
pub struct EnqueueOne {
    pool: Pool,
    job: Result<NewJob>,
}

impl EnqueueOne {
    /// A job by its key, of a type that is known here or not.
    pub(crate) fn raw(pool: &Pool, key: &str, known: Option<JobType>, json: String) -> Self {
        let check = || {
            Limits::check_name("type key", key)?;
            serde_json::from_str::<serde::de::IgnoredAny>(&json).map_err(|e| {
                Error::invalid(format!(
                    "the payload of a {key:?} job is not JSON ({e}): pass JSON text"
                ))
            })?;
            pool.limits().check_payload(key, &json)
        };
        let job = check().map(|()| {
            let job_type = known.unwrap_or(JobType::new("", "", ""));
            let mut job = new_job(pool, &job_type, json);
            key.clone_into(&mut job.job_type);
            job
        });
        Self { pool: pool.clone(), job }
    }

    /// Another queue than the type's.
    pub fn queue(self, queue: impl Into<String>) -> Self {
        self.with(|job| {
            job.queue = queue.into();
            Limits::check_name("queue", &job.queue)
        })
    }

    /// Another priority than the type's; higher is fetched first within a queue.
    pub fn priority(self, priority: i32) -> Self {
        self.with(|job| {
            job.priority = priority;
            Ok(())
        })
    }

    /// Due this long after the database's now; at most 50 years.
    pub fn delay(self, delay: Duration) -> Self {
        self.with(|job| {
            job.due = Due::After(delay);
            check_delay(delay)
        })
    }

    /// Due at this time, at most 50 years from now; a time in the past means now.
    pub fn at(self, time: impl Into<Timestamp>) -> Self {
        self.with(|job| {
            let time = time.into();
            job.due = Due::At(time);
            check_delay(time.since(Timestamp::now()))
        })
    }

    /// While an active job of this type holds the same key, nothing is added and the first job's id is returned.
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        self.with(|job| {
            let key = key.into();
            Limits::check_name("idempotency key", &key)?;
            job.idempotency_key = Some(key);
            Ok(())
        })
    }

    /// Tags, for people who search; at most 1,000 characters together.
    pub fn tags<S: Into<String>>(self, tags: impl IntoIterator<Item = S>) -> Self {
        self.with(|job| {
            job.tags = Limits::check_tags(&tags.into_iter().map(Into::into).collect::<Vec<_>>())?;
            Ok(())
        })
    }

    /// Who or what asked for the job.
    pub fn created_by(self, who: impl Into<String>) -> Self {
        self.with(|job| {
            let who = who.into();
            Limits::check_name("creator", &who)?;
            job.created_by = Some(who);
            Ok(())
        })
    }

    /// The first refusal stays: it is what awaiting returns.
    fn with(mut self, change: impl FnOnce(&mut NewJob) -> Result<()>) -> Self {
        if let Ok(job) = &mut self.job
            && let Err(refusal) = change(job)
        {
            self.job = Err(refusal);
        }
        self
    }
}

fn check_delay(delay: Duration) -> Result<()> {
    if delay > Limits::MAX_DURATION {
        return Err(Error::invalid(format!(
            "a due time {} from now is over the limit of 50 years: choose an earlier one",
            Pretty(delay)
        )));
    }
    Ok(())
}

impl IntoFuture for EnqueueOne {
    type Output = Result<Enqueued>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let job = self.job?;
            let id = job.id;
            let outcomes = self.pool.insert(vec![job]).await?;
            Ok(match outcomes.first() {
                Some(EnqueueOutcome::Duplicate { of }) => Enqueued { id: *of, duplicate: true },
                _ => Enqueued { id, duplicate: false },
            })
        })
    }
}
