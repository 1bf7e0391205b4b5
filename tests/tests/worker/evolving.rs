//! Payloads and types change between releases; stored jobs and older workers stay.

use std::{path::Path, time::Duration};

use chokaq::{
    Edits, FailureReason, JobId, JobState, JobStatus, Pool, ResurrectOutcome, prelude::*,
};

use crate::support::{Log, death, detail, file, memory, worker};

/// As an older release wrote it: without `copies`.
const OLD_PAYLOAD: &str = r#"{"page":"a"}"#;

#[job(queue = "press", type_key = "print", aliases = ["print_page"])]
struct Print {
    #[serde(alias = "sheet")]
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
async fn a_renamed_field_is_read_by_its_old_name_through_an_alias() {
    let pool = memory().await;
    let log = Log::default();
    pool.enqueue_raw("print", r#"{"sheet":"a"}"#).queue("press").await.unwrap();
    let worker = worker(&pool).only::<(Print,)>().state(log.clone()).build().unwrap();
    worker.run_until_idle().await.unwrap();
    assert_eq!(log.lines(), ["a x1"]);
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

/// The release after: it needs a field that older rows lack, and says nothing about them.
#[job(type_key = "print", queue = "press", enqueue_only)]
struct CarelessPrint {
    duplex: bool,
}

impl Job for CarelessPrint {
    type Output = bool;
    async fn run(self, _: &JobContext) -> Result<bool, JobError> {
        Ok(self.duplex)
    }
}

#[tokio::test]
async fn a_field_added_without_a_default_rejects_older_jobs_and_the_mended_release_runs_them() {
    let pool = memory().await;
    let log = Log::default();
    let id = pool.enqueue_raw("print", r#"{"page":"a","gone":1}"#).queue("press").await.unwrap().id;
    let careless = worker(&pool).only::<(CarelessPrint,)>().build().unwrap();
    careless.run_until_idle().await.unwrap();
    let (reason, job) = death(&pool, id).await;
    assert_eq!((reason, job.attempts), (FailureReason::Rejected, 1));
    assert!(job.errors[0].text.contains("missing field `duplex`"), "{}", job.errors[0].text);

    let outcomes = pool.operator().resurrect(&[id], Edits::default()).await.unwrap();
    assert_eq!(outcomes, [ResurrectOutcome::Resurrected]);
    let mended = worker(&pool).only::<(Print,)>().state(log.clone()).build().unwrap();
    mended.run_until_idle().await.unwrap();
    assert_eq!(log.lines(), ["a x1"], "a field that is known no more does no harm");
}

/// One type in two releases: its queue and its policy have changed.
#[job(type_key = "moved", queue = "before", retries = 0, enqueue_only)]
struct Before;

#[job(type_key = "moved", queue = "after", retries = 5, enqueue_only)]
struct After;

impl Job for After {
    type Output = ();
    async fn run(self, _: &JobContext) -> Result<(), JobError> {
        Err("no".into())
    }
}

#[tokio::test]
async fn a_stored_job_keeps_its_queue_and_its_policy_when_its_type_changes_them() {
    let pool = memory().await;
    let id = Before.enqueue(&pool).await.unwrap().id;
    let only_after = worker(&pool).only::<(After,)>().build().unwrap();
    only_after.run_until_idle().await.unwrap();
    assert_eq!(detail(&pool, id).await.attempts, 0, "its queue is not served any more");
    let both = worker(&pool).only::<(After,)>().queues(["before", "after"]).build().unwrap();
    both.run_until_idle().await.unwrap();
    let (reason, job) = death(&pool, id).await;
    assert_eq!((reason, job.attempts), (FailureReason::MaxRetriesExceeded, 1));
}

#[tokio::test]
async fn an_idempotency_key_does_not_reach_across_a_renaming() {
    let pool = memory().await;
    let old = pool.enqueue_raw("print_page", OLD_PAYLOAD).idempotency_key("page-a").await.unwrap();
    let new = Print { page: "a".into(), copies: 1 }.enqueue(&pool).idempotency_key("page-a");
    let new = new.await.unwrap();
    assert!(!new.duplicate && new.id != old.id, "a key belongs to the stored name");
}

/// A second connection to the database, as a person has one.
struct Client(rusqlite::Connection);

impl Client {
    fn open(folder: &Path) -> Self {
        let connection = rusqlite::Connection::open(folder.join("jobs.db")).unwrap();
        connection.busy_timeout(Duration::from_secs(30)).unwrap();
        Self(connection)
    }

    fn count(&self, sql: &str) -> i64 {
        self.0.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// What was given back is due now instead of in half a minute; its round began these minutes earlier.
    fn bring_forward(&self, minutes: i64) -> usize {
        let sql = "UPDATE JobsHot SET UnknownSinceUtc = UnknownSinceUtc - ?1 * 60000, \
             ScheduledAtUtc = CreatedAtUtc, IsReady = 1 \
             WHERE Status = 0 AND IsReady = 0 AND UnknownSinceUtc IS NOT NULL";
        self.0.execute(sql, [minutes]).unwrap()
    }

    /// Rows that a worker which does not know their type has given back.
    fn given_back(&self) -> i64 {
        self.count(
            "SELECT count(*) FROM JobsHot WHERE Status = 0 AND IsReady = 0 AND UnknownSinceUtc IS NOT NULL",
        )
    }
}

async fn until(holds: impl AsyncFn() -> bool) {
    while !holds().await {
        tokio::task::yield_now().await;
    }
}

#[job(type_key = "removed", queue = "press", enqueue_only)]
struct BroughtBack;

impl Job for BroughtBack {
    type Output = ();
    async fn run(self, _: &JobContext) -> Result<(), JobError> {
        Ok(())
    }
}

#[tokio::test]
async fn jobs_of_a_removed_type_go_round_for_an_hour_and_are_rejected_after_it() {
    let (pool, folder) = file().await;
    let client = Client::open(folder.path());
    let id = pool.enqueue_raw("removed", "null").queue("press").await.unwrap().id;
    let soon = Duration::from_millis(5);
    let worker_without = worker(&pool).only::<(Bind,)>().poll_interval(soon).build().unwrap();
    let handle = worker_without.handle();
    let running = tokio::spawn(worker_without.run());
    until(async || client.given_back() == 1).await;

    assert_eq!(client.bring_forward(58), 1);
    until(async || client.given_back() == 1).await;
    let job = detail(&pool, id).await;
    assert_eq!((job.state, job.attempts), (JobState::Active(JobStatus::Pending), 0));
    assert!(job.errors.is_empty(), "58 minutes are within the grace: nothing has happened to it");

    assert_eq!(client.bring_forward(3), 1);
    until(async || detail(&pool, id).await.finished_at.is_some()).await;
    handle.stop();
    running.await.unwrap().unwrap();
    let (reason, job) = death(&pool, id).await;
    assert_eq!(reason, FailureReason::Rejected);
    assert!(job.errors[0].text.contains("\"removed\""), "{}", job.errors[0].text);

    // And then a release that knows it comes back.
    let outcomes = pool.operator().resurrect(&[id], Edits::default()).await.unwrap();
    assert_eq!(outcomes, [ResurrectOutcome::Resurrected]);
    let worker_with = worker(&pool).only::<(BroughtBack,)>().build().unwrap();
    worker_with.run_until_idle().await.unwrap();
    assert_eq!(detail(&pool, id).await.state, JobState::Succeeded);
}

/// A type whose handler answers which release's worker ran it.
macro_rules! answers_its_release {
    ($name:ident, $key:literal) => {
        #[job(type_key = $key, queue = "rolling", enqueue_only)]
        struct $name;

        impl Job for $name {
            type Output = String;
            async fn run(self, ctx: &JobContext) -> Result<String, JobError> {
                Ok((*ctx.state::<&'static str>()?).to_owned())
            }
        }
    };
}

answers_its_release!(Kept, "kept");
answers_its_release!(Removed, "old");
answers_its_release!(Added, "new");

const JOBS_OF_A_TYPE: i64 = 20;

async fn enqueue_of_every_type(pool: &Pool) -> Vec<JobId> {
    let mut ids = Vec::new();
    for _ in 0..JOBS_OF_A_TYPE {
        ids.push(Kept.enqueue(pool).await.unwrap().id);
        ids.push(Removed.enqueue(pool).await.unwrap().id);
        ids.push(Added.enqueue(pool).await.unwrap().id);
    }
    ids
}

/// Both releases serve one queue of one database; each knows a type that the other does not.
#[tokio::test]
async fn in_a_rolling_deploy_every_job_ends_with_a_worker_that_knows_it_and_none_dies() {
    let (pool, folder) = file().await;
    let client = Client::open(folder.path());
    let build = |release: &'static str| {
        worker(&pool).state(release).poll_interval(Duration::from_millis(5))
    };
    let mut ids = enqueue_of_every_type(&pool).await;
    let old = build("old").only::<(Kept, Removed)>().build().unwrap();
    let old_handle = old.handle();
    let old = tokio::spawn(old.run());
    // New producers are out before new workers: every job that the old one does not know has been in its hands.
    until(async || {
        let active = client.count("SELECT count(*) FROM JobsHot");
        (active, client.given_back()) == (JOBS_OF_A_TYPE, JOBS_OF_A_TYPE)
    })
    .await;

    let new = build("new").only::<(Kept, Added)>().build().unwrap();
    let new_handle = new.handle();
    let new = tokio::spawn(new.run());
    ids.extend(enqueue_of_every_type(&pool).await);
    until(async || {
        client.bring_forward(0);
        client.count("SELECT count(*) FROM JobsHot") == 0
    })
    .await;
    old_handle.stop();
    new_handle.stop();
    old.await.unwrap().unwrap();
    new.await.unwrap().unwrap();

    for id in ids {
        let job = detail(&pool, id).await;
        assert_eq!((job.state, job.attempts), (JobState::Succeeded, 1), "{}", job.job_type);
        let release = job.output::<String>().unwrap().unwrap();
        assert!(job.job_type == "kept" || job.job_type == release, "{} {release}", job.job_type);
    }
}
