//! Errors of the server, and calls that are not answered: what is tried again, and what is said.

use std::sync::Arc;

use chokaq::{
    FailureReason,
    model::{Beat, FinishOutcome, MarkOutcome},
    storage::{OperatorStorage, ProducerStorage, WorkerStorage},
};

use crate::{
    answers::{Step, error},
    server::{PASSWORD, Script},
    storage::{
        columns::empty,
        enqueue::job,
        every_call::{CALLS, call},
        finalise::{dead, finalise, finishes, succeeded},
        stage::{NULL, Replies, Stage, buried, ended, int, job_cell, leases},
    },
    within,
};

/// What the calls that look for an answer need to end at once.
fn answered() -> Replies {
    Replies::nothing_found().rows("enqueue", vec![[int(0), int(1), NULL]])
}

#[tokio::test]
async fn a_deadlock_and_a_taken_key_are_tried_again_by_every_call() {
    let lease = &leases(1..=1).await[0];
    for (name, taken) in CALLS.into_iter().zip([2627, 2601].into_iter().cycle()) {
        let replies = answered().first(name, vec![error(taken)]).first(name, vec![error(1205)]);
        let stage = Stage::new(replies).await;
        call(&stage.storage, name, lease).await.expect(name);
        let names = stage.names();
        let tries: Vec<usize> = (0..names.len()).filter(|place| names[*place] == name).collect();
        assert!(tries.len() >= 3, "{names:?}");
        // What a claim that was refused has claimed all the same is looked for in between.
        let between = names[..tries[2]].iter().filter(|between| **between != name);
        assert!(between.clone().all(|between| *between == "find_claimed"), "{names:?}");
        let sent = tries[..3].iter().map(|place| stage.sent(*place));
        assert!(sent.clone().all(|sent| sent == stage.sent(0)), "{name}: the same call");
    }
}

#[tokio::test]
async fn what_will_not_pass_surfaces_at_once_from_every_call_and_names_it() {
    let lease = &leases(1..=1).await[0];
    for (number, remedy) in [(208, "check the schema"), (229, "lacks a permission")] {
        for name in CALLS {
            let stage = Stage::new(answered().first(name, vec![error(number)])).await;
            let error = call(&stage.storage, name, lease).await.expect_err(name);
            assert_eq!(stage.names(), [name], "it is not tried again");
            assert!(!error.is_transient() && !error.is_schema(), "{error}");
            let said = format!("{error} {error:?}");
            let number = format!("error {number}");
            let place = stage.server.address.to_string();
            for part in [name, &number, remedy, &place] {
                assert!(said.contains(part), "{part} in {said}");
            }
            assert!(!said.contains(PASSWORD), "{said}");
        }
    }
}

#[tokio::test]
async fn a_schema_that_does_not_fit_is_said_by_every_call_and_nothing_is_sent() {
    let lease = &leases(1..=1).await[0];
    for (version, min_binary, remedy) in
        [(None, 0, "pool.migrate()"), (Some(0), 1, "CHOKAQ_AUTO_MIGRATE"), (Some(9), 99, "9.9.9")]
    {
        let script = Script::always(vec![]).schema(version, min_binary);
        let stage = Stage::on("schema=ops", script).await;
        for name in CALLS {
            let error = call(&stage.storage, name, lease).await.expect_err(name);
            assert!(error.is_schema() && !error.is_transient(), "{name}: {error}");
            let said = error.to_string();
            assert!(said.contains(remedy) && said.contains("\"ops\""), "{said}");
        }
        assert!(stage.names().is_empty());
    }
}

#[tokio::test]
async fn a_deadlock_that_stays_is_transient_and_ends() {
    let stage = Stage::on("", Script::always(vec![error(1205)])).await;
    let leases = leases(1..=1).await;
    let error = within(stage.storage.mark_as_processing(leases)).await.expect_err("deadlocks");
    assert!(error.is_transient() && error.to_string().contains("deadlock"), "{error}");
    assert!(stage.names().len() > 2, "{:?}", stage.names());
}

