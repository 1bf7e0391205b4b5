//! SQL of the program's own on SQL Server.

use std::time::Duration;

use chokaq::storage::mssql::{Connections, MssqlOptions, Role};

use crate::{Failure, babelfish};

const LIMIT: Duration = Duration::from_mins(2);

/// The options of a URL; Babelfish gets another text where it is not SQL Server.
pub(crate) async fn options(url: &str) -> Result<MssqlOptions, Failure> {
    let options = MssqlOptions::parse(url)?;
    if babelfish::is_it(&Connections::new(options.clone())).await {
        return Ok(options.with_rewrite(babelfish::rewrite));
    }
    Ok(options)
}

/// Runs a batch; each row's columns, all of which must be text.
pub(crate) async fn rows(
    direct: &Connections,
    sql: &str,
) -> Result<Vec<Vec<Option<String>>>, Failure> {
    let mut session = direct.session(Role::Maintenance).await.map_err(failure)?;
    let answer = session.batch("the observer's look", sql, LIMIT).await.map_err(failure)?;
    let rows = answer.first_set();
    let row = |row: &chokaq::storage::mssql::Row| {
        (0..row.len()).map(|column| row.get(column)).collect::<Result<_, _>>()
    };
    rows.iter().map(row).collect::<Result<_, _>>().map_err(failure)
}

/// As the list of differences asks.
pub(crate) async fn run(direct: &Connections, sql: String) -> Vec<Vec<Option<String>>> {
    rows(direct, &sql).await.expect("the server takes the program's own SQL")
}

fn failure(failure: chokaq::storage::mssql::Failure) -> Failure {
    chokaq::Error::from(failure).into()
}
