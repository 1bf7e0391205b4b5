//! The errors of a job's attempts: appended, bounded, kept wherever the job goes.

use crate::prelude::*;

claims!(
    each_attempts_error_is_appended_oldest_first,
    errors_go_with_the_job_into_the_archive,
    errors_go_with_the_job_into_the_dead_letter_queue,
    the_newest_twenty_five_errors_are_kept,
    a_long_error_is_cut_and_marked,
    any_text_can_be_an_error,
    a_snooze_keeps_the_errors_of_earlier_attempts,
    errors_carry_the_databases_time,
);

/// Runs the job once more and lets it fail for a retry.
async fn fail(db: &Db, kind: &'static str, text: &str) -> JobId {
    let lease = db.fetch_one("w").await;
    let attempt = db.start(&lease).await;
    let error = AttemptError::new(attempt, kind, text);
    db.done(&lease, Outcome::Retry { delay: Duration::ZERO, error }).await;
    lease.job()
}

async fn texts(db: &Db, job: JobId) -> Vec<(u32, String, String)> {
    let errors = db.detail(job).await.errors;
    errors.into_iter().map(|error| (error.attempt, error.kind, error.text)).collect()
}

fn expected(errors: &[(u32, &str, &str)]) -> Vec<(u32, String, String)> {
    errors.iter().map(|&(n, kind, text)| (n, kind.to_owned(), text.to_owned())).collect()
}

async fn each_attempts_error_is_appended_oldest_first(db: &Db) {
    let id = db.enqueue(job()).await;
    fail(db, "error", "first").await;
    fail(db, "panic", "second").await;
    fail(db, "timeout", "third").await;
    let errors = [(1, "error", "first"), (2, "panic", "second"), (3, "timeout", "third")];
    assert_eq!(texts(db, id).await, expected(&errors));
}

async fn errors_go_with_the_job_into_the_archive(db: &Db) {
    let id = db.enqueue(job()).await;
    fail(db, "error", "first").await;
    let lease = db.start_one("w").await;
    db.done(&lease, succeeded()).await;
    assert_eq!(db.state(id).await, JobState::Succeeded);
    assert_eq!(texts(db, id).await, expected(&[(1, "error", "first")]));
}

async fn errors_go_with_the_job_into_the_dead_letter_queue(db: &Db) {
    let id = db.enqueue(job()).await;
    fail(db, "error", "first").await;
    let lease = db.start_one("w").await;
    let error = AttemptError::new(2, "fatal", "second");
    db.done(&lease, Outcome::Dead { reason: FailureReason::FatalError, error }).await;
    assert_eq!(texts(db, id).await, expected(&[(1, "error", "first"), (2, "fatal", "second")]));
    let page = db.storage.get_dlq_paged(None, None, 10).await.expect("the storage answers");
    assert_eq!(page[0].error.as_deref(), Some("second"));
}

async fn the_newest_twenty_five_errors_are_kept(db: &Db) {
    let id = db.enqueue(NewJob { retries: 100, ..job() }).await;
    for n in 1..=30 {
        fail(db, "error", &format!("error {n}")).await;
    }
    let kept = texts(db, id).await;
    let attempts: Vec<u32> = kept.iter().map(|(attempt, ..)| *attempt).collect();
    assert_eq!(attempts, (6..=30).collect::<Vec<u32>>());
    assert_eq!(kept[24].2, "error 30");
    let lease = db.start_one("w").await;
    let error = AttemptError::new(31, "error", "the last");
    db.done(&lease, Outcome::Dead { reason: FailureReason::MaxRetriesExceeded, error }).await;
    let kept = texts(db, id).await;
    assert_eq!((kept.len(), kept[0].0, kept[24].0), (25, 7, 31));
}

async fn a_long_error_is_cut_and_marked(db: &Db) {
    let id = db.enqueue(job()).await;
    // A three-byte character stands across the cut.
    fail(db, "error", &"€".repeat(10_000)).await;
    let text = &texts(db, id).await[0].2;
    assert!(text.ends_with("€ [cut: 30000 bytes in all]"), "{}", &text[text.len() - 60..]);
    assert!(text.len() <= AttemptError::MAX_TEXT_BYTES + 40, "{} bytes", text.len());
}

async fn any_text_can_be_an_error(db: &Db) {
    let texts_in = [
        "it's \"quoted\" and \\slashed\\",
        "two\nlines\r\n\tand a tab",
        "🦀 and 𝄞 beyond the BMP, e\u{301}, \u{200b}",
        "control \u{1} and \u{7f}",
        "'; DROP TABLE JobsHot; --",
        "",
    ];
    let id = db.enqueue(NewJob { retries: 10, ..job() }).await;
    for text in texts_in {
        fail(db, "error", text).await;
    }
    let texts_out: Vec<_> = texts(db, id).await.into_iter().map(|(.., text)| text).collect();
    assert_eq!(texts_out, texts_in);
    for text in texts_in {
        let lease = db.start_one("w").await;
        let gone = Outcome::Dead { reason: FailureReason::FatalError, error: error(text) };
        db.done(&lease, gone).await;
        let page = db.storage.get_dlq_paged(None, None, 10).await.expect("the storage answers");
        assert_eq!(page[0].error.as_deref(), Some(text));
        db.resurrect(id).await;
    }
}

async fn a_snooze_keeps_the_errors_of_earlier_attempts(db: &Db) {
    let id = db.enqueue(job()).await;
    fail(db, "error", "first").await;
    let lease = db.start_one("w").await;
    db.done(&lease, snooze(Duration::ZERO)).await;
    assert_eq!(texts(db, id).await, expected(&[(1, "error", "first")]));
}

async fn errors_carry_the_databases_time(db: &Db) {
    let id = db.enqueue(job()).await;
    let before = db.now().await;
    fail(db, "error", "first").await;
    let at = Timestamp::from_unix_ms(db.detail(id).await.errors[0].at_ms);
    assert!(before <= at && at <= db.now().await);
}
