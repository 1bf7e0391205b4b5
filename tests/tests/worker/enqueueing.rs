//! The producers' side.

use std::time::{Duration, SystemTime};

use chokaq::{Enqueue, Pool};

use crate::support::{Note, detail, file, memory, note};

#[tokio::test]
async fn what_the_builder_sets_stands_in_the_row() {
    let pool = memory().await;
    let at = SystemTime::now() + Duration::from_hours(1);
    let enqueued = note("x")
        .enqueue(&pool)
        .queue("other")
        .priority(-5)
        .at(at)
        .idempotency_key("key")
        .tags(["a", "b"])
        .created_by("ada")
        .await
        .unwrap();
    assert!(!enqueued.duplicate);
    let job = detail(&pool, enqueued.id).await;
    assert_eq!((job.queue.as_str(), job.priority), ("other", -5));
    assert_eq!(job.due_at, at.into());
    assert_eq!(job.idempotency_key.as_deref(), Some("key"));
    assert_eq!(job.tags.as_deref(), Some(r#"["a","b"]"#));
    assert_eq!(job.created_by.as_deref(), Some("ada"));
    assert_eq!(job.payload, r#"{"name":"x"}"#);
    assert_eq!(job.retries, 3);
    assert_eq!(job.deadline_at.since(job.due_at), Duration::from_hours(24));
}

#[tokio::test]
async fn a_second_job_with_an_active_key_is_the_first_one() {
    let pool = memory().await;
    let first = note("1").enqueue(&pool).idempotency_key("k").await.unwrap();
    let second = note("2").enqueue(&pool).idempotency_key("k").await.unwrap();
    assert_eq!((second.id, second.duplicate), (first.id, true));
    assert_eq!(detail(&pool, first.id).await.payload, r#"{"name":"1"}"#);
}

#[tokio::test]
async fn input_over_a_limit_is_refused_by_name_and_nothing_is_stored() {
    let pool = memory().await;
    let long = "x".repeat(256);
    let refused = [
        (note("x").enqueue(&pool).queue(&long).await, "queue"),
        (note("x").enqueue(&pool).queue(" mail").await, "white space"),
        (note("x").enqueue(&pool).queue("").await, "empty"),
        (note("x").enqueue(&pool).idempotency_key(&long).await, "idempotency key"),
        (note("x").enqueue(&pool).tags([&long, &long, &long, &long]).await, "tag"),
        (note("x").enqueue(&pool).tags(vec!["y".repeat(200); 6]).await, "1000"),
        (note("x").enqueue(&pool).created_by(&long).await, "creator"),
        (note("x".repeat(1_000_001)).enqueue(&pool).await, "1000000"),
        (note("x").enqueue(&pool).delay(Duration::MAX).await, "50 years"),
        (pool.enqueue_raw("note", "{not json").await, "not JSON"),
        (pool.enqueue_raw("", "{}").await, "type key"),
    ];
    for (result, part) in refused {
        let error = result.expect_err(part);
        assert!(error.is_invalid_input(), "{error}");
        assert!(error.to_string().contains(part), "{error}");
        assert!(!error.is_transient());
    }
    assert_eq!(pool.operator().summary_stats().await.unwrap().pending, 0);
    note("x".repeat(900_000)).enqueue(&pool).await.expect("just under the limit");
}

#[tokio::test]
async fn enqueue_all_says_what_was_committed_when_it_fails_half_way() {
    let pool = memory().await;
    let jobs =
        (0..2_500).map(|n| note(if n == 2_300 { "x".repeat(2_000_000) } else { n.to_string() }));
    let error = Note::enqueue_all(&pool, jobs).await.expect_err("one is too large");
    assert_eq!(error.committed(), Some(2_000));
    assert!(error.is_invalid_input());
    assert_eq!(pool.operator().summary_stats().await.unwrap().pending, 2_000);
}

#[tokio::test]
async fn enqueue_all_counts_duplicates_and_reports_progress() {
    let pool = memory().await;
    let (sender, reports) = std::sync::mpsc::channel();
    let jobs = (0..3_000).map(|n| note((n % 1_000).to_string()));
    let all = Note::enqueue_all(&pool, jobs)
        .idempotency_key_by(|note: &Note| note.name.clone())
        .on_progress(move |total| sender.send(total.added + total.duplicates).unwrap())
        .await
        .unwrap();
    assert_eq!((all.added, all.duplicates), (1_000, 2_000));
    assert_eq!(reports.iter().collect::<Vec<_>>(), [1_000, 2_000, 3_000]);
}

#[tokio::test]
async fn two_pools_on_one_file_share_what_is_behind_them() {
    let (pool, folder) = file().await;
    let again = Pool::connect(format!("sqlite://{}", folder.path().join("jobs.db").display()));
    let again = again.await.unwrap();
    assert!(std::sync::Arc::ptr_eq(pool.storage(), again.storage()));
    let id = note("x").enqueue(&pool).await.unwrap().id;
    assert_eq!(detail(&again, id).await.id, id);
}

#[tokio::test]
async fn a_url_that_cannot_be_used_is_refused_without_printing_it() {
    for (url, part) in [
        ("postgres://user:secret@host/db", "sqlite:"),
        ("mssql://user:secret@host/db", "SQL Server"),
        ("secret", "sqlite:"),
        ("sqlite:", "no file"),
        ("sqlite:a.db?mode=secret2", "mode"),
        ("sqlite:/nowhere/at/all/jobs.db", "/nowhere/at/all"),
    ] {
        let error = Pool::connect(url).await.expect_err(url);
        let text = format!("{error} {error:?}");
        assert!(text.contains(part), "{text}");
        assert!(!text.contains("secret@"), "{text}");
    }
}

#[tokio::test]
async fn what_a_pools_builder_sets_is_what_types_that_do_not_say_inherit() {
    let pool = Pool::builder("sqlite::memory:")
        .retries(7)
        .max_age(Duration::from_hours(2))
        .payload_limit(2_000)
        .connect()
        .await
        .unwrap();
    let id = note("x").enqueue(&pool).await.unwrap().id;
    let job = detail(&pool, id).await;
    assert_eq!(job.retries, 7);
    assert_eq!(job.deadline_at.since(job.due_at), Duration::from_hours(2));
    assert!(note("x".repeat(2_000)).enqueue(&pool).await.unwrap_err().is_invalid_input());
    let error = Pool::builder("sqlite::memory:").timeout(Duration::ZERO).connect().await;
    assert!(error.unwrap_err().is_config());
}
