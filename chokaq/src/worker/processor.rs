//! From a claimed row to an outcome, in small steps: dispatch, start, perform, conclude.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering},
    task::Poll,
    time::Duration,
};

use tokio::{runtime::Handle, select, time::sleep};
use tower::ServiceExt;
use tracing::Instrument;

use crate::{
    job::{CancelCause, ContextParts, JobCall, JobContext, JobError},
    model::{Backoff, FetchedJob, MarkOutcome, Outcome, Timestamp},
    worker::{
        circuits::Evidence,
        finaliser::{Finaliser, Finished},
        limiter::Permit,
        marker::Marker,
        plan::{Plan, Start, pass_on, plan},
        release::hold_back,
        running::Run,
        shared::Shared,
        verdict::{Attempt, End},
    },
};

/// What a processor needs to start jobs.
#[derive(Debug, Clone)]
pub(crate) struct Processor {
    pub(crate) shared: Arc<Shared>,
    pub(crate) marker: Marker,
    pub(crate) finaliser: Finaliser,
    /// The runtime of the user's program: handlers run there, and nothing else.
    pub(crate) handlers: Handle,
}

impl Processor {
    /// The loop: a row and a permit make a task. Ends when the worker stops.
    pub(crate) async fn run(self) {
        let shared = Arc::clone(&self.shared);
        loop {
            let permit = async {
                shared.buffer.wait_filled().await;
                shared.limiter.acquire().await
            };
            let permit = select! {
                biased;
                () = shared.stop.cancelled() => return,
                permit = permit => permit,
            };
            // The row may be gone: its queue was paused while we waited for the permit.
            if let Some(job) = shared.buffer.pop() {
                self.dispatch(Held::new(job, &shared), permit);
            }
        }
    }

    fn dispatch(&self, held: Held, permit: Permit) {
        let shared = &self.shared;
        match plan(shared, held.job()) {
            Plan::PassOn => {
                shared.tasks.spawn(pass_on(Arc::clone(shared), held.take(), permit));
            }
            Plan::HoldBack => {
                let mut jobs = shared.buffer.take(|job| shared.circuit_wait(job).is_some());
                jobs.push(held.take());
                let shared = Arc::clone(shared);
                self.shared.tasks.spawn(async move {
                    hold_back(&shared, jobs).await;
                    drop(permit);
                });
            }
            Plan::Start(start) => {
                let task = self.clone().process_in_span(held, permit, start);
                shared.tasks.spawn_on(task, &self.handlers);
            }
        }
    }

    /// The span is made where the handler runs: there the subscriber of its runtime sees it.
    async fn process_in_span(self, held: Held, permit: Permit, start: Start) {
        let job = held.job();
        let span = tracing::info_span!(
            "job",
            job_id = %job.lease.job(),
            job_type = %job.job_type,
            queue = %job.queue,
            attempt = job.attempts + 1,
        );
        self.process(held, permit, start).instrument(span).await;
    }

    /// One job, from the mark to the finaliser's queue.
    async fn process(self, held: Held, permit: Permit, start: Start) {
        // From here on the marker answers for the row.
        let job = held.take();
        let run = Run::new(job.lease.clone(), job.job_type.clone(), job.queue.clone());
        let Some((attempt, started_at)) = self.start(&run).await else { return };
        let unfinished = Unfinished::new(&self.finaliser, Arc::clone(&run));
        if self.must_not_start(&run) {
            return unfinished.finish(Outcome::Snooze { delay: Duration::ZERO }).await;
        }
        let context = self.context(&job, &run, attempt, started_at);
        run.set_context(context.clone());
        let rules = self.attempt(&job, attempt);
        let outcome = match start {
            Start::Refuse(error) => self.conclude(rules, Ok(End::Returned(Err(error))), &context),
            Start::Run(ticket) => {
                let end = catch_panic(self.perform(job, &context, rules.timeout)).await;
                let outcome = self.conclude(rules, end, &context);
                ticket.ended(Evidence::of(&outcome));
                outcome
            }
        };
        unfinished.finish(outcome).await;
        drop(permit);
    }

    /// Whether the mark came too late: the worker stops, the job was cancelled meanwhile, or the process stood still so
    /// long that the lease may be another's.
    fn must_not_start(&self, run: &Run) -> bool {
        self.shared.stop.is_cancelled()
            || run.cancellation.cause().is_some()
            || self.shared.is_overdue(run)
    }

    /// The verdict. It runs code of the user's too (a backoff function, an error's text): a panic there is a failed
    /// attempt like any other, never a free one.
    fn conclude(&self, rules: Attempt, end: Result<End, String>, context: &JobContext) -> Outcome {
        let cause = context.cancel_cause();
        let end = end.unwrap_or_else(|panic| End::Returned(Err(JobError::panic(panic))));
        catch_unwind(AssertUnwindSafe(|| rules.verdict(end, cause))).unwrap_or_else(|panic| {
            let error = JobError::panic(format!("after the run, {}", panic_text(&*panic)));
            let rules = Attempt { backoff: self.shared.retry_rules().backoff, ..rules };
            rules.verdict(End::Returned(Err(error)), cause)
        })
    }

