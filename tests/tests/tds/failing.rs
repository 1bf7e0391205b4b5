//! Errors of the server: how each is classified, and what it says.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use chokaq::{
    Error,
    storage::mssql::{Call, Class, Failure, Outcome, Role, Statement},
};

use crate::{
    answers::{Cell, Column, ServerError, error, one, severe},
    connected, open, probe,
    server::{LoginReply, Script, Server},
    within,
};

/// The tables of the design, and what was added to them.
const TRANSIENT: &[u32] = &[
    596, 701, 921, 922, 976, 978, 983, 1204, 1205, 1222, 3906, 3960, 4060, 4221, 6005, 8645, 9002,
    10928, 10929, 10936, 17142, 17809, 18401, 40143, 40197, 40501, 40540, 40549, 40550, 40551,
    40552, 40553, 40613, 49918, 49919, 49920,
];

const PERMANENT: &[u32] =
    &[102, 207, 208, 229, 241, 245, 547, 1934, 2628, 8134, 8152, 8169, 50000, 60000];

const CONFLICT: &[u32] = &[2601, 2627];

static FAILS: Statement = Statement::new("fails", "SELECT 'fail';");

/// What a call fails with that the server refuses with this number.
async fn failure_of(number: u32) -> Failure {
    let server = Server::start(Script::always(vec![error(number)])).await;
    let connections = connected(&server, "").await;
    within(connections.run(Role::Worker, &probe())).await.expect_err("the script fails it")
}

#[tokio::test]
async fn every_error_number_of_the_tables_has_its_class() {
    for (numbers, class) in
        [(TRANSIENT, Class::Transient), (PERMANENT, Class::Permanent), (CONFLICT, Class::Conflict)]
    {
        for number in numbers {
            let failure = failure_of(*number).await;
            assert_eq!(failure.class(), class, "{number}: {failure}");
            assert_eq!(failure.number(), Some(*number));
            assert_eq!(Error::from(failure).is_transient(), class == Class::Transient, "{number}");
        }
    }
}

#[tokio::test]
async fn a_message_names_server_port_database_statement_and_remedy() {
    let server = Server::start(Script::always(vec![error(1222)])).await;
    let connections = connected(&server, "").await;
    let failure = connections.run(Role::Worker, &probe()).await.expect_err("a lock timeout");
    let text = failure.to_string();
    for part in [
        &*server.address.to_string(),
        "\"shop\"",
        "probe",
        "long transactions",
        "message 1222",
        "error 1222",
        "severity 16",
        "state 1",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[tokio::test]
async fn an_error_of_the_server_leaves_nothing_done_unless_the_service_was_on_the_move() {
    assert_eq!(failure_of(1205).await.outcome(), Outcome::NothingDone);
    assert_eq!(failure_of(2627).await.outcome(), Outcome::NothingDone);
    assert_eq!(failure_of(40197).await.outcome(), Outcome::Unknown);
}

#[tokio::test]
async fn the_first_of_several_errors_is_reported() {
    let server = Server::start(Script::always(vec![error(1205), error(3902), error(266)])).await;
    let connections = connected(&server, "").await;
    let failure = connections.run(Role::Worker, &probe()).await.expect_err("a deadlock");
    assert_eq!(failure.number(), Some(1205));
}

#[tokio::test]
async fn rows_before_an_error_are_not_taken_for_an_answer() {
    let rows = one("a", Column::Int, Cell::Int(1));
    let server = Server::start(Script::always(vec![rows, error(1205)])).await;
    let connections = connected(&server, "").await;
    let failure = connections.run(Role::Worker, &probe()).await.expect_err("a deadlock");
    assert_eq!(failure.number(), Some(1205));
}

#[tokio::test]
async fn a_refused_statement_is_rolled_back_and_its_connection_serves_the_next() {
    let server = Server::start(Script::new(|request| match request.connection {
        0 if request.sql.contains("fail") => vec![error(2627)],
        _ => vec![],
    }))
    .await;
    let connections = connected(&server, "pool_size=1").await;
    connections.run(Role::Worker, &Call::new(&FAILS)).await.expect_err("2627");
    connections.run(Role::Worker, &probe()).await.expect("the script lets it pass");
    assert_eq!(server.logins().len(), 1, "one connection was enough");
    assert!(server.batches().iter().any(|batch| batch.sql.contains("ROLLBACK")));
}

#[tokio::test]
async fn a_session_that_the_error_ended_is_not_used_again() {
    for step in [severe(50_000, 20), error(3906), error(40613), error(596)] {
        let server = Server::start(Script::new(move |request| match request.connection {
            0 => vec![step.clone()],
            _ => vec![],
        }))
        .await;
        let connections = connected(&server, "pool_size=1").await;
        connections.run(Role::Worker, &probe()).await.expect_err("the script fails it");
        within(server.has_closed(0)).await;
        connections.run(Role::Worker, &probe()).await.expect("a new connection");
        assert_eq!(server.logins().len(), 2);
    }
}

#[tokio::test]
async fn a_missing_database_is_final_on_the_first_connect_and_transient_afterwards() {
    let is_gone = Arc::new(AtomicBool::new(true));
    let gone = Arc::clone(&is_gone);
    let cannot_open = |number, message: &str| ServerError {
        number,
        severity: 11,
        state: 1,
        message: message.to_owned(),
    };
    let errors = vec![
        cannot_open(
            4060,
            "Cannot open database \"shop\" requested by the login. The login failed.",
        ),
        cannot_open(18456, "Login failed for user 'jobs'."),
    ];
    let script = Script::always(vec![]).on_login(move |_| {
        if gone.load(Ordering::SeqCst) {
            LoginReply::Refuse(errors.clone())
        } else {
            LoginReply::Accept
        }
    });
    let server = Server::start(script).await;

    let failure = open(&server.url("")).await.expect_err("no such database");
    assert_eq!((failure.class(), failure.number()), (Class::Permanent, Some(4060)));

    is_gone.store(false, Ordering::SeqCst);
    let connections = connected(&server, "").await;
    is_gone.store(true, Ordering::SeqCst);
    let failure = connections.run(Role::Page, &probe()).await.expect_err("it is gone again");
    assert_eq!((failure.class(), failure.number()), (Class::Transient, Some(4060)));
}