#[tokio::test]
async fn a_deadlock_in_the_middle_of_a_batch_leaves_its_outcomes_right() {
    let replies = Replies::new()
        .rows("archive_succeeded", vec![ended(1)])
        .to("move_to_dlq", vec![error(1205)])
        .rows("move_to_dlq", vec![buried(2, "FatalError")]);
    let stage = Stage::new(replies).await;
    let batch = finishes(vec![succeeded(), dead(FailureReason::FatalError)]).await;
    assert_eq!(finalise(&stage, batch).await, [FinishOutcome::Done; 2]);
    let expected = ["archive_succeeded", "move_to_dlq", "move_to_dlq"];
    assert_eq!(stage.names(), expected, "what was committed is not sent again");
}

#[tokio::test]
async fn a_batch_that_failed_half_way_is_repeated_whole_and_recognises_its_first_half() {
    let replies = Replies::nothing_found()
        .rows("archive_succeeded", vec![ended(1)])
        .to("move_to_dlq", vec![error(229)])
        .rows("move_to_dlq", vec![buried(2, "FatalError")])
        .rows("find_finished", vec![[job_cell(1), int(0), int(1), NULL]]);
    let stage = Stage::new(replies).await;
    let batch = finishes(vec![succeeded(), dead(FailureReason::FatalError)]).await;
    let error = within(stage.storage.finalise(batch.clone())).await.expect_err("no permission");
    assert!(!error.is_transient(), "{error}");
    assert_eq!(finalise(&stage, batch).await, [FinishOutcome::Done; 2]);
}

#[tokio::test]
async fn a_stall_past_the_command_limit_is_transient_and_its_connection_is_closed() {
    let script = Script::always(vec![Step::Stall]);
    let stage = Stage::on("command_timeout=400ms", script).await;
    let leases = leases(1..=1).await;
    let error = within(stage.storage.mark_as_processing(leases)).await.expect_err("it stalls");
    let said = error.to_string();
    assert!(error.is_transient(), "{said}");
    for part in ["mark_as_processing", "400ms", "command_timeout", "the connection was closed"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let used: Vec<_> = stage.server.statements().iter().map(|r| r.connection).collect();
    for connection in &used {
        within(stage.server.has_closed(*connection)).await;
    }
    assert!(used.is_sorted_by(|one, next| one < next), "no connection twice: {used:?}");
}

#[tokio::test]
async fn a_stall_that_passes_costs_the_caller_nothing_but_time() {
    let replies = Replies::nothing_found()
        .to("mark_as_processing", vec![Step::Stall])
        .rows("find_marked", vec![[int(1), int(1), int(0)]]);
    let stage = Stage::with("command_timeout=400ms", replies).await;
    let outcomes = within(stage.storage.mark_as_processing(leases(1..=1).await)).await;
    assert!(matches!(outcomes.expect("an answer")[..], [MarkOutcome::Started { attempt: 1, .. }]));
    assert_eq!(stage.names(), ["mark_as_processing", "mark_as_processing", "find_marked"]);
}

#[tokio::test]
async fn a_pool_that_is_used_up_is_transient_and_holds_up_neither_beats_nor_people() {
    let script = Script::new(|request| match request.name() {
        "mark_as_processing" => vec![Step::Stall],
        name => empty(name),
    });
    let stage = Stage::on("pool_size=1&pool_wait=200ms", script).await;
    let marked = leases(1..=1).await;
    let storage = Arc::clone(&stage.storage);
    let stalls = tokio::spawn(async move { storage.mark_as_processing(marked).await });
    within(stage.server.has_named("mark_as_processing", 1)).await;

    let error = within(stage.storage.enqueue(vec![job(1)])).await.expect_err("none is free");
    let said = error.to_string();
    assert!(error.is_transient() && said.contains("pool_size"), "{said}");
    let beat = Beat { lease: leases(1..=1).await.remove(0), progress: None };
    within(stage.storage.keep_alive(vec![beat])).await.expect("beats have their own connections");
    within(stage.storage.get_queue_stats()).await.expect("people have their own connections");
    stalls.abort();
}
