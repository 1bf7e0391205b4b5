//! `chokaq::Pool` on SQL Server: what a program is told that cannot connect, or finds no schema.

use chokaq::{Pool, prelude::*};

use crate::{
    answers::{Column, Step, one},
    server::{PASSWORD, Script, Server, USER},
    storage::{
        columns::rows,
        stage::{NULL, int},
    },
    within,
};

#[job(queue = "pool")]
struct Ping;

impl Job for Ping {
    type Output = ();
    async fn run(self, _ctx: &JobContext) -> Result<(), JobError> {
        Ok(())
    }
}

/// What a program is told that connects to this URL: with these parts in it, and no password.
async fn refused(url: &str, parts: &[&str]) -> chokaq::Error {
    let error = within(Pool::connect(url)).await.expect_err("no connection");
    let said = format!("{error} {error:?}");
    for part in parts {
        assert!(said.contains(part), "{part} in {said}");
    }
    for secret in [PASSWORD, "s3cret", "hunter2"] {
        assert!(!said.contains(secret), "{said}");
    }
    error
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_its_port_and_what_to_check() {
    let server = Server::start(Script::always(vec![])).await;
    let url = server.url("");
    let address = server.stop().await;
    let place = address.to_string();
    let parts = [&*place, "\"shop\"", "cannot be reached", "firewall"];
    assert!(refused(&url, &parts).await.is_transient());
    let (host, port) = (address.ip(), address.port());
    let ado = format!(
        "Server=tcp:{host},{port};Database=shop;User Id={USER};Password={PASSWORD};Encrypt=plaintext"
    );
    refused(&ado, &parts).await;
    let jdbc = format!(
        "jdbc:sqlserver://{host}:{port};databaseName=shop;user={USER};password={{{PASSWORD}}};encrypt=plaintext"
    );
    refused(&jdbc, &parts).await;
}

#[tokio::test]
async fn a_wrong_password_is_final_and_is_not_shown() {
    let server = Server::start(Script::always(vec![])).await;
    let place = server.address.to_string();
    let parts = [&*place, "check the user", "Login failed for user 'jobs'", "error 18456"];
    let error = refused(&server.url_as(USER, "hunter2", ""), &parts).await;
    assert!(!error.is_transient());
    assert_eq!(server.logins().len(), 1, "it is not tried again: that would lock the login out");
}

#[tokio::test]
async fn a_bad_url_is_refused_before_anything_is_sent() {
    let server = Server::start(Script::always(vec![])).await;
    let error = refused(&server.url("Encript=true"), &["Encript"]).await;
    assert!(error.is_config(), "{error:?}");
    assert!(server.logins().is_empty());
}

#[tokio::test]
async fn a_pool_without_a_schema_connects_and_its_first_call_says_what_to_do() {
    let server = Server::start(Script::always(vec![]).schema(None, 0)).await;
    let pool = within(Pool::connect(server.url(""))).await.expect("somebody has to migrate");
    let error = within(Ping::enqueue(&pool).into_future()).await.expect_err("no schema");
    assert!(error.is_schema() && error.to_string().contains("pool.migrate()"), "{error}");
    let shown = format!("{pool:?}");
    assert!(shown.contains(&server.address.to_string()) && !shown.contains(PASSWORD), "{shown}");
}

#[tokio::test]
async fn a_pool_that_migrates_does_so_before_its_first_call() {
    let script = Script::new(|request| match request.name() {
        "enqueue" => vec![rows("enqueue", vec![[int(0), int(1), NULL]])],
        _ if request.sql.contains("sp_getapplock") => vec![one("", Column::Int, int(0))],
        _ if request.sql.contains("SELECT Version") => {
            let columns = vec![
                ("Version", Column::Int),
                ("MinBinary", Column::Int),
                ("AppliedBy", Column::NVarChar(255)),
            ];
            vec![Step::Rows(columns, vec![vec![NULL, NULL, NULL]])]
        }
        _ => Vec::new(),
    });
    let server = Server::start(script).await;
    let pool = Pool::builder(server.url("")).auto_migrate(true);
    let pool = within(pool.connect()).await.expect("it is migrated");
    let creates = |sql: &str| sql.contains("CREATE TABLE [chokaq].JobsHot");
    assert!(server.batches().iter().any(|batch| creates(&batch.sql)));
    within(Ping::enqueue(&pool).into_future()).await.expect("it is stored");
}

#[tokio::test]
async fn two_pools_of_one_url_share_their_connections() {
    let server = Server::start(Script::always(vec![])).await;
    let first = within(Pool::connect(server.url(""))).await.expect("a connection");
    let second = within(Pool::connect(server.url(""))).await.expect("a connection");
    assert_eq!(server.logins().len(), 1);
    drop((first, second));
    within(Pool::connect(server.url(""))).await.expect("a connection");
    assert_eq!(server.logins().len(), 2, "nobody held them");
}
