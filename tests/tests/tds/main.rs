//! SQL Server connections against a server that speaks TDS from a script: what goes over the wire, what becomes of every
//! kind of failure, and which connections are used again.

mod answers;
mod budget;
mod calling;
mod connecting;
mod decoding;
mod failing;
mod logging;
mod losing;
mod outages;
mod pooling;
mod requests;
mod server;
mod storage;
mod wire;

use std::time::Duration;

use chokaq::storage::mssql::{Call, Connections, Failure, MssqlOptions, Statement};

use crate::server::Server;

static PROBE: Statement = Statement::new("probe", "-- Intent: a test.\nSELECT 1;\n");

fn probe() -> Call {
    Call::new(&PROBE)
}

fn options(url: &str) -> MssqlOptions {
    MssqlOptions::parse(url).expect("a good URL")
}

async fn open(url: &str) -> Result<Connections, Failure> {
    open_with(options(url)).await
}

async fn open_with(options: MssqlOptions) -> Result<Connections, Failure> {
    let connections = Connections::new(options);
    within(connections.try_once()).await.map(|()| connections)
}

async fn connected(server: &Server, extra: &str) -> Connections {
    open(&server.url(extra)).await.expect("the scripted server takes the login")
}

/// No test waits longer than this for what ought to happen at once.
async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("within 20 s")
}
