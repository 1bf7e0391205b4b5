//! Payloads and types change between releases; stored jobs and older workers stay.

use std::path::Path;

use chokaq::{Edits, FailureReason, JobState, JobStatus, ResurrectOutcome, prelude::*};

use crate::support::{Log, NEVER, death, detail, file, memory, worker};

/// As an older release wrote it: without `copies`.
const OLD_PAYLOAD: &str = r#"{"page":"a"}"#;

#[job(queue = "press", type_key = "print", aliases = ["print_page"])]
struct Print {
    page: String,
    #[serde(default = "one")]
    copies: u32,
}

fn one() -> u32 {
    1
}

impl Job for Print {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        ctx.state::<Log>()?.add(format!("{} x{}", self.page, self.copies));
        Ok(())
    }
}

#[tokio::test]
async fn a_field_with_a_default_can_be_added_and_jobs_of_the_older_release_still_run() {
    let pool = memory().await;
    let log = Log::default();
    pool.enqueue_raw("print", OLD_PAYLOAD).queue("press").await.unwrap();
    Print { page: "b".into(), copies: 3 }.enqueue(&pool).await.unwrap();
    let worker = worker(&pool).only::<(Print,)>().state(log.clone()).concurrency(1);
    worker.build().unwrap().run_until_idle().await.unwrap();
    assert_eq!(log.lines(), ["a x1", "b x3"]);
}

#[tokio::test]
async fn a_renamed_type_runs_the_jobs_of_its_old_name_through_an_alias() {
    let pool = memory().await;
    let log = Log::default();
    let id = pool.enqueue_raw("print_page", OLD_PAYLOAD).queue("press").await.unwrap().id;
    worker(&pool)
        .only::<(Print,)>()
        .state(log.clone())
        .build()
        .unwrap()
        .run_until_idle()
        .await
        .unwrap();
    assert_eq!(log.lines(), ["a x1"]);
    assert_eq!(
        detail(&pool, id).await.job_type,
        "print_page",
        "the row keeps the name it came with"
    );
}

/// How a page is bound; an older worker knows only some of these.
#[derive(Debug, chokaq::serde::Serialize, chokaq::serde::Deserialize)]
#[serde(crate = "chokaq::serde")]
enum Binding {
    Stapled,
    Glued,
}

#[job(queue = "press")]
struct Bind {
    binding: Binding,
}

impl Job for Bind {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        ctx.state::<Log>()?.add(format!("{:?}", self.binding));
        Ok(())
    }
}

#[tokio::test]
async fn a_variant_that_this_release_does_not_know_is_rejected_and_can_be_resurrected_edited() {
    let pool = memory().await;
    let log = Log::default();
    let id = pool.enqueue_raw("bind", r#"{"binding":"Sewn"}"#).await.unwrap().id;
    let work = || worker(&pool).only::<(Bind,)>().state(log.clone()).build().unwrap();
    work().run_until_idle().await.unwrap();
    let (reason, job) = death(&pool, id).await;
    assert_eq!(reason, FailureReason::Rejected);
    assert!(job.errors[0].text.contains("Sewn"), "{}", job.errors[0].text);

    let edits = Edits::default().payload(r#"{"binding":"Glued"}"#);
    let outcomes = pool.operator().resurrect(&[id], edits).await.unwrap();
    assert_eq!(outcomes, [ResurrectOutcome::Resurrected]);
    work().run_until_idle().await.unwrap();
    assert_eq!(detail(&pool, id).await.state, JobState::Succeeded);
    assert_eq!(log.lines(), ["Glued"]);
}

/// Shifts a row's own memory of unknown types into the past.
fn backdate(folder: &Path, hours: i64) {
    let db = rusqlite::Connection::open(folder.join("jobs.db")).unwrap();
    db.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    let rows = db.execute(
        "UPDATE JobsHot SET UnknownSinceUtc = UnknownSinceUtc - ?1, ScheduledAtUtc = ScheduledAtUtc - ?1
         WHERE UnknownSinceUtc IS NOT NULL",
        [hours * 3_600_000],
    );
    assert_eq!(rows.unwrap(), 1);
}

#[tokio::test]
async fn jobs_of_a_removed_type_go_round_for_an_hour_and_are_rejected_after_it() {
    let (pool, folder) = file().await;
    let id = pool.enqueue_raw("removed", "{}").queue("press").await.unwrap().id;
    let work = || worker(&pool).only::<(Bind,)>().poll_interval(NEVER).build().unwrap();
    let first = work();
    let handle = first.handle();
    let running = tokio::spawn(first.run());
    let passed_on = async {
        loop {
            let job = detail(&pool, id).await;
            if job.due_at > job.created_at {
                return job;
            }
            tokio::task::yield_now().await;
        }
    };
    let job = passed_on.await;
    handle.stop();
    running.await.unwrap().unwrap();
    assert_eq!((job.state, job.attempts), (JobState::Active(JobStatus::Pending), 0));

    backdate(folder.path(), 2);
    work().run_until_idle().await.unwrap();
    let (reason, job) = death(&pool, id).await;
    assert_eq!(reason, FailureReason::Rejected);
    assert!(job.errors[0].text.contains("removed"), "{}", job.errors[0].text);
}

/// The old release knows `Print`, the new one both; both serve one queue of one database at once.
#[tokio::test]
async fn in_a_rolling_deploy_every_job_ends_with_a_worker_that_knows_it_and_none_dies() {
    let (pool, folder) = file().await;
    let log = Log::default();
    let build = |is_new: bool| {
        let worker = worker(&pool).state(log.clone()).queues(["press"]);
        let worker =
            if is_new { worker.only::<(Print, Bind)>() } else { worker.only::<(Print,)>() };
        worker.build().unwrap()
    };
    let old = build(false);
    let old_handle = old.handle();
    let old = tokio::spawn(old.run());
    // The new producers are out before the new workers: the old worker sees what it does not know.
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(Print { page: n.to_string(), copies: 1 }.enqueue(&pool).await.unwrap().id);
        let binding = if n % 2 == 0 { Binding::Glued } else { Binding::Stapled };
        ids.push(Bind { binding }.enqueue(&pool).await.unwrap().id);
    }
    while pool.operator().summary_stats().await.unwrap().succeeded_total < 20 {
        tokio::task::yield_now().await;
    }
    let new = build(true);
    let new_handle = new.handle();
    let new = tokio::spawn(new.run());
    // What the old worker passed on is due in half a minute; the test does not wait for it.
    let db = rusqlite::Connection::open(folder.path().join("jobs.db")).unwrap();
    db.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    while pool.operator().summary_stats().await.unwrap().succeeded_total < 40 {
        let due_now =
            "UPDATE JobsHot SET ScheduledAtUtc = CreatedAtUtc WHERE Status = 0 AND IsReady = 0";
        db.execute(due_now, []).unwrap();
        tokio::task::yield_now().await;
    }
    for id in ids {
        let job = detail(&pool, id).await;
        assert_eq!((job.state, job.attempts), (JobState::Succeeded, 1));
    }
    assert_eq!(pool.operator().summary_stats().await.unwrap().dead, 0);
    old_handle.stop();
    new_handle.stop();
    old.await.unwrap().unwrap();
    new.await.unwrap().unwrap();
}
