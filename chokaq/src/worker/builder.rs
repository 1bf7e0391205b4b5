//! How a worker is described.

use std::{
    any::TypeId,
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize},
    },
    time::Duration,
};

use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::{Layer, Service, service_fn, util::BoxCloneSyncService};

use crate::{
    Enqueue, Error, Job, Pool, Result,
    config::{Settings, WorkerSettings},
    error::BoxError,
    job::{JobCall, JobFailure, JobOutput, StateMap},
    model::{Limits, WorkerId},
    registry::{Registration, Registry},
    worker::{
        Worker,
        buffer::Buffer,
        circuits::Circuits,
        left::TheEnd,
        limiter::Limiter,
        queue_leases::QueueLeases,
        running::Running,
        shared::{DeadLetter, JobService, OnDeadLetter, RetryRules, Shared},
        trouble::Episode,
    },
};

type Wrap = Box<dyn FnOnce(JobService) -> JobService + Send>;
type Shutdown = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Describes a worker; from [`Worker::builder`].
///
/// `chokaq.toml` and the environment (`CHOKAQ_CONCURRENCY`, ...) override what is set here.
#[must_use = "a builder does nothing until `build`"]
pub struct WorkerBuilder {
    pool: Pool,
    settings: WorkerSettings,
    state: StateMap,
    layers: Vec<Wrap>,
    registered: Vec<Registration>,
    only: Option<Vec<Registration>>,
    on_dead_letter: Option<OnDeadLetter>,
    shutdown: Option<Shutdown>,
}

