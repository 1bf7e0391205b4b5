//! The good path.

use std::time::Duration;

use chokaq::{JobOutput, Pool, model::JobState, prelude::*};
use serde::{Deserialize, Serialize};

use crate::support::{Gate, Gated, Log, NEVER, detail, file, memory, note, worker};

#[job]
struct Measure {
    text: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Size {
    bytes: usize,
}

impl Job for Measure {
    type Output = Size;
    async fn run(self, ctx: &JobContext) -> Result<Size, JobError> {
        assert_eq!(ctx.tags(), ["a tag", "another \"tag\""]);
        assert_eq!((ctx.attempt(), ctx.attempts_left()), (1, 3));
        assert_eq!((ctx.job_type(), ctx.queue()), ("measure", "default"));
        assert!(ctx.enqueued_at() <= ctx.due_at() && ctx.due_at() <= ctx.started_at());
        Ok(Size { bytes: self.text.len() })
    }
}

#[tokio::test]
async fn a_job_runs_once_and_its_output_is_kept_with_it() {
    let pool = memory().await;
    let job = Measure { text: "grüße 🦀".into() };
    let id =
        job.enqueue(&pool).tags(["a tag", "another \"tag\""]).created_by("me").await.unwrap().id;
    worker(&pool).only::<(Measure,)>().build().unwrap().run_until_idle().await.unwrap();

    let job = detail(&pool, id).await;
    assert_eq!(job.state, JobState::Succeeded);
    assert_eq!(job.output::<Size>().unwrap(), Some(Size { bytes: 12 }));
    assert_eq!(job.attempts, 1);
    assert_eq!(job.created_by.as_deref(), Some("me"));
    assert!(job.errors.is_empty());
    let summary = pool.operator().summary_stats().await.unwrap();
    assert_eq!((summary.succeeded_total, summary.pending, summary.processing), (1, 0, 0));
}

#[tokio::test]
async fn a_thousand_jobs_each_run_once() {
    let (pool, _folder) = file().await;
    let log = Log::default();
    let jobs = (0..1000).map(|n| note(n.to_string()));
    let all = chokaq::Enqueue::enqueue_all(&pool, jobs).await.unwrap();
    assert_eq!((all.added, all.duplicates), (1000, 0));
    let worker = worker(&pool).only::<(crate::support::Note,)>().state(log.clone());
    worker.concurrency(50).build().unwrap().run_until_idle().await.unwrap();

    let mut lines = log.lines();
    lines.sort();
    let mut expected: Vec<_> = (0..1000).map(|n| format!("{n} 1")).collect();
    expected.sort();
    assert_eq!(lines, expected);
    assert_eq!(pool.operator().summary_stats().await.unwrap().succeeded_total, 1000);
}

#[tokio::test]
async fn an_idle_worker_is_woken_by_an_enqueue_in_its_process() {
    let pool = memory().await;
    let (gate, mut starts) = Gate::new();
    let worker = worker(&pool).only::<(Gated,)>().state(gate.clone()).poll_interval(NEVER);
    let worker = worker.build().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    for _ in 0..3 {
        let id = Gated { cooperative: true }.enqueue(&pool).await.unwrap().id;
        assert_eq!(starts.recv().await.expect("it starts, though no poll is due").id(), id);
        gate.open.add_permits(1);
    }
    handle.stop();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_delayed_job_runs_when_it_is_due_not_before() {
    let pool = memory().await;
    let log = Log::default();
    let delay = Duration::from_millis(300);
    let late = note("late").enqueue(&pool).delay(delay).await.unwrap().id;
    note("early").enqueue(&pool).await.unwrap();
    let worker = worker(&pool).only::<(crate::support::Note,)>().state(log.clone());
    worker.poll_interval(NEVER).build().unwrap().run_until_idle().await.unwrap();
    assert_eq!(log.lines(), ["early 1", "late 1"]);
    let job = detail(&pool, late).await;
    assert!(job.due_at.since(job.created_at) >= delay);
    assert!(job.started_at.unwrap() >= job.due_at);
}

#[tokio::test]
async fn a_job_due_in_an_hour_does_not_hold_up_an_idle_worker() {
    let pool = memory().await;
    let id = note("later").enqueue(&pool).delay(NEVER).await.unwrap().id;
    let worker = worker(&pool).only::<(crate::support::Note,)>().state(Log::default());
    worker.build().unwrap().run_until_idle().await.unwrap();
    assert!(matches!(detail(&pool, id).await.state, JobState::Active(_)));
}

#[tokio::test]
async fn higher_priority_runs_first() {
    let pool = memory().await;
    let log = Log::default();
    for (name, priority) in [("low", 1), ("high", 30), ("middle", 20)] {
        note(name).enqueue(&pool).priority(priority).await.unwrap();
    }
    let worker = worker(&pool).only::<(crate::support::Note,)>().state(log.clone());
    worker.concurrency(1).build().unwrap().run_until_idle().await.unwrap();
    assert_eq!(log.lines(), ["high 1", "middle 1", "low 1"]);
}

#[job]
struct Ping;

impl Job for Ping {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        ctx.state::<Log>()?.add("ping");
        Ok(())
    }
}

#[tokio::test]
async fn a_unit_job_is_enqueued_by_its_type_or_its_value() {
    let pool = memory().await;
    let log = Log::default();
    Ping::enqueue(&pool).await.unwrap();
    Ping.enqueue(&pool).await.unwrap();
    let worker = worker(&pool).only::<(Ping,)>().state(log.clone());
    worker.build().unwrap().run_until_idle().await.unwrap();
    assert_eq!(log.lines(), ["ping", "ping"]);
}

#[tokio::test]
async fn a_layer_wraps_every_handler_inside_the_first_one_added() {
    use tower::util::{MapRequestLayer, MapResponseLayer};
    let pool = memory().await;
    let log = Log::default();
    note("job").enqueue(&pool).await.unwrap();
    let (outer, inner, after) = (log.clone(), log.clone(), log.clone());
    let worker = worker(&pool)
        .only::<(crate::support::Note,)>()
        .state(log.clone())
        .layer(MapRequestLayer::new(move |call: chokaq::JobCall| {
            outer.add(format!("outer {}", call.payload));
            call
        }))
        .layer(MapRequestLayer::new(move |call: chokaq::JobCall| {
            inner.add("inner");
            call
        }))
        .layer(MapResponseLayer::new(move |output: JobOutput| {
            after.add("after");
            output
        }));
    worker.build().unwrap().run_until_idle().await.unwrap();
    assert_eq!(log.lines(), [r#"outer {"name":"job"}"#, "inner", "job 1", "after"]);
}

/// Enqueues a follow-up through its context.
#[job]
struct Parent;

impl Job for Parent {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        note("child").enqueue(ctx.pool()).await?;
        Ok(())
    }
}

#[tokio::test]
async fn a_handler_can_enqueue_and_the_worker_is_idle_only_after_that_job() {
    let pool: Pool = memory().await;
    let log = Log::default();
    Parent::enqueue(&pool).await.unwrap();
    let worker = worker(&pool).only::<(Parent, crate::support::Note)>().state(log.clone());
    worker.build().unwrap().run_until_idle().await.unwrap();
    assert_eq!(log.lines(), ["child 1"]);
}

#[tokio::test]
async fn a_flood_in_one_queue_does_not_hold_up_another() {
    let (pool, _folder) = file().await;
    let log = Log::default();
    let flood = (0..100_000).map(|n| note(format!("flood {n}")));
    chokaq::Enqueue::enqueue_all(&pool, flood).priority(100).await.unwrap();
    note("other").enqueue(&pool).queue("other").priority(0).await.unwrap();
    let worker = worker(&pool).only::<(crate::support::Note,)>().state(log.clone());
    let worker = worker.queues(["notes", "other"]).concurrency(10).buffer(90).batch(100);
    let worker = worker.build().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    while !log.lines().iter().any(|line| line == "other 1") {
        tokio::task::yield_now().await;
    }
    handle.stop();
    running.await.unwrap().unwrap();
    let before = log.lines().iter().position(|line| line == "other 1").unwrap();
    assert!(before <= 100, "{before} jobs of the flood ran first, more than one batch");
}
