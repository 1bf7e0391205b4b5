//! Opening a connection: logins, limits, redirection, what a session begins with.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

use chokaq::storage::mssql::{AccessTokens, Class, Failure, Outcome, Role};

use crate::{
    answers::ServerError,
    connected, open, open_with, options, probe,
    server::{LoginReply, PASSWORD, Script, Server, USER},
    within,
};

fn assert_names(failure: &Failure, parts: &[&str]) {
    let text = failure.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!text.contains(PASSWORD) && !format!("{failure:?}").contains(PASSWORD), "{text}");
}

#[tokio::test]
async fn a_login_names_user_database_and_who_of_the_program_it_is() {
    let server = Server::start(Script::always(vec![])).await;
    let connections = connected(&server, "application_name=billing").await;
    for role in [Role::Worker, Role::Page, Role::Maintenance] {
        connections.run(role, &probe()).await.expect("the script lets it pass");
    }
    let logins = server.logins();
    let programs: Vec<_> = logins.iter().map(|login| login.program.as_str()).collect();
    assert_eq!(programs, ["billing worker", "billing page", "billing maintenance"]);
    assert!(logins.iter().all(|login| login.user == USER && login.password == PASSWORD));
    assert!(logins.iter().all(|login| login.database == "shop" && login.token.is_none()));
}

#[tokio::test]
async fn a_wrong_password_is_final_and_is_not_shown() {
    let server = Server::start(Script::always(vec![])).await;
    let failure = open(&server.url_as(USER, "hunter2", "")).await.expect_err("a wrong password");
    assert_eq!((failure.class(), failure.number()), (Class::Permanent, Some(18456)));
    assert_names(
        &failure,
        &[
            &server.address.to_string(),
            "\"shop\"",
            "check the user",
            "Login failed for user 'jobs'",
        ],
    );
    assert!(!failure.to_string().contains("hunter2"));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let server = Server::start(Script::always(vec![])).await;
    let url = server.url("");
    let address = server.stop().await;
    let failure = open(&url).await.expect_err("nobody listens");
    assert_eq!((failure.class(), failure.outcome()), (Class::Transient, Outcome::NothingDone));
    assert_names(&failure, &[&address.to_string(), "\"shop\"", "cannot be reached", "firewall"]);

    let failure =
        open("mssql://jobs:s3cret%21@no-such-host.invalid/shop").await.expect_err("no such name");
    assert!(failure.is_transient());
    assert_names(&failure, &["no-such-host.invalid:1433", "name is not known"]);
}

#[tokio::test]
async fn a_server_that_stalls_is_given_up_within_the_connect_limit() {
    let server = Server::start(Script::always(vec![]).on_login(|_| LoginReply::Stall)).await;
    let failure = open(&server.url("connect_timeout=300ms")).await.expect_err("it stalls");
    assert_eq!((failure.class(), failure.outcome()), (Class::Transient, Outcome::NothingDone));
    assert_names(&failure, &["300ms", "logging in", "connect_timeout"]);
    within(server.has_closed(0)).await;
}

#[tokio::test]
async fn a_connection_broken_off_during_the_login_is_transient() {
    let server = Server::start(Script::always(vec![]).on_login(|_| LoginReply::Close)).await;
    let failure = open(&server.url("")).await.expect_err("it hangs up");
    assert_eq!((failure.class(), failure.outcome()), (Class::Transient, Outcome::NothingDone));
    assert_names(&failure, &["during the login"]);
}

#[tokio::test]
async fn a_server_in_an_upgrade_is_transient_on_the_first_connect_too() {
    let error =
        ServerError { number: 18401, severity: 14, state: 1, message: "script upgrade".to_owned() };
    let script = Script::always(vec![]).on_login(move |_| LoginReply::Refuse(vec![error.clone()]));
    let server = Server::start(script).await;
    assert!(open(&server.url("")).await.expect_err("it is upgraded").is_transient());
}

#[tokio::test]
async fn encryption_that_the_server_lacks_is_final_and_says_what_to_do() {
    let server = Server::start(Script::always(vec![])).await;
    let url = server.url("").replace("encrypt=plaintext", "encrypt=true");
    let failure = open(&url).await.expect_err("it does not encrypt");
    assert_eq!(failure.class(), Class::Permanent);
    assert_names(&failure, &["does not encrypt", "encrypt=plaintext"]);
    assert!(server.logins().is_empty(), "no password was sent");
}

#[tokio::test]
async fn an_old_compatibility_level_and_a_synapse_pool_are_refused() {
    let server = Server::start(Script::always(vec![]).database(120, 3)).await;
    let failure = open(&server.url("")).await.expect_err("too old");
    assert_eq!(failure.class(), Class::Permanent);
    assert_names(&failure, &["level 120", "ALTER DATABASE [shop] SET COMPATIBILITY_LEVEL = 130"]);

    let server = Server::start(Script::always(vec![]).database(150, 6)).await;
    assert_names(&open(&server.url("")).await.expect_err("a pool"), &["Synapse"]);

    for edition in [2, 3, 4, 5, 8] {
        let server = Server::start(Script::always(vec![]).database(130, edition)).await;
        open(&server.url("")).await.expect("good enough");
    }
}

