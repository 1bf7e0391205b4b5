//! Which connections are used again, and how long a caller waits.

use std::time::Duration;

use chokaq::storage::mssql::{Call, Class, Outcome, Role, Statement};

use crate::{
    answers::{Cell, Column, Step, one},
    connected, probe,
    server::{Script, Server},
    within,
};

static HANGS: Statement = Statement::new("hangs", "WAITFOR DELAY '1:00';");

/// Answers the probe, and nothing else ever.
fn hanging() -> Script {
    Script::new(|request| match request.name() {
        "hangs" => vec![Step::Stall],
        _ => vec![one("n", Column::Int, Cell::Int(1))],
    })
}

#[tokio::test]
async fn calls_one_after_the_other_share_a_connection() {
    let server = Server::start(hanging()).await;
    let connections = connected(&server, "").await;
    for _ in 0..5 {
        connections.run(Role::Worker, &probe()).await.expect("an answer");
    }
    assert_eq!(server.logins().len(), 1);
}

#[tokio::test]
async fn a_call_that_is_dropped_closes_its_connection_and_the_next_gets_another() {
    let server = Server::start(hanging()).await;
    let connections = connected(&server, "pool_size=1").await;
    let call = tokio::spawn({
        let connections = connections.clone();
        async move { connections.run(Role::Worker, &Call::new(&HANGS)).await }
    });
    within(server.has_statements(1)).await;
    call.abort();
    within(server.has_closed(0)).await;
    within(connections.run(Role::Worker, &probe())).await.expect("an answer");
    let connections_used: Vec<_> =
        server.statements().iter().map(|request| request.connection).collect();
    assert_eq!(connections_used, [0, 1]);
}

#[tokio::test]
async fn a_call_dropped_between_the_rows_of_its_answer_closes_its_connection() {
    let server = Server::start(Script::new(|request| match request.name() {
        "hangs" => vec![one("n", Column::Int, Cell::Int(1)), Step::Stall],
        _ => vec![one("n", Column::Int, Cell::Int(2))],
    }))
    .await;
    let connections = connected(&server, "pool_size=1").await;
    let hangs = Call::new(&HANGS);
    let call = connections.run(Role::Worker, &hangs);
    tokio::time::timeout(Duration::from_millis(200), call)
        .await
        .expect_err("the answer does not end");
    within(server.has_closed(0)).await;
    let rows =
        connections.run(Role::Worker, &probe()).await.expect("an answer").rows().expect("one set");
    assert_eq!(rows[0].get::<i32>(0).expect("an int"), 2, "not the rest of the other answer");
}

#[tokio::test]
async fn a_stall_past_the_command_limit_is_transient_and_its_connection_is_not_used_again() {
    let server = Server::start(hanging()).await;
    let connections = connected(&server, "pool_size=1&command_timeout=300ms").await;
    let failure =
        within(connections.run(Role::Worker, &Call::new(&HANGS))).await.expect_err("it stalls");
    assert_eq!((failure.class(), failure.outcome()), (Class::Transient, Outcome::Unknown));
    let text = failure.to_string();
    for part in ["hangs", "300ms", "command_timeout", &server.address.to_string()] {
        assert!(text.contains(part), "{part} in {text}");
    }
    within(server.has_closed(0)).await;
    connections.run(Role::Worker, &probe()).await.expect("an answer");
    assert_eq!(server.logins().len(), 2);
}

#[tokio::test]
async fn the_command_limit_holds_the_whole_answer_not_each_part_of_it() {
    let slowly = (0..50)
        .flat_map(|n| {
            [one("n", Column::Int, Cell::Int(n)), Step::Pause(Duration::from_millis(100))]
        })
        .collect();
    let server = Server::start(Script::always(slowly)).await;
    let connections = connected(&server, "command_timeout=400ms").await;
    within(connections.run(Role::Worker, &probe())).await.expect_err("too slow");
}

#[tokio::test]
async fn a_call_may_have_a_limit_of_its_own() {
    let server = Server::start(Script::always(vec![Step::Pause(Duration::from_millis(500))])).await;
    let connections = connected(&server, "command_timeout=200ms").await;
    let call = probe().limit(Duration::from_secs(10));
    within(connections.run(Role::Maintenance, &call)).await.expect("within its own limit");
}

#[tokio::test]
async fn a_pool_with_all_connections_in_use_fails_after_its_wait() {
    let server = Server::start(hanging()).await;
    let connections = connected(&server, "pool_size=2&pool_wait=200ms").await;
    let mut busy = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let connections = connections.clone();
        busy.spawn(async move { connections.run(Role::Worker, &Call::new(&HANGS)).await });
    }
    within(server.has_statements(2)).await;
    let failure = within(connections.run(Role::Worker, &probe())).await.expect_err("none is free");
    assert_eq!((failure.class(), failure.outcome()), (Class::Transient, Outcome::NothingDone));
    let text = failure.to_string();
    for part in ["all 2 connections", "200ms", "pool_size"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    connections.run(Role::Page, &probe()).await.expect("people have connections of their own");
    busy.shutdown().await;
    within(connections.run(Role::Worker, &probe()))
        .await
        .expect("the dropped calls gave their places back");
}

#[tokio::test]
async fn a_caller_that_waits_gets_the_connection_that_comes_free() {
    let server = Server::start(Script::always(vec![Step::Pause(Duration::from_millis(100))])).await;
    let connections = connected(&server, "pool_size=1&pool_wait=10s").await;
    let calls = (0..4).map(|_| {
        let connections = connections.clone();
        tokio::spawn(async move { connections.run(Role::Worker, &probe()).await })
    });
    for call in calls.collect::<Vec<_>>() {
        within(call).await.expect("no panic").expect("an answer");
    }
    assert_eq!(server.logins().len(), 1);
}

#[tokio::test]
async fn a_session_keeps_its_connection_through_several_batches() {
    let server = Server::start(Script::always(vec![])).await;
    let connections = connected(&server, "").await;
    let mut session = connections.session(Role::Maintenance).await.expect("a session");
    let limit = Duration::from_secs(5);
    for sql in ["CREATE TABLE a (b int);", "CREATE TABLE c (d int);"] {
        session.batch("migration 0001", sql, limit).await.expect("the script lets it pass");
    }
    drop(session);
    let batches = server.batches();
    let own: Vec<_> = batches.iter().filter(|batch| batch.sql.starts_with("CREATE")).collect();
    assert_eq!(own.len(), 2);
    assert!(own.iter().all(|batch| batch.connection == 1 && batch.program == "chokaq maintenance"));
}
