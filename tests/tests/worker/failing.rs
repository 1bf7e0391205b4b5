//! What becomes of jobs that do not succeed.

use std::{sync::Mutex, time::Duration};

use chokaq::{DeadLetter, FailureReason, model::JobState, prelude::*};

use crate::support::{Log, NEVER, death, detail, memory, worker};

/// Does what it is told, attempt by attempt.
#[job(retries = 2, backoff = fixed("1ms"), timeout = "50ms")]
struct Script {
    acts: Vec<Act>,
}

#[derive(Debug, Clone, Copy, chokaq::serde::Serialize, chokaq::serde::Deserialize)]
#[serde(crate = "chokaq::serde")]
enum Act {
    Succeed,
    Fail,
    Fatal,
    Panic,
    Cancel,
    Throttle,
    Snooze,
    Overrun,
    OwnLimit,
}

impl Job for Script {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        let log = ctx.state::<Log>()?;
        let run = log.lines().len();
        log.add(format!("attempt {}", ctx.attempt()));
        match self.acts[run.min(self.acts.len() - 1)] {
            Act::Succeed => Ok(()),
            Act::Fail => Err(std::io::Error::other("the disk is on fire").into()),
            Act::Fatal => Err(JobError::fatal("no such customer")),
            Act::Panic => panic!("index out of range"),
            Act::Cancel => Err(JobError::cancel("withdrawn")),
            Act::Throttle => Err(JobError::retry_after(Duration::from_millis(2), "429")),
            Act::Snooze => Err(JobError::snooze(Duration::from_millis(1))),
            Act::Overrun => std::future::pending().await,
            Act::OwnLimit => {
                let never = std::future::pending::<()>();
                Ok(tokio::time::timeout(Duration::from_millis(1), never).await?)
            }
        }
    }
}

/// Runs the script to its end and answers the job's id and what its handler logged.
async fn play(acts: &[Act]) -> (chokaq::Pool, chokaq::JobId, Vec<String>) {
    let pool = memory().await;
    let log = Log::default();
    let id = Script { acts: acts.to_vec() }.enqueue(&pool).await.unwrap().id;
    let worker = worker(&pool).only::<(Script,)>().state(log.clone());
    let worker = worker.cancel_grace(Duration::from_millis(10));
    worker.build().unwrap().run_until_idle().await.unwrap();
    (pool, id, log.lines())
}

#[tokio::test]
async fn a_flaky_job_succeeds_on_its_third_attempt_and_keeps_the_errors_of_the_first_two() {
    let (pool, id, log) = play(&[Act::Fail, Act::Fail, Act::Succeed]).await;
    assert_eq!(log, ["attempt 1", "attempt 2", "attempt 3"]);
    let job = detail(&pool, id).await;
    assert_eq!((job.state, job.attempts), (JobState::Succeeded, 3));
    let errors: Vec<_> = job.errors.iter().map(|e| (e.attempt, e.kind.as_str())).collect();
    assert_eq!(errors, [(1, "error"), (2, "error")]);
    assert_eq!(job.errors[0].text, "the disk is on fire");
    assert_eq!(pool.operator().summary_stats().await.unwrap().retried_total, 2);
}

#[tokio::test]
async fn a_job_that_always_fails_is_dead_after_its_last_attempt() {
    let (pool, id, log) = play(&[Act::Fail]).await;
    assert_eq!(log.len(), 3);
    let (reason, job) = death(&pool, id).await;
    assert_eq!(reason, FailureReason::MaxRetriesExceeded);
    assert_eq!(job.errors.len(), 3);
}

#[tokio::test]
async fn a_fatal_error_is_not_retried() {
    let (pool, id, log) = play(&[Act::Fatal]).await;
    assert_eq!(log, ["attempt 1"]);
    let (reason, job) = death(&pool, id).await;
    assert_eq!(reason, FailureReason::FatalError);
    assert_eq!(job.errors[0].text, "no such customer");
}

#[tokio::test]
async fn a_panic_is_a_failed_attempt_and_the_worker_lives() {
    let (pool, id, log) = play(&[Act::Panic, Act::Succeed]).await;
    assert_eq!(log, ["attempt 1", "attempt 2"]);
    let job = detail(&pool, id).await;
    assert_eq!(job.state, JobState::Succeeded);
    assert_eq!(job.errors[0].kind, "panic");
    assert!(job.errors[0].text.contains("index out of range"));
}

#[tokio::test]
async fn a_handler_can_cancel_its_own_job() {
    let (pool, id, log) = play(&[Act::Cancel]).await;
    assert_eq!(log.len(), 1);
    assert_eq!(death(&pool, id).await.0, FailureReason::Cancelled);
}

#[tokio::test]
async fn a_throttled_job_is_retried_and_dies_as_throttled() {
    let (pool, id, log) = play(&[Act::Throttle]).await;
    assert_eq!(log.len(), 3);
    assert_eq!(death(&pool, id).await.0, FailureReason::Throttled);
}