#[tokio::test]
async fn the_session_is_set_up_once_for_each_connection() {
    let server = Server::start(Script::always(vec![])).await;
    let connections = connected(&server, "pool_size=1&command_timeout=20s").await;
    for _ in 0..3 {
        connections.run(Role::Worker, &probe()).await.expect("the script lets it pass");
    }
    connections.run(Role::Maintenance, &probe()).await.expect("the script lets it pass");

    let batches = server.batches();
    assert_eq!(batches.len(), 2, "one for each connection: {batches:?}");
    for part in [
        "SET XACT_ABORT ON;",
        "SET LOCK_TIMEOUT 10000;",
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;",
        "QUOTED_IDENTIFIER ON;",
    ] {
        assert!(batches.iter().all(|batch| batch.sql.contains(part)), "{part}");
    }
    assert!(!batches[0].sql.contains("DEADLOCK_PRIORITY"), "a worker's is the normal one");
    assert!(batches[1].sql.contains("SET DEADLOCK_PRIORITY LOW;"));
}

#[tokio::test]
async fn a_redirection_is_followed() {
    let node = Server::start(Script::always(vec![])).await;
    let to = node.address;
    let gateway =
        Server::start(Script::always(vec![]).on_login(move |_| LoginReply::Route(to))).await;
    let connections = connected(&gateway, "").await;
    connections.run(Role::Worker, &probe()).await.expect("the node lets it pass");
    assert_eq!((gateway.logins().len(), gateway.statements().len()), (1, 0));
    let logins = node.logins();
    assert_eq!((logins.len(), node.statements().len()), (1, 1));
    assert_eq!((&*logins[0].server, &*logins[0].password), ("127.0.0.1", PASSWORD));
    within(gateway.has_closed(0)).await;
}

#[tokio::test]
async fn a_ring_of_redirections_is_left() {
    let address = Arc::new(Mutex::new(None));
    let own = Arc::clone(&address);
    let script = Script::always(vec![]).on_login(move |_| {
        LoginReply::Route(own.lock().expect("unpoisoned").expect("set before the first login"))
    });
    let server = Server::start(script).await;
    *address.lock().expect("unpoisoned") = Some(server.address);
    let failure = open(&server.url("")).await.expect_err("a ring");
    assert!(failure.is_transient());
    assert_names(&failure, &["again and again"]);
    assert_eq!(server.logins().len(), 3);
}

#[tokio::test]
async fn every_connection_asks_for_a_fresh_access_token() {
    let server = Server::start(Script::always(vec![]).on_login(|login| match &login.token {
        Some(token) if token.starts_with("token ") => LoginReply::Accept,
        _ => LoginReply::Close,
    }))
    .await;
    let count = Arc::new(AtomicU32::new(0));
    let tokens = AccessTokens::new(move || {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Ok::<_, std::io::Error>(format!("token {number}")) }
    });
    let url = server.url("").replace("jobs:s3cret%21@", "");
    let connections =
        open_with(options(&url).with_access_tokens(tokens)).await.expect("a login by token");
    connections.run(Role::Page, &probe()).await.expect("the script lets it pass");
    let logins = server.logins();
    let tokens: Vec<_> = logins.iter().map(|login| login.token.as_deref()).collect();
    assert_eq!(tokens, [Some("token 1"), Some("token 2")]);
    assert!(logins.iter().all(|login| login.user.is_empty() && login.password.is_empty()));
    assert!(!format!("{connections:?}").contains("token 1"));
}

#[tokio::test]
async fn a_source_of_tokens_that_fails_or_stalls_is_named() {
    let server = Server::start(Script::always(vec![])).await;
    let url = server.url("connect_timeout=300ms").replace("jobs:s3cret%21@", "");
    let fails = AccessTokens::new(|| async { Err::<String, _>("the identity endpoint is down") });
    let failure = open_with(options(&url).with_access_tokens(fails)).await.expect_err("no token");
    assert!(failure.is_transient());
    assert_names(&failure, &["access tokens failed", "identity endpoint is down"]);

    let stalls = AccessTokens::new(std::future::pending::<Result<String, std::io::Error>>);
    let failure = open_with(options(&url).with_access_tokens(stalls)).await.expect_err("no token");
    assert_names(&failure, &["300ms", "access token"]);
    assert!(server.logins().is_empty());

    let failure = open(&url).await.expect_err("nobody to log in as");
    assert_eq!(failure.class(), Class::Permanent);
    assert_names(&failure, &["names no user"]);
}

#[tokio::test]
async fn a_schema_that_cannot_be_used_is_said_at_the_first_statement() {
    for (version, min_binary, expected) in [
        (None, 0, "pool.migrate()"),
        (Some(0), 1, "CHOKAQ_AUTO_MIGRATE=true"),
        (Some(7), 99, "use chokaq 9.9.9 or later"),
    ] {
        let server = Server::start(Script::always(vec![]).schema(version, min_binary)).await;
        // Connecting is allowed: somebody has to migrate.
        let connections = connected(&server, "").await;
        let failure = connections.run(Role::Worker, &probe()).await.expect_err("no schema");
        assert_eq!((failure.class(), failure.outcome()), (Class::Schema, Outcome::NothingDone));
        assert_names(&failure, &[expected, "\"chokaq\""]);
        assert!(server.statements().is_empty(), "nothing was sent");
        assert!(chokaq::Error::from(failure).is_schema());
    }
    // A newer schema that asks for no more is what a rolling deploy has.
    let server = Server::start(Script::always(vec![]).schema(Some(7), 1)).await;
    connected(&server, "").await.run(Role::Worker, &probe()).await.expect("it is served");
}

#[tokio::test]
async fn a_session_that_found_no_schema_is_not_used_again() {
    let server = Server::start(Script::always(vec![]).schema(None, 0)).await;
    let connections = connected(&server, "").await;
    let opened = server.logins().len();
    for _ in 0..2 {
        connections.run(Role::Worker, &probe()).await.expect_err("no schema");
    }
    assert_eq!(server.logins().len(), opened + 2, "each looks again: it may be there by now");
}
