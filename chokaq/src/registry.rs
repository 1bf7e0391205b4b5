//! From a type's key to the function that decodes and runs it.

use std::{collections::HashMap, future::Future, pin::Pin};

use serde::de::DeserializeOwned;

use crate::{
    Error, Pool, Result,
    enqueue::{Enqueue, EnqueueOne},
    job::{Job, JobCall, JobError, JobOutput},
    model::JobType,
};

/// The future of one run.
pub(crate) type RunFuture = Pin<Box<dyn Future<Output = Result<JobOutput, JobError>> + Send>>;

/// One job type that a worker can run. Made by `#[job]`, collected by `inventory`.
#[derive(Debug, Clone, Copy)]
pub struct Registration {
    pub(crate) job_type: JobType,
    pub(crate) run: fn(JobCall) -> RunFuture,
}

inventory::collect!(Registration);

impl Registration {
    /// The registration of a job.
    pub const fn of<T: Job + Enqueue + DeserializeOwned>() -> Self {
        Self { job_type: T::JOB_TYPE, run: run_job::<T> }
    }
}

fn run_job<T: Job + Enqueue + DeserializeOwned>(call: JobCall) -> RunFuture {
    Box::pin(async move {
        let job: T = serde_json::from_str(&call.payload).map_err(|e| {
            JobError::rejected(format!(
                "the payload is not a {} ({}): {e}",
                T::JOB_TYPE.rust_name,
                T::JOB_TYPE.location
            ))
        })?;
        let output = job.run(&call.context).await?;
        Ok(JobOutput::of(&output))
    })
}

impl JobOutput {
    fn of<T: serde::Serialize>(output: &T) -> Self {
        match serde_json::to_string(output) {
            Ok(json) if json == "null" => Self::default(),
            Ok(json) => Self { json: Some(json), note: None },
            Err(e) => {
                Self { json: None, note: Some(format!("the output is not serialisable: {e}")) }
            }
        }
    }
}

/// The types that one worker serves.
#[derive(Debug, Default, Clone)]
pub(crate) struct Registry {
    by_key: HashMap<&'static str, Registration>,
}

impl Registry {
    /// Everything that `#[job]` registered in this program.
    pub(crate) fn all() -> Vec<Registration> {
        inventory::iter::<Registration>.into_iter().copied().collect()
    }

    /// The lookup over these types.
    ///
    /// # Errors
    /// Two types share a key or an alias: the message names every clash with both places.
    pub(crate) fn new(types: impl IntoIterator<Item = Registration>) -> Result<Self> {
        let mut by_key: HashMap<&'static str, Registration> = HashMap::new();
        let mut clashes = Vec::new();
        for new in types {
            for key in new.job_type.keys() {
                match by_key.get(key) {
                    Some(old) if same_type(old, &new) => {}
                    Some(old) => clashes.push(format!(
                        "{key:?} is the key of both {} ({}) and {} ({})",
                        old.job_type.rust_name,
                        old.job_type.location,
                        new.job_type.rust_name,
                        new.job_type.location
                    )),
                    None => {
                        by_key.insert(key, new);
                    }
                }
            }
        }
        if clashes.is_empty() {
            return Ok(Self { by_key });
        }
        clashes.sort();
        Err(Error::config(format!(
            "{}: give one of them another `type_key`, or serve them from separate workers with `.only::<..>()`",
            clashes.join("; ")
        )))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Registration> {
        self.by_key.get(key)
    }

    /// The served types, by key, each once.
    pub(crate) fn types(&self) -> Vec<&JobType> {
        let mut types: Vec<_> = self
            .by_key
            .iter()
            .filter(|(key, registration)| **key == registration.job_type.key)
            .map(|(_, registration)| &registration.job_type)
            .collect();
        types.sort_by_key(|job_type| job_type.key);
        types
    }
}

/// Registering a type twice is not a clash with itself.
fn same_type(a: &Registration, b: &Registration) -> bool {
    a.job_type.rust_name == b.job_type.rust_name && a.job_type.location == b.job_type.location
}

impl Pool {
    /// Enqueues a job by its type's key and JSON text: for callers that do not have the struct. A type that this
    /// program knows lends its queue, priority and policy; any other gets the defaults.
    ///
    /// ```no_run
    /// # async fn f(pool: &chokaq::Pool) -> chokaq::Result<()> {
    /// pool.enqueue_raw("send_receipt", r#"{"order_id":7,"to":"ada@example.com"}"#).queue("mail").await?;
    /// # Ok(()) }
    /// ```
    pub fn enqueue_raw(&self, key: &str, json: impl Into<String>) -> EnqueueOne {
        let known =
            Registry::all().into_iter().find(|known| known.job_type.keys().any(|k| k == key));
        EnqueueOne::raw(self, key, known.map(|known| known.job_type), json.into())
    }
}
