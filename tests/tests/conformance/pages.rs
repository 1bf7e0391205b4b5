//! Pages of the archive and of the dead-letter queue: by keyset, newest first, without gaps or repeats.

use std::collections::HashSet;

use chokaq::model::PageCursor;

use crate::prelude::*;

claims!(
    archive_pages_have_no_gap_and_no_repeat_across_equal_times,
    dead_pages_have_no_gap_and_no_repeat_across_equal_times,
    pages_are_newest_first,
    pages_of_one_queue_hold_that_queue_only,
    rows_that_come_while_one_turns_pages_shift_nothing,
    rows_that_leave_while_one_turns_pages_shift_nothing,
    an_empty_history_is_an_empty_page,
    a_page_of_nothing_is_empty,
    an_archived_row_shows_what_the_job_was,
    a_dead_row_shows_what_the_job_was,
);

#[derive(Clone, Copy)]
enum History {
    Archive,
    Dead,
}

type Page = Vec<(PageCursor, String)>;

async fn page(
    db: &Db,
    history: History,
    queue: Option<&str>,
    after: Option<PageCursor>,
    limit: usize,
) -> Page {
    let queue = queue.map(str::to_owned);
    match history {
        History::Archive => {
            let rows = db.storage.get_archive_paged(queue, after, limit).await;
            let rows = rows.expect("the storage answers").into_iter();
            rows.map(|r| (PageCursor { at: r.finished_at, id: r.id }, r.queue)).collect()
        }
        History::Dead => {
            let rows = db.storage.get_dlq_paged(queue, after, limit).await;
            let rows = rows.expect("the storage answers").into_iter();
            rows.map(|r| (PageCursor { at: r.failed_at, id: r.id }, r.queue)).collect()
        }
    }
}

/// All rows, page by page.
async fn turn(db: &Db, history: History, queue: Option<&str>, limit: usize) -> Page {
    let mut all: Page = Vec::new();
    loop {
        let after = all.last().map(|(cursor, _)| *cursor);
        let page = page(db, history, queue, after, limit).await;
        assert!(page.len() <= limit);
        if page.is_empty() {
            return all;
        }
        all.extend(page);
        assert!(all.len() <= 1_000, "the pages go round in a circle");
    }
}

/// Finishes `n` new jobs in one transaction: they share one time.
async fn finish_together(db: &Db, history: History, n: usize, queue: &str) -> Vec<JobId> {
    db.enqueue_all(jobs(n, || job_on(queue))).await;
    let leases: Vec<_> = db.fetch("w", n).await.into_iter().map(|job| job.lease).collect();
    assert_eq!(leases.len(), n);
    db.storage.mark_as_processing(leases.clone()).await.expect("the storage answers");
    let outcome = match history {
        History::Archive => succeeded(),
        History::Dead => dead(FailureReason::FatalError),
    };
    let batch = leases.iter().map(|lease| finish_of(lease, outcome.clone())).collect();
    db.storage.finalise(batch).await.expect("the storage answers");
    leases.iter().map(Lease::job).collect()
}

async fn no_gap_and_no_repeat(db: &Db, history: History) {
    let mut expected = HashSet::new();
    for _ in 0..3 {
        expected.extend(finish_together(db, history, 17, "default").await);
    }
    for limit in [1, 2, 5, 17, 50, 51, 100] {
        let all = turn(db, history, None, limit).await;
        let ids: HashSet<_> = all.iter().map(|(cursor, _)| cursor.id).collect();
        assert_eq!((all.len(), &ids), (51, &expected), "in pages of {limit}");
    }
}

async fn archive_pages_have_no_gap_and_no_repeat_across_equal_times(db: &Db) {
    no_gap_and_no_repeat(db, History::Archive).await;
}

async fn dead_pages_have_no_gap_and_no_repeat_across_equal_times(db: &Db) {
    no_gap_and_no_repeat(db, History::Dead).await;
}

async fn pages_are_newest_first(db: &Db) {
    for history in [History::Archive, History::Dead] {
        let mut finished = Vec::new();
        for _ in 0..6 {
            finished.extend(finish_together(db, history, 1, "default").await);
        }
        finished.reverse();
        let all = turn(db, history, None, 4).await;
        assert!(all.is_sorted_by(|(a, _), (b, _)| a.at >= b.at));
        let order: Vec<_> = all.iter().map(|(cursor, _)| cursor.id).collect();
        assert_eq!(order, finished);
    }
}

