//! Circuit breakers, through the worker.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chokaq::{
    FailureReason, Pool, WorkerBuilder,
    model::{Circuit, CircuitState, JobState},
    prelude::*,
};

use crate::support::{Log, NEVER, death, detail, file, memory, note, worker};

/// Calls something that is down until it is up.
#[job(queue = "calls", retries = 3, backoff = fixed("1ms"))]
struct Call;

#[derive(Clone, Default)]
struct Remote {
    is_up: Arc<AtomicBool>,
    calls: Log,
}

impl Job for Call {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        let remote = ctx.state::<Remote>()?;
        remote.calls.add(ctx.id().to_string());
        if remote.is_up.load(Ordering::SeqCst) { Ok(()) } else { Err("503".into()) }
    }
}

/// Fails in a way that is its own fault.
#[job(queue = "calls")]
struct Bad;

impl Job for Bad {
    type Output = ();
    async fn run(self, _ctx: &JobContext) -> Result<(), JobError> {
        Err(JobError::fatal("no such customer"))
    }
}

/// One job at a time; three failures open a circuit.
fn breaking(pool: &Pool, remote: &Remote) -> WorkerBuilder {
    worker(pool)
        .only::<(Call, Bad, crate::support::Note)>()
        .queues(["calls", "notes"])
        .state(remote.clone())
        .concurrency(1)
        .circuit_failures(3)
        .circuit_pause(NEVER)
}

async fn until_open(pool: &Pool) -> Circuit {
    loop {
        if let [circuit] = &pool.operator().circuits().await.unwrap()[..] {
            return circuit.clone();
        }
        tokio::task::yield_now().await;
    }
}

/// Fills the queue, opens the circuit, and answers the worker and the jobs.
async fn open(
    pool: &Pool,
    remote: &Remote,
    jobs: usize,
) -> (chokaq::WorkerHandle, tokio::task::JoinHandle<chokaq::Result<()>>, Vec<chokaq::JobId>) {
    let mut ids = Vec::new();
    for _ in 0..jobs {
        ids.push(Call::enqueue(pool).await.unwrap().id);
    }
    let worker = breaking(pool, remote).build().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    until_open(pool).await;
    (handle, running, ids)
}

#[tokio::test]
async fn an_open_circuit_is_seen_by_other_processes_and_lets_waiting_jobs_keep_their_attempts() {
    let (pool, folder) = file().await;
    let remote = Remote::default();
    let (handle, running, ids) = open(&pool, &remote, 20).await;
    let url = format!("sqlite:{}", folder.path().join("jobs.db").display());
    let other = Pool::connect(url).await.unwrap();
    let circuit = until_open(&other).await;
    assert_eq!((&*circuit.job_type, circuit.state), ("call", CircuitState::Open));
    assert_eq!((circuit.failures, &*circuit.error), (3, "503"));
    assert!(circuit.retry_at.since(circuit.seen_at) > NEVER / 2);
    // All go back, due when the circuit may close; none waits in the worker.
    loop {
        let [calls] = &pool.operator().queue_stats().await.unwrap()[..] else { continue };
        if (calls.delayed, calls.fetched, calls.processing) == (20, 0, 0) {
            break;
        }
        tokio::task::yield_now().await;
    }
    handle.stop();
    running.await.unwrap().unwrap();
    assert_eq!(remote.calls.lines().len(), 3, "nothing was called after the third failure");
    let mut attempts = 0;
    for id in ids {
        attempts += detail(&pool, id).await.attempts;
    }
    assert_eq!(attempts, 3);
    // A worker that has ended leaves no circuit behind.
    assert_eq!(pool.operator().circuits().await.unwrap(), []);
}

#[tokio::test]
async fn jobs_of_other_types_go_on_also_behind_a_flood_of_the_broken_one() {
    let pool = memory().await;
    let (remote, log) = (Remote::default(), Log::default());
    for _ in 0..300 {
        Call::enqueue(&pool).await.unwrap();
    }
    let healthy = note("healthy").enqueue(&pool).queue("calls").priority(1).await.unwrap().id;
    let worker = breaking(&pool, &remote).state(log.clone()).build().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    while detail(&pool, healthy).await.state != JobState::Succeeded {
        tokio::task::yield_now().await;
    }
    handle.stop();
    running.await.unwrap().unwrap();
    assert_eq!(log.lines(), ["healthy 1"]);
    assert_eq!(remote.calls.lines().len(), 3);
}

#[tokio::test]
async fn a_fatal_error_is_the_jobs_own_fault_and_opens_no_circuit() {
    let pool = memory().await;
    let remote = Remote::default();
    for _ in 0..10 {
        Bad::enqueue(&pool).await.unwrap();
    }
    breaking(&pool, &remote).build().unwrap().run_until_idle().await.unwrap();
    assert_eq!(pool.operator().summary_stats().await.unwrap().dead, 10);
}

#[tokio::test]
async fn a_probe_that_succeeds_closes_the_circuit_and_all_jobs_end_well() {
    let pool = memory().await;
    let remote = Remote::default();
    for _ in 0..10 {
        Call::enqueue(&pool).await.unwrap();
    }
    let worker = breaking(&pool, &remote).circuit_pause(Duration::from_millis(50)).build().unwrap();
    let running = tokio::spawn(worker.run_until_idle());
    until_open(&pool).await;
    // A probe that fails opens it again, and uses an attempt of its own only.
    while remote.calls.lines().len() < 4 {
        tokio::task::yield_now().await;
    }
    remote.is_up.store(true, Ordering::SeqCst);
    running.await.unwrap().unwrap();
    let stats = pool.operator().summary_stats().await.unwrap();
    assert_eq!((stats.succeeded_total, stats.failed_total), (10, 0));
    assert_eq!(pool.operator().circuits().await.unwrap(), []);
}

#[tokio::test]
async fn a_job_that_waits_past_its_lifetime_dies_of_the_circuit() {
    #[job(queue = "calls", type_key = "call", max_age = "20ms", enqueue_only)]
    struct ShortCall;
    let pool = memory().await;
    let remote = Remote::default();
    let (handle, running, _) = open(&pool, &remote, 3).await;
    let id = ShortCall::enqueue(&pool).await.unwrap().id;
    while !matches!(detail(&pool, id).await.state, JobState::Dead(_)) {
        tokio::task::yield_now().await;
    }
    handle.stop();
    running.await.unwrap().unwrap();
    let (reason, job) = death(&pool, id).await;
    assert_eq!(reason, FailureReason::CircuitBreakerOpen);
    assert!(job.errors[0].text.contains("\"call\" was still open"), "{:?}", job.errors);
    assert_eq!(job.errors[0].kind, "circuit");
    assert!(!remote.calls.lines().contains(&id.to_string()), "its handler never ran");
}

#[tokio::test]
async fn a_threshold_of_zero_opens_nothing() {
    let pool = memory().await;
    let remote = Remote::default();
    for _ in 0..10 {
        Call::enqueue(&pool).await.unwrap();
    }
    let worker = breaking(&pool, &remote).circuit_failures(0).build().unwrap();
    worker.run_until_idle().await.unwrap();
    assert_eq!(remote.calls.lines().len(), 40, "every job used its four attempts");
    assert_eq!(pool.operator().summary_stats().await.unwrap().pending, 0);
}
