//! Pages of history.

use chokaq::{FailureReason, PageCursor, Timestamp, storage::OperatorStorage};

use crate::{
    answers::{Cell, text},
    storage::stage::{NULL, Replies, Stage, int, job_cell, job_id},
    within,
};

const MS: i64 = 1_772_366_400_250;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(ms)
}

const FIRST: [&str; 4] = [
    "@queue nvarchar(255) = NULL",
    "@after_at_ms bigint = NULL",
    "@after_id uniqueidentifier = NULL",
    "@limit int = 50",
];

const LATER: [&str; 4] = [
    "@queue nvarchar(255) = prüfen 🔎",
    "@after_at_ms bigint = 1772366400250",
    "@after_id uniqueidentifier = 00112233-4455-6677-8899-aabbccdd0007",
    // More is no page.
    "@limit int = 1000",
];

/// The arguments of a page that is not the first.
fn later() -> (Option<String>, Option<PageCursor>, usize) {
    (Some("prüfen 🔎".to_owned()), Some(PageCursor { at: at(MS), id: job_id(7) }), usize::MAX)
}

fn succeeded(number: i64, tags: Cell, worker: Cell, output: Cell) -> [Cell; 10] {
    let times = [MS, MS + 1, MS + 2].map(int);
    let [created, started, finished] = times;
    let (id, queue, key) = (job_cell(number), text("mail"), text("send"));
    [id, queue, key, tags, int(2), created, started, finished, worker, output]
}

#[tokio::test]
async fn a_page_of_the_archive_goes_on_after_its_cursor_and_keeps_the_servers_order() {
    let full = succeeded(2, text(r#"["🏷"]"#), text("wörker 🔑"), text(r#""🔑""#));
    let replies = Replies::new()
        .rows("get_archive_paged", vec![full, succeeded(1, NULL, NULL, NULL)])
        .rows("get_archive_paged", Vec::<[Cell; 10]>::new());
    let stage = Stage::new(replies).await;
    let page = within(stage.storage.get_archive_paged(None, None, 50)).await.expect("a page");
    assert_eq!(page.iter().map(|row| row.id).collect::<Vec<_>>(), [job_id(2), job_id(1)]);
    let (full, plain) = (&page[0], &page[1]);
    assert_eq!((&*full.queue, &*full.job_type, full.attempts), ("mail", "send", 2));
    assert_eq!(
        (full.created_at, full.started_at, full.finished_at),
        (at(MS), at(MS + 1), at(MS + 2))
    );
    assert_eq!(full.tags.as_deref(), Some(r#"["🏷"]"#));
    assert_eq!(full.worker.as_deref(), Some("wörker 🔑"));
    assert_eq!(full.output.as_deref(), Some(r#""🔑""#));
    assert_eq!(full.cursor(), PageCursor { at: at(MS + 2), id: job_id(2) });
    assert!([&plain.tags, &plain.worker, &plain.output].into_iter().all(Option::is_none));

    let (queue, after, limit) = later();
    let page = within(stage.storage.get_archive_paged(queue, after, limit)).await;
    assert_eq!(page.expect("the end"), []);
    assert_eq!((stage.sent(0), stage.sent(1)), (owned(FIRST), owned(LATER)));
}

fn owned(texts: [&str; 4]) -> Vec<String> {
    texts.map(str::to_owned).into()
}

fn dead(number: i64, reason: &str, tags: Cell, error: Cell, worker: Cell) -> [Cell; 10] {
    let (id, queue, key) = (job_cell(number), text("mail"), text("send"));
    [id, queue, key, tags, text(reason), error, int(0), int(MS), int(MS + 1), worker]
}

#[tokio::test]
async fn a_page_of_the_dead_goes_on_after_its_cursor_and_keeps_the_servers_order() {
    let full = dead(2, "Timeout", text(r#"["🏷"]"#), text("böse 🔥"), text("wörker 🔑"));
    let replies = Replies::new()
        .rows("get_dlq_paged", vec![full, dead(1, "Cancelled", NULL, NULL, NULL)])
        .rows("get_dlq_paged", Vec::<[Cell; 10]>::new());
    let stage = Stage::new(replies).await;
    let page = within(stage.storage.get_dlq_paged(None, None, 50)).await.expect("a page");
    let (full, plain) = (&page[0], &page[1]);
    assert_eq!((full.id, full.reason, full.attempts), (job_id(2), FailureReason::Timeout, 0));
    assert_eq!((&*full.queue, &*full.job_type), ("mail", "send"));
    assert_eq!((full.created_at, full.failed_at), (at(MS), at(MS + 1)));
    assert_eq!(full.tags.as_deref(), Some(r#"["🏷"]"#));
    assert_eq!(full.error.as_deref(), Some("böse 🔥"));
    assert_eq!(full.worker.as_deref(), Some("wörker 🔑"));
    assert_eq!(full.cursor(), PageCursor { at: at(MS + 1), id: job_id(2) });
    assert_eq!((plain.id, plain.reason), (job_id(1), FailureReason::Cancelled));
    assert!([&plain.tags, &plain.worker, &plain.error].into_iter().all(Option::is_none));

    let (queue, after, limit) = later();
    let page = within(stage.storage.get_dlq_paged(queue, after, limit)).await;
    assert_eq!(page.expect("the end"), []);
    assert_eq!((stage.sent(0), stage.sent(1)), (owned(FIRST), owned(LATER)));
}
