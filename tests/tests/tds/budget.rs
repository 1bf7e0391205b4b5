//! The statement budget: how few round trips a worker makes, busy and idle.
//!
//! A statement costs a round trip, a log flush and a plan look-up: a server that many workers share is spent by their
//! number. Statements are counted, not timed; the server takes 5 ms for each, as one in the same data centre does.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use chokaq::{JobType, Pool, Worker, WorkerBuilder, prelude::*};

use crate::{
    answers::{Cell, Step, text},
    requests::Request,
    server::Script,
    storage::{
        columns::{empty, rows},
        stage::{Stage, batch, claimed, ended, int, job_cell},
    },
    within,
};

/// Long enough never to be the reason that a test goes on.
const NEVER: Duration = Duration::from_hours(1);

const ROUND_TRIP: Duration = Duration::from_millis(5);

/// How often handlers were entered.
type Runs = Arc<AtomicU64>;

#[job(queue = "budget")]
struct Noop;

impl Job for Noop {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        ctx.state::<Runs>()?.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Runs until it is told to stop.
#[job(queue = "budget")]
struct Long;

impl Job for Long {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        ctx.state::<Runs>()?.fetch_add(1, Ordering::Relaxed);
        ctx.cancelled().await;
        Ok(())
    }
}

/// A queue of numbered jobs of one type in memory, each of which can be claimed, started and finished.
struct Numbered {
    job_type: JobType,
    claimed: i64,
    jobs: i64,
}

impl Numbered {
    fn script<T: Enqueue>(jobs: i64) -> Script {
        let queue = Mutex::new(Self { job_type: T::JOB_TYPE, claimed: 0, jobs });
        Script::new(move |request| {
            let mut steps = vec![Step::Pause(ROUND_TRIP)];
            steps.extend(queue.lock().expect("unpoisoned").answer(request));
            steps
        })
    }

    fn answer(&mut self, request: &Request) -> Vec<Step> {
        match request.name() {
            "fetch_next_batch" => self.claim(request.take()),
            name @ "mark_as_processing" => {
                let start = |seq| [int(seq), int(1), int(1_772_366_400_250)];
                vec![rows(name, request.seqs().map(start).collect())]
            }
            name @ "keep_alive" => {
                let alive = |seq| [int(seq), int(1), int(0)];
                vec![rows(name, request.seqs().map(alive).collect())]
            }
            name @ "archive_succeeded" => vec![rows(name, request.seqs().map(ended).collect())],
            name @ "snooze" => {
                vec![rows(name, request.seqs().map(|seq| [job_cell(seq)]).collect())]
            }
            name => empty(name),
        }
    }

    fn claim(&mut self, take: i64) -> Vec<Step> {
        let first = self.claimed + 1;
        self.claimed = self.jobs.min(self.claimed + take);
        batch((first..=self.claimed).map(|number| self.row(number)).collect())
    }

    fn row(&self, number: i64) -> [Cell; 17] {
        let mut row = claimed(number);
        row[3] = text(self.job_type.queue);
        row[4] = text(self.job_type.key);
        // A unit struct's payload.
        row[5] = text("null");
        row
    }
}

fn worker(stage: &Stage, runs: &Runs) -> WorkerBuilder {
    Worker::builder(&Pool::over(Arc::clone(&stage.storage) as _))
        .only::<(Noop, Long)>()
        .state(Arc::clone(runs))
}

/// How often each statement came.
fn counts(stage: &Stage) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in stage.names() {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_jobs_cost_at_most_six_statements() {
    let jobs = 10_000;
    let stage = Stage::on("", Numbered::script::<Noop>(jobs)).await;
    let runs = Runs::default();
    let worker = worker(&stage, &runs).concurrency(200).build().expect("a worker");
    tokio::time::timeout(Duration::from_mins(1), worker.run_until_idle())
        .await
        .expect("it drains the queue")
        .expect("it ends well");
    assert_eq!(runs.load(Ordering::Relaxed), u64::try_from(jobs).expect("not negative"));
    let counts = counts(&stage);
    let statements: usize = counts.values().sum();
    assert!(statements <= 600, "{statements} statements for {jobs} jobs: {counts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_makes_at_most_two_statements_a_poll() {
    let polls = 5;
    let stage = Stage::on("", Numbered::script::<Noop>(0)).await;
    // As it comes: a poll a second, and one read of what operators ask.
    let worker = worker(&stage, &Runs::default()).build().expect("a worker");
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    within(stage.server.has_named("fetch_next_batch", polls)).await;
    let counts = counts(&stage);
    let statements: usize = counts.values().sum();
    assert!(statements <= 2 * polls, "{statements} statements in {polls} polls: {counts:?}");
    handle.stop();
    within(running).await.expect("no panic").expect("it ends well");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_beat_of_all_running_jobs_is_one_statement() {
    let jobs = 200;
    let stage = Stage::on("", Numbered::script::<Long>(200)).await;
    let worker = worker(&stage, &Runs::default()).concurrency(jobs).poll_interval(NEVER);
    let beat = Duration::from_millis(200);
    let worker = worker.heartbeat_interval(beat).shutdown_grace(Duration::ZERO);
    let worker = worker.build().expect("a worker");
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    let beats = |request: &Request| request.name() == "keep_alive";
    let whole = move |request: &Request| beats(request) && request.seqs().count() == jobs;
    within(stage.server.has_matching(whole, 1)).await;
    let before = stage.names().len();
    within(stage.server.has_matching(whole, 4)).await;
    for beat in stage.server.statements().iter().skip(before).filter(|request| beats(request)) {
        assert!(whole(beat), "a beat of some of them: {:?}", beat.form);
    }
    handle.stop();
    within(running).await.expect("no panic").expect("it ends well");
}
