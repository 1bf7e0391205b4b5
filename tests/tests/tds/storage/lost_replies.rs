//! Calls whose reply was lost: the server may have done them, and the repeat recognises that.

use std::collections::HashSet;

use chokaq::{
    FailureReason, Timestamp,
    model::{EnqueueOutcome, FetchRequest, FinishOutcome, MarkOutcome, Release},
    storage::{ProducerStorage, WorkerStorage},
};

use crate::{
    answers::{Cell, Step, error, text},
    storage::{
        columns::{empty, rows},
        enqueue::job,
        finalise::{dead, finalise, finishes, retry, snooze, succeeded},
        stage::{
            NULL, Replies, Stage, batch, claimed, ended, int, job_cell, job_id, leases, request,
        },
    },
    within,
};

/// Losses after which nobody knows whether the call was done: the service moved, or the connection broke.
fn losses() -> [Vec<Step>; 2] {
    [vec![error(40_613)], vec![Step::Close]]
}

/// It commits queue by queue: a deadlock in one leaves what was claimed of the others.
fn losses_of_a_claim() -> impl Iterator<Item = Vec<Step>> {
    losses().into_iter().chain([vec![error(1205)]])
}

fn found(number: i64) -> [Cell; 15] {
    let row: Vec<Cell> = claimed(number).into_iter().take(15).collect();
    row.try_into().expect("15 columns")
}

#[tokio::test]
async fn a_fetch_first_asks_what_its_lease_holds() {
    for loss in losses_of_a_claim() {
        let replies = Replies::new()
            .to("fetch_next_batch", loss)
            .rows("find_claimed", vec![found(1), found(2)])
            .to("fetch_next_batch", empty("fetch_next_batch"));
        let stage = Stage::new(replies).await;
        let reply = within(stage.storage.fetch_next_batch(request(5))).await.expect("an answer");
        let ids: Vec<_> = reply.jobs.iter().map(|job| job.lease.job()).collect();
        assert_eq!(ids, [job_id(1), job_id(2)]);
        assert_eq!(stage.names(), ["fetch_next_batch", "find_claimed", "fetch_next_batch"]);
        assert_eq!(stage.sent(2)[4], "@take int = 0", "no more is claimed under the lease");
        let leases: HashSet<_> = [stage.sent(0).remove(1), stage.sent(1).remove(1)].into();
        assert_eq!(leases.len(), 1, "under the lease of the first");
    }
}

#[tokio::test]
async fn a_fetch_whose_claim_was_not_made_is_made_under_the_same_lease() {
    for loss in losses_of_a_claim() {
        let replies = Replies::new()
            .to("fetch_next_batch", loss)
            // The look may be lost too.
            .to("find_claimed", vec![Step::Close])
            .to("find_claimed", empty("find_claimed"))
            .to("fetch_next_batch", batch(vec![claimed(1)]));
        let stage = Stage::new(replies).await;
        let reply = within(stage.storage.fetch_next_batch(request(5))).await.expect("an answer");
        assert_eq!(reply.jobs.len(), 1);
        assert_eq!(
            stage.names(),
            ["fetch_next_batch", "find_claimed", "find_claimed", "fetch_next_batch"]
        );
        assert_eq!(stage.sent(0), stage.sent(3));
    }
}

#[tokio::test]
async fn a_fetch_that_fails_for_good_after_a_loss_may_have_claimed_and_its_repeat_finds_it() {
    let replies = Replies::new()
        .to("fetch_next_batch", vec![Step::Close])
        .to("find_claimed", vec![error(229)])
        .rows("find_claimed", vec![found(1)])
        .to("fetch_next_batch", empty("fetch_next_batch"));
    let stage = Stage::new(replies).await;
    within(stage.storage.fetch_next_batch(request(5))).await.expect_err("no permission");
    let repeat = FetchRequest { is_repeat: true, ..request(5) };
    let reply = within(stage.storage.fetch_next_batch(repeat)).await.expect("the row");
    assert_eq!(reply.jobs.len(), 1);
}

#[tokio::test]
async fn an_enqueue_finds_its_own_jobs() {
    for loss in losses() {
        let replies =
            Replies::new().to("enqueue", loss).rows("enqueue", vec![[int(0), int(1), NULL]]);
        let stage = Stage::new(replies).await;
        let outcomes = within(stage.storage.enqueue(vec![job(1)])).await.expect("an answer");
        assert_eq!(outcomes, [EnqueueOutcome::Stored]);
        assert_eq!(stage.names(), ["enqueue", "enqueue"]);
        assert_eq!(stage.sent(0), stage.sent(1), "the ids are the producer's");
    }
}