async fn pages_of_one_queue_hold_that_queue_only(db: &Db) {
    for history in [History::Archive, History::Dead] {
        for queue in ["mail", "Mail", "mail", "other"] {
            finish_together(db, history, 5, queue).await;
        }
        for limit in [3, 10] {
            let all = turn(db, history, Some("mail"), limit).await;
            assert_eq!(all.len(), 10);
            assert!(all.iter().all(|(_, queue)| queue == "mail"));
        }
        assert!(turn(db, history, Some("none"), 10).await.is_empty());
    }
}

async fn rows_that_come_while_one_turns_pages_shift_nothing(db: &Db) {
    for history in [History::Archive, History::Dead] {
        let old: HashSet<_> =
            finish_together(db, history, 20, "default").await.into_iter().collect();
        let first = page(db, history, None, None, 8).await;
        finish_together(db, history, 5, "default").await;
        let rest = page(db, history, None, Some(first[7].0), 100).await;
        let seen: Vec<_> = first.iter().chain(&rest).map(|(cursor, _)| cursor.id).collect();
        assert_eq!((seen.len(), seen.into_iter().collect::<HashSet<_>>()), (20, old));
    }
}

async fn rows_that_leave_while_one_turns_pages_shift_nothing(db: &Db) {
    finish_together(db, History::Dead, 12, "default").await;
    let all = page(db, History::Dead, None, None, 100).await;
    // The very row that the cursor names is resurrected: the next page starts after where it stood. Rows of that very
    // moment may be shown again; none may be left out.
    let cursor = all[5].0;
    db.resurrect(cursor.id).await;
    let rest = page(db, History::Dead, None, Some(cursor), 100).await;
    assert!(rest.ends_with(&all[6..]), "{rest:?}");
    let again = &rest[..rest.len() - 6];
    assert!(again.iter().all(|(row, _)| row.at == cursor.at), "{again:?}");
}

async fn an_empty_history_is_an_empty_page(db: &Db) {
    db.enqueue(job()).await;
    for history in [History::Archive, History::Dead] {
        assert!(page(db, history, None, None, 10).await.is_empty());
    }
}

async fn a_page_of_nothing_is_empty(db: &Db) {
    for history in [History::Archive, History::Dead] {
        finish_together(db, history, 2, "default").await;
        assert!(page(db, history, None, None, 0).await.is_empty());
    }
}

fn tagged() -> NewJob {
    NewJob {
        tags: Some(r#"["a","🚀"]"#.to_owned()), job_type: "send".to_owned(), ..job_on("mail")
    }
}

async fn an_archived_row_shows_what_the_job_was(db: &Db) {
    let lease = db.running(tagged()).await;
    let output = Some("{\"n\":1}".to_owned());
    db.done(&lease, Outcome::Succeeded { output: output.clone(), note: None }).await;
    let detail = db.detail(lease.job()).await;
    let page = db.storage.get_archive_paged(None, None, 10).await.expect("the storage answers");
    let row = &page[0];
    assert_eq!((row.id, row.queue.as_str(), row.job_type.as_str()), (lease.job(), "mail", "send"));
    assert_eq!((&row.tags, row.attempts, &row.output), (&tagged().tags, 1, &output));
    assert_eq!((row.created_at, Some(row.started_at)), (detail.created_at, detail.started_at));
    assert_eq!((Some(row.finished_at), row.worker.as_deref()), (detail.finished_at, Some("w")));
}

async fn a_dead_row_shows_what_the_job_was(db: &Db) {
    let id = db.buried(tagged()).await;
    let detail = db.detail(id).await;
    let page = db.storage.get_dlq_paged(None, None, 10).await.expect("the storage answers");
    let row = &page[0];
    assert_eq!((row.id, row.queue.as_str(), row.job_type.as_str()), (id, "mail", "send"));
    assert_eq!((&row.tags, row.attempts), (&tagged().tags, 1));
    assert_eq!((row.reason, row.error.as_deref()), (FailureReason::FatalError, Some("boom")));
    assert_eq!((row.created_at, Some(row.failed_at)), (detail.created_at, detail.finished_at));
    assert_eq!(row.worker.as_deref(), Some("w"));
}