impl fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerBuilder").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl WorkerBuilder {
    pub(crate) fn new(pool: &Pool) -> Self {
        Self {
            pool: pool.clone(),
            settings: WorkerSettings::default(),
            state: StateMap::new(),
            layers: Vec::new(),
            registered: Vec::new(),
            only: None,
            on_dead_letter: None,
            shutdown: None,
        }
    }

    /// The queues to serve; default: those of the registered types. `["*"]` serves all.
    pub fn queues<S: Into<String>>(mut self, queues: impl IntoIterator<Item = S>) -> Self {
        self.settings.queues = Some(queues.into_iter().map(Into::into).collect());
        self
    }

    /// How many jobs may run at once; default 10 per core.
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.settings.concurrency = jobs;
        self
    }

    /// The most rows held that have not started; default 100. A worker holds fewer: what it starts in about a second.
    pub fn buffer(mut self, rows: usize) -> Self {
        self.settings.buffer = rows;
        self
    }

    /// The most rows of one fetch; default 100.
    pub fn batch(mut self, rows: usize) -> Self {
        self.settings.batch = rows;
        self
    }

    /// How often to look for work where nothing wakes the worker; default 1 s, with jitter.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.settings.poll_interval = interval;
        self
    }

    /// How often running jobs renew their lease; default 10 s.
    pub fn heartbeat_interval(mut self, interval: Duration) -> Self {
        self.settings.heartbeat_interval = interval;
        self
    }

    /// How old a heartbeat may be before the job counts as abandoned; default 2 min, at least three heartbeats.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// How long a row may be fetched without being started before it goes back; default 10 min.
    pub fn fetched_limit(mut self, limit: Duration) -> Self {
        self.settings.fetched_limit = limit;
        self
    }

    /// How often to look for what dead workers hold; default 30 s, with jitter.
    pub fn scan_interval(mut self, interval: Duration) -> Self {
        self.settings.scan_interval = interval;
        self
    }

    /// What running jobs get to finish when the worker stops; default 30 s.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.settings.shutdown_grace = grace;
        self
    }

    /// What a handler gets to stop once its context is cancelled; default 5 s.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.settings.cancel_grace = grace;
        self
    }

    /// The share of random time added to a retry's wait, 0.0 to 1.0; default 0.2.
    pub fn jitter(mut self, share: f64) -> Self {
        self.settings.jitter = share;
        self
    }

    /// How many failures of a job type, with no success between them, open its circuit: no job of the type is started by
    /// this worker for a while, and its waiting jobs use no attempt. Default 5; 0 never opens one.
    pub fn circuit_failures(mut self, failures: u32) -> Self {
        self.settings.circuit.failures = failures;
        self
    }

    /// The time within which those failures count; default 1 min.
    pub fn circuit_window(mut self, window: Duration) -> Self {
        self.settings.circuit.window = window;
        self
    }

    /// How long an open circuit lets no job of its type start; default 30 s. Then one is tried: its success closes the
    /// circuit, its failure opens it for as long again.
    pub fn circuit_pause(mut self, pause: Duration) -> Self {
        self.settings.circuit.pause = pause;
        self
    }

    /// State for handlers, by its type: [`JobContext::state`](crate::JobContext::state).
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.state.insert(TypeId::of::<T>(), Arc::new(value));
        self
    }

    /// A tower layer around every handler, inside the time limit. The first one added is the outermost. Errors of a
    /// layer are retried like errors of a handler.
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<JobService> + Send + 'static,
        L::Service: Service<JobCall, Response = JobOutput> + Clone + Send + Sync + 'static,
        <L::Service as Service<JobCall>>::Error: Into<BoxError>,
        <L::Service as Service<JobCall>>::Future: Send + 'static,
    {
        self.layers.push(Box::new(move |inner| {
            let service = tower::util::MapErr::new(layer.layer(inner), Into::into);
            BoxCloneSyncService::new(service)
        }));
        self
    }

    /// Serves this type too, where the linker or `only` leaves it out.
    pub fn register<T: Job + Enqueue + DeserializeOwned>(mut self) -> Self {
        self.registered.push(Registration::of::<T>());
        self
    }

    /// Serves only these types: `.only::<(SendReceipt, ResizeImage)>()`.
    pub fn only<S: JobSet>(mut self) -> Self {
        self.only = Some(S::registrations());
        self
    }

    /// Called after a job has gone to the dead-letter queue, on the worker's own thread: do not block there.
    pub fn on_dead_letter(mut self, told: impl Fn(&DeadLetter) + Send + Sync + 'static) -> Self {
        self.on_dead_letter = Some(Arc::new(told));
        self
    }

    /// Stops the worker when this future ends. It is polled on the runtime that builds the worker: handlers that block
    /// every thread of it hold it up, too.
    pub fn shutdown(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.shutdown = Some(Box::pin(signal));
        self
    }

    /// The worker. Call it inside a tokio runtime.
    ///
    /// # Errors
    /// Two types share a key, there is no type to serve, a queue name or a setting (here or in the environment) cannot
    /// be used.
    pub fn build(self) -> Result<Worker> {
        let settings = Settings { worker: self.settings, ..Settings::default() }.overridden()?;
        settings.worker.check()?;
        let registry = registry(self.only, self.registered)?;
        let queues = queues(settings.worker.queues.as_deref(), &registry)?;
        let stop = CancellationToken::new();
        if let Some(shutdown) = self.shutdown {
            let stop = stop.clone();
            tokio::spawn(async move {
                shutdown.await;
                stop.cancel();
            });
        }
        let id = worker_id();
        Ok(Worker {
            shared: Arc::new(Shared {
                episode: Episode::new(&id),
                id,
                retry: Mutex::new(RetryRules {
                    backoff: self.pool.policy_defaults().backoff(),
                    jitter: settings.worker.jitter,
                }),
                pool: self.pool,
                limiter: Limiter::new(settings.worker.concurrency),
                circuits: Circuits::new(settings.worker.circuit),
                settings: settings.worker,
                queues,
                service: service(&registry, self.layers),
                registry,
                state: Arc::new(self.state),
                on_dead_letter: self.on_dead_letter,
                buffer: Buffer::default(),
                running: Running::default(),
                queue_leases: QueueLeases::default(),
                beat_now: Notify::new(),
                tasks: TaskTracker::new(),
                stop,
                end: TheEnd::default(),
                has_told_of_circuits: AtomicBool::new(false),
                paused: AtomicBool::new(false),
                nudge: Notify::new(),
                in_hand: AtomicUsize::new(0),
                started: AtomicU64::new(0),
            }),
        })
    }
}

