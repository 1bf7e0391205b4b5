//! Where Babelfish for `PostgreSQL` is not SQL Server: what is sent to it instead. Short and named on purpose: every entry is
//! a claim that is not proven on the production text.

use chokaq::storage::mssql::Connections;

use crate::mssql::run;

/// Whether the server is one.
pub(crate) async fn is_it(direct: &Connections) -> bool {
    let sql = "SELECT CONVERT(nvarchar(100), SERVERPROPERTY('BabelfishVersion'));";
    let rows = run(direct, sql.to_owned()).await;
    rows[0][0].is_some()
}

/// The text for it.
pub(crate) fn rewrite(_name: &str, sql: String) -> String {
    sql
}