#[tokio::test]
async fn a_mark_finds_what_it_started() {
    for loss in losses() {
        let replies = Replies::new()
            .to("mark_as_processing", loss)
            .to("mark_as_processing", empty("mark_as_processing"))
            .rows("find_marked", vec![[int(1), int(2), int(7)]]);
        let stage = Stage::new(replies).await;
        let marked = within(stage.storage.mark_as_processing(leases(1..=1).await)).await;
        let started_at = Timestamp::from_unix_ms(7);
        assert_eq!(
            marked.expect("an answer"),
            [MarkOutcome::Started { attempt: 2, started_at }],
            "counted once"
        );
        assert_eq!(stage.names(), ["mark_as_processing", "mark_as_processing", "find_marked"]);
    }
}

#[tokio::test]
async fn a_release_finds_what_it_gave_back() {
    let replies = Replies::new()
        .to("release", vec![Step::Close])
        .to("release", empty("release"))
        .rows("find_released", vec![[int(1)]]);
    let stage = Stage::new(replies).await;
    let lease = leases(1..=1).await.remove(0);
    let release = Release { lease, delay: None, unknown_type: false };
    assert_eq!(within(stage.storage.release(vec![release])).await.expect("an answer"), [true]);
}

#[tokio::test]
async fn every_kind_of_finish_recognises_its_first_run() {
    let fatal = || dead(FailureReason::FatalError);
    for loss in losses() {
        for (outcome, name, is_pending, is_archived, reason) in [
            (succeeded(), "archive_succeeded", 0, 1, NULL),
            (fatal(), "move_to_dlq", 0, 0, text("FatalError")),
            (retry(), "reschedule_for_retry", 1, 0, NULL),
            (snooze(), "snooze", 1, 0, NULL),
        ] {
            let found = [job_cell(1), int(is_pending), int(is_archived), reason];
            let replies =
                Replies::nothing_found().to(name, loss.clone()).rows("find_finished", vec![found]);
            let stage = Stage::new(replies).await;
            let outcomes = finalise(&stage, finishes(vec![outcome]).await).await;
            assert_eq!(outcomes, [FinishOutcome::Done], "{name}");
            assert_eq!(stage.names()[..2], [name, name]);
            assert_eq!(stage.sent(0), stage.sent(1));
        }
    }
}

#[tokio::test]
async fn a_reply_lost_in_the_middle_of_a_batch_leaves_its_outcomes_right() {
    let replies = Replies::new()
        .rows("archive_succeeded", vec![ended(1)])
        .to("move_to_dlq", vec![Step::Close])
        // It was committed: there is nothing left to move.
        .to("move_to_dlq", empty("move_to_dlq"))
        .rows("reschedule_for_retry", vec![[job_cell(3)]])
        .rows("find_finished", vec![[job_cell(2), int(0), int(0), text("FatalError")]]);
    let stage = Stage::new(replies).await;
    let batch = finishes(vec![succeeded(), dead(FailureReason::FatalError), retry()]).await;
    assert_eq!(finalise(&stage, batch).await, [FinishOutcome::Done; 3]);
}

#[tokio::test]
async fn a_retry_whose_burial_was_lost_knows_why_it_is_dead() {
    for (reason, expected) in [
        ("Cancelled", FinishOutcome::Cancelled),
        ("RetryLifetimeExpired", FinishOutcome::LifetimeExpired),
    ] {
        let replies = Replies::nothing_found()
            .to("move_to_dlq", vec![Step::Close])
            .rows("find_finished", vec![[job_cell(1), int(0), int(0), text(reason)]]);
        let stage = Stage::new(replies).await;
        assert_eq!(finalise(&stage, finishes(vec![retry()]).await).await, [expected]);
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_between_its_rows_is_not_taken_for_a_whole_one() {
    let replies = Replies::new()
        .to("archive_succeeded", vec![rows("archive_succeeded", vec![ended(1)]), Step::Close])
        .rows("archive_succeeded", vec![ended(2)])
        .rows("find_finished", vec![[job_cell(1), int(0), int(1), NULL]]);
    let stage = Stage::new(replies).await;
    let outcomes = finalise(&stage, finishes(vec![succeeded(), succeeded()]).await).await;
    assert_eq!(outcomes, [FinishOutcome::Done; 2]);
    assert_eq!(stage.names(), ["archive_succeeded", "archive_succeeded", "find_finished"]);
}
