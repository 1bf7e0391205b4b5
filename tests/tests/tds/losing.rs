//! Connections that break, and what a repeated call may conclude.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chokaq::storage::mssql::{Attempt, Class, Connections, Failure, Outcome, Retry, Role};

use crate::{
    answers::{Cell, Column, Step, error, one},
    connected, probe,
    server::{Script, Server},
    within,
};

/// Fails the first statements with these steps, then answers.
fn first(failures: Vec<Vec<Step>>) -> Script {
    let count = AtomicUsize::new(0);
    Script::new(move |_| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        failures.get(number).cloned().unwrap_or_else(|| vec![one("n", Column::Int, Cell::Int(1))])
    })
}

fn quickly() -> Retry {
    Retry {
        limit: Duration::from_secs(10),
        first_pause: Duration::from_millis(5),
        longest_pause: Duration::from_millis(20),
    }
}

async fn once(connections: &Connections) -> Result<i32, Failure> {
    connections.run(Role::Worker, &probe()).await?.rows()?[0].get(0)
}

/// Repeats the probe; also what each attempt was told.
async fn repeated(connections: &Connections, retry: Retry) -> (Result<i32, Failure>, Vec<Attempt>) {
    let (mut attempts, mut tries) = (Vec::new(), retry.tries());
    let result = within(async {
        loop {
            attempts.push(tries.attempt());
            match once(connections).await {
                Ok(number) => return Ok(number),
                Err(failure) => tries.after(failure).await?,
            }
        }
    })
    .await;
    (result, attempts)
}

#[tokio::test]
async fn a_connection_lost_before_during_or_after_the_answer_is_transient_with_unknown_outcome() {
    let row = || one("n", Column::Int, Cell::Int(1));
    for steps in [
        // Before the server did anything, or after it committed: nobody can tell.
        vec![Step::Close],
        // In the middle of the rows.
        vec![row(), Step::Close],
        // All rows are there, the end is not: the commit may have failed.
        vec![row(), Step::Count(1), Step::Close],
    ] {
        let server = Server::start(first(vec![steps.clone()])).await;
        let connections = connected(&server, "").await;
        let failure = within(connections.run(Role::Worker, &probe())).await.expect_err("it broke");
        assert_eq!(
            (failure.class(), failure.outcome()),
            (Class::Transient, Outcome::Unknown),
            "{steps:?}: {failure}"
        );
        let text = failure.to_string();
        assert!(
            text.contains("lost during")
                && text.contains("probe")
                && text.contains(&server.address.to_string()),
            "{text}"
        );
        connections.run(Role::Worker, &probe()).await.expect("a new connection");
        assert_eq!(server.logins().len(), 2);
    }
}

#[tokio::test]
async fn a_connection_that_broke_at_rest_costs_one_call_not_one_for_each_that_rested() {
    let server = Server::start(Script::always(vec![Step::Pause(Duration::from_millis(50))])).await;
    let connections = connected(&server, "pool_size=4").await;
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let connections = connections.clone();
            tokio::spawn(async move { connections.run(Role::Worker, &probe()).await })
        })
        .collect();
    for call in calls {
        call.await.expect("no panic").expect("an answer");
    }
    assert_eq!(server.logins().len(), 4);
    server.stop().await;
    let failure =
        within(connections.run(Role::Worker, &probe())).await.expect_err("the server is gone");
    assert_eq!(
        failure.outcome(),
        Outcome::Unknown,
        "it was sent on a broken connection: {failure}"
    );
    let failure =
        within(connections.run(Role::Worker, &probe())).await.expect_err("the server is gone");
    assert_eq!(failure.outcome(), Outcome::NothingDone, "the next was not sent at all: {failure}");
    assert!(failure.to_string().contains("cannot be reached"), "{failure}");
}

#[tokio::test]
async fn what_may_pass_is_repeated_until_it_does() {
    let server =
        Server::start(first(vec![vec![error(1205)], vec![Step::Close], vec![error(40501)]])).await;
    let connections = connected(&server, "").await;
    let (result, attempts) = repeated(&connections, quickly()).await;
    assert_eq!(result, Ok(1));
    let numbers: Vec<_> = attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    let unknown: Vec<_> = attempts.iter().map(|attempt| attempt.earlier_is_unknown).collect();
    assert_eq!(unknown, [false, false, true, true], "only the lost connection left something open");
}

#[tokio::test]
async fn what_will_not_pass_is_not_repeated() {
    let server = Server::start(first(vec![vec![error(208)]])).await;
    let (result, attempts) = repeated(&connected(&server, "").await, quickly()).await;
    let failure = result.expect_err("a missing table");
    assert_eq!(
        (failure.class(), failure.outcome(), attempts.len()),
        (Class::Permanent, Outcome::NothingDone, 1)
    );
}

#[tokio::test]
async fn a_key_that_was_taken_is_tried_again() {
    let server = Server::start(first(vec![vec![error(2627)], vec![error(2601)]])).await;
    let (result, attempts) = repeated(&connected(&server, "").await, quickly()).await;
    assert_eq!((result, attempts.len()), (Ok(1), 3));
}

#[tokio::test]
async fn an_outcome_once_unknown_stays_so_in_the_report() {
    let server = Server::start(first(vec![vec![Step::Close], vec![error(208)]])).await;
    let (result, _) = repeated(&connected(&server, "").await, quickly()).await;
    let failure = result.expect_err("the table went missing");
    assert_eq!((failure.class(), failure.outcome()), (Class::Permanent, Outcome::Unknown));
}

#[tokio::test]
async fn repeating_ends_when_its_time_is_up() {
    let server = Server::start(Script::always(vec![error(1205)])).await;
    let connections = connected(&server, "").await;
    let retry = Retry { limit: Duration::from_millis(300), ..quickly() };
    let (result, attempts) = repeated(&connections, retry).await;
    assert!(result.expect_err("deadlock after deadlock").is_transient());
    assert!(attempts.len() > 2, "{attempts:?}");
}

#[tokio::test]
async fn a_server_that_comes_back_is_found_again() {
    let server = Server::start(Script::always(vec![one("n", Column::Int, Cell::Int(1))])).await;
    let connections = Arc::new(connected(&server, "").await);
    let address = server.stop().await;
    let (failed, mut failures) = tokio::sync::mpsc::unbounded_channel();
    let repeating: tokio::task::JoinHandle<Result<i32, Failure>> = tokio::spawn({
        let connections = Arc::clone(&connections);
        async move {
            let mut tries = quickly().tries();
            loop {
                match once(&connections).await {
                    Ok(number) => return Ok(number),
                    Err(failure) => {
                        failed.send(()).expect("the test listens");
                        tries.after(failure).await?;
                    }
                }
            }
        }
    });
    failures.recv().await.expect("it fails while nobody is there");
    let again =
        Server::start_at(address, Script::always(vec![one("n", Column::Int, Cell::Int(2))])).await;
    assert_eq!(within(repeating).await.expect("no panic"), Ok(2));
    assert_eq!(again.logins().len(), 1);
}