#[tokio::test]
async fn a_snooze_uses_no_attempt_and_is_no_error() {
    let (pool, id, log) =
        play(&[Act::Snooze, Act::Snooze, Act::Snooze, Act::Snooze, Act::Succeed]).await;
    assert_eq!(log, ["attempt 1"; 5]);
    let job = detail(&pool, id).await;
    assert_eq!((job.state, job.attempts), (JobState::Succeeded, 1));
    assert!(job.errors.is_empty());
    assert_eq!(pool.operator().summary_stats().await.unwrap().retried_total, 0);
}

#[tokio::test]
async fn an_attempt_over_its_time_limit_is_retried_and_dies_as_timeout() {
    let (pool, id, log) = play(&[Act::Overrun]).await;
    assert_eq!(log.len(), 3);
    let (reason, job) = death(&pool, id).await;
    assert_eq!(reason, FailureReason::Timeout);
    assert!(job.errors[0].text.contains("50ms"), "{}", job.errors[0].text);
}

#[tokio::test]
async fn a_time_limit_of_the_handlers_own_is_an_ordinary_error() {
    let (pool, id, _) = play(&[Act::OwnLimit]).await;
    let (reason, job) = death(&pool, id).await;
    assert_eq!(reason, FailureReason::MaxRetriesExceeded);
    assert!(job.errors.iter().all(|error| error.kind == "error"), "{:?}", job.errors);
}

#[tokio::test]
async fn a_payload_that_cannot_be_decoded_is_rejected_at_once_and_says_why() {
    let pool = memory().await;
    let id = pool.enqueue_raw("script", r#"{"acts": "all"}"#).await.unwrap().id;
    worker(&pool).only::<(Script,)>().build().unwrap().run_until_idle().await.unwrap();
    let (reason, job) = death(&pool, id).await;
    assert_eq!(reason, FailureReason::Rejected);
    assert_eq!(job.errors.len(), 1);
    let text = &job.errors[0].text;
    assert!(text.contains("Script") && text.contains("failing.rs"), "{text}");
}

#[tokio::test]
async fn missing_state_is_fatal_and_names_the_type() {
    let pool = memory().await;
    let id = Script { acts: vec![Act::Succeed] }.enqueue(&pool).await.unwrap().id;
    worker(&pool).only::<(Script,)>().build().unwrap().run_until_idle().await.unwrap();
    let (reason, job) = death(&pool, id).await;
    assert_eq!(reason, FailureReason::FatalError);
    assert!(job.errors[0].text.contains("support::Log"), "{}", job.errors[0].text);
}

#[tokio::test]
async fn a_row_of_an_unknown_type_goes_back_with_no_attempt_used() {
    let pool = memory().await;
    let id = pool.enqueue_raw("of_a_newer_release", "{}").await.unwrap().id;
    let worker = worker(&pool).only::<(Script,)>().poll_interval(NEVER).build().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    let job = loop {
        let job = detail(&pool, id).await;
        if job.due_at.since(job.created_at) >= Duration::from_secs(30) {
            break job;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(job.state, JobState::Active(chokaq::model::JobStatus::Pending));
    assert_eq!((job.attempts, job.worker), (0, None));
    handle.stop();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_dead_letter_hook_is_told_of_each_dead_job() {
    static TOLD: Mutex<Vec<DeadLetter>> = Mutex::new(Vec::new());
    let pool = memory().await;
    let id = Script { acts: vec![Act::Fatal] }.enqueue(&pool).await.unwrap().id;
    let worker = worker(&pool)
        .only::<(Script,)>()
        .state(Log::default())
        .on_dead_letter(|letter| TOLD.lock().unwrap().push(letter.clone()));
    worker.build().unwrap().run_until_idle().await.unwrap();
    let told = TOLD.lock().unwrap();
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].id, told[0].reason), (id, FailureReason::FatalError));
    assert_eq!(told[0].error, "no such customer");
}

/// An output that serde cannot write as JSON.
#[job]
struct Unwritable;

impl Job for Unwritable {
    type Output = std::collections::HashMap<(u8, u8), u8>;
    async fn run(self, _: &JobContext) -> Result<Self::Output, JobError> {
        Ok([((1, 2), 3)].into())
    }
}

#[tokio::test]
async fn an_output_that_cannot_be_written_does_not_rerun_the_job() {
    let pool = memory().await;
    let id = Unwritable::enqueue(&pool).await.unwrap().id;
    worker(&pool).only::<(Unwritable,)>().build().unwrap().run_until_idle().await.unwrap();
    let job = detail(&pool, id).await;
    assert_eq!((job.state, job.attempts), (JobState::Succeeded, 1));
    assert_eq!(job.output, None);
    assert!(job.output_note.unwrap().contains("not serialisable"));
}