    /// Marks the row as processing; `None`: it is not ours any more, user code must not run.
    async fn start(&self, run: &Arc<Run>) -> Option<(u32, Timestamp)> {
        match self.marker.mark(run).await {
            Some(MarkOutcome::Started { attempt, started_at }) => {
                self.shared.started.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(job_id = %run.lease.job(), attempt, "job started");
                Some((attempt, started_at))
            }
            Some(MarkOutcome::LeaseLost) => {
                tracing::info!(job_id = %run.lease.job(), "job was released, cancelled or claimed by another worker before it started");
                None
            }
            None => None,
        }
    }

    fn context(
        &self,
        job: &FetchedJob,
        run: &Run,
        attempt: u32,
        started_at: Timestamp,
    ) -> JobContext {
        let tags = job.tags.as_deref().and_then(|json| serde_json::from_str(json).ok());
        let parts = ContextParts {
            id: job.lease.job(),
            job_type: job.job_type.clone(),
            queue: job.queue.clone(),
            attempt,
            retries: job.retries,
            enqueued_at: job.created_at,
            due_at: job.due_at,
            started_at,
            tags: tags.unwrap_or_default(),
            state: Arc::clone(&self.shared.state),
            pool: self.shared.pool.clone(),
        };
        JobContext::new(parts, Arc::clone(&run.cancellation))
    }

    fn attempt(&self, job: &FetchedJob, number: u32) -> Attempt {
        let shared = &self.shared;
        Attempt {
            number,
            retries: job.retries,
            timeout: job.timeout,
            backoff: self.backoff(&job.job_type),
            jitter: shared.retry_rules().jitter,
            random: fastrand::f64(),
            output_limit: shared.pool.limits().payload_bytes,
        }
    }

    fn backoff(&self, job_type: &str) -> Backoff {
        let own =
            self.shared.registry.get(job_type).and_then(|known| known.job_type.policy.backoff);
        own.unwrap_or_else(|| self.shared.retry_rules().backoff)
    }

    /// Runs user code under its time limit. Once the context is cancelled, whatever the cause, the code has the cancel
    /// grace to stop, and is dropped at its next await after that.
    async fn perform(&self, job: FetchedJob, context: &JobContext, timeout: Duration) -> End {
        let service = self.shared.service.clone();
        let call = JobCall::new(context.clone(), job.payload);
        let code = async move { service.oneshot(call).await.map_err(JobError::from_layers) };
        let code = async { catch_panic(code).await.unwrap_or_else(|p| Err(JobError::panic(p))) };
        let mut code = pin!(code);
        select! {
            biased;
            result = &mut code => return End::Returned(result),
            () = context.cancelled() => {}
            () = sleep(timeout) => context.cancel(CancelCause::Timeout),
        }
        select! {
            biased;
            result = &mut code => End::Returned(result),
            () = sleep(self.shared.settings.cancel_grace) => End::Dropped,
        }
    }
}

/// A claimed row that no mark answers for yet. Dropped on the way, because the runtime it was to run on is gone, it goes
/// back to the buffer, and from there to the queue when the worker ends.
struct Held {
    job: Option<FetchedJob>,
    shared: Arc<Shared>,
}

impl Held {
    fn new(job: FetchedJob, shared: &Arc<Shared>) -> Self {
        Self { job: Some(job), shared: Arc::clone(shared) }
    }

    fn job(&self) -> &FetchedJob {
        self.job.as_ref().expect("taken only by take, which consumes self")
    }

    fn take(mut self) -> FetchedJob {
        self.job.take().expect("taken only here")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.buffer.push(self.job.take().into_iter().collect());
    }
}

/// A marked job on its way to the finaliser. Dropped on the way, because the runtime that polls it ends, it is given
/// back with no attempt used, as at any shutdown.
struct Unfinished<'a> {
    finaliser: &'a Finaliser,
    run: Option<Arc<Run>>,
}

impl<'a> Unfinished<'a> {
    fn new(finaliser: &'a Finaliser, run: Arc<Run>) -> Self {
        Self { finaliser, run: Some(run) }
    }

    async fn finish(mut self, outcome: Outcome) {
        if let Some(run) = self.run.take() {
            run.end();
            self.finaliser.push(Finished { run, outcome }).await;
        }
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            run.end();
            let outcome = Outcome::Snooze { delay: Duration::ZERO };
            self.finaliser.push_now(Finished { run, outcome });
        }
    }
}

/// The future's result, or what a panic in it said. After a panic it is not polled again.
async fn catch_panic<T>(code: impl Future<Output = T>) -> Result<T, String> {
    let mut code = pin!(code);
    std::future::poll_fn(move |cx| {
        match catch_unwind(AssertUnwindSafe(|| Pin::as_mut(&mut code).poll(cx))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(panic_text(&*panic))),
        }
    })
    .await
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the handler panicked: {}", text.unwrap_or("(a panic without text)"))
}