fn registry(only: Option<Vec<Registration>>, registered: Vec<Registration>) -> Result<Registry> {
    let types = only.unwrap_or_else(Registry::all);
    let registry = Registry::new(types.into_iter().chain(registered))?;
    if registry.types().is_empty() {
        return Err(Error::config(
            "this worker has no job type to serve: write `#[job]` on a struct; if the jobs live in a crate that nothing \
             else refers to, add `use that_crate as _;`",
        ));
    }
    Ok(registry)
}

/// The queues to serve; `None`: all.
fn queues(set: Option<&[String]>, registry: &Registry) -> Result<Option<Vec<String>>> {
    let mut queues: Vec<String> = match set {
        Some(all) if all == ["*"] => return Ok(None),
        Some([]) => return Err(Error::config("the list of queues to serve is empty")),
        Some(queues) => queues.to_vec(),
        None => registry.types().iter().map(|job_type| job_type.queue.to_owned()).collect(),
    };
    for queue in &queues {
        Limits::check_name("queue", queue)?;
        if queue == "*" {
            return Err(Error::config("the queue \"*\" means all queues and must stand alone"));
        }
    }
    queues.sort();
    queues.dedup();
    Ok(Some(queues))
}

fn service(registry: &Registry, layers: Vec<Wrap>) -> JobService {
    let registry = Arc::new(registry.clone());
    let run = service_fn(move |call: JobCall| {
        // Unknown types never come this far.
        let run = registry.get(call.context.job_type()).map(|known| known.run);
        async move {
            let Some(run) = run else { return Err(BoxError::from("an unknown job type")) };
            run(call).await.map_err(|error| BoxError::from(JobFailure(error)))
        }
    });
    let innermost = BoxCloneSyncService::new(run);
    layers.into_iter().rev().fold(innermost, |inner, wrap| wrap(inner))
}

/// Host, process and a random part: a restart is a different worker, and a person can find the process.
fn worker_id() -> WorkerId {
    let host = std::env::var("HOSTNAME")
        .or_else(|_| std::env::var("COMPUTERNAME"))
        .or_else(|_| std::fs::read_to_string("/etc/hostname"))
        .unwrap_or_default();
    let host: String = host.trim().chars().take(100).collect();
    let host = if host.is_empty() { "host" } else { &host };
    WorkerId::new(format!("{host}:{}:{:08x}", std::process::id(), fastrand::u32(..)))
}

/// A tuple of job types, for [`WorkerBuilder::only`].
pub trait JobSet {
    /// The registrations of its members.
    #[doc(hidden)]
    fn registrations() -> Vec<Registration>;
}

macro_rules! job_set {
    ($($member:ident),+) => {
        impl<$($member: Job + Enqueue + DeserializeOwned),+> JobSet for ($($member,)+) {
            fn registrations() -> Vec<Registration> {
                vec![$(Registration::of::<$member>()),+]
            }
        }
    };
}

job_set!(A);
job_set!(A, B);
job_set!(A, B, C);
job_set!(A, B, C, D);
job_set!(A, B, C, D, E);
job_set!(A, B, C, D, E, F);
job_set!(A, B, C, D, E, F, G);
job_set!(A, B, C, D, E, F, G, H);
job_set!(A, B, C, D, E, F, G, H, I);
job_set!(A, B, C, D, E, F, G, H, I, J);
job_set!(A, B, C, D, E, F, G, H, I, J, K);
job_set!(A, B, C, D, E, F, G, H, I, J, K, L);
