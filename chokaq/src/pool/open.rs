//! From a URL to a storage. The URL itself stays out of messages: it may hold a password.

use std::sync::Arc;

use crate::{Error, Result, config::Settings, storage::Storage};

/// What code gives beside the URL and the settings.
#[derive(Debug, Clone, Default)]
pub(super) struct Credentials {
    #[cfg(feature = "mssql")]
    pub(super) access_tokens: Option<crate::storage::mssql::AccessTokens>,
}

/// Opens what the URL names.
pub(super) async fn open(
    url: &str,
    settings: &Settings,
    credentials: &Credentials,
) -> Result<Arc<dyn Storage>> {
    if url.starts_with("sqlite:") {
        return open_sqlite(url, settings).await;
    }
    if is_sql_server(url) {
        return open_sql_server(url, settings, credentials).await;
    }
    Err(Error::config(
        "the database URL is of no known kind: write `sqlite:jobs.db`, `sqlite::memory:`, \
         `mssql://user:password@host:1433/database`, or an ADO.NET or JDBC string",
    ))
}

/// `mssql://`, `sqlserver://`, `jdbc:`, or the pairs of ADO.NET.
fn is_sql_server(url: &str) -> bool {
    let scheme = url.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(&*scheme, "mssql" | "sqlserver" | "jdbc") || scheme.contains('=')
}

#[cfg(feature = "sqlite")]
use crate::pool::sqlite::open as open_sqlite;

#[cfg(feature = "mssql")]
use crate::pool::mssql::open as open_sql_server;

#[cfg(not(feature = "sqlite"))]
async fn open_sqlite(_: &str, _: &Settings) -> Result<Arc<dyn Storage>> {
    let error = "this program was built without SQLite: enable the `sqlite` feature of chokaq";
    std::future::ready(Err(Error::config(error))).await
}

#[cfg(not(feature = "mssql"))]
async fn open_sql_server(_: &str, _: &Settings, _: &Credentials) -> Result<Arc<dyn Storage>> {
    let error = "this program was built without SQL Server: enable the `mssql` feature of chokaq";
    std::future::ready(Err(Error::config(error))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_server_is_known_by_every_form_of_its_urls() {
        for url in [
            "mssql://u:p@h/d",
            "MSSQL://u:p@h/d",
            "sqlserver://h",
            "jdbc:sqlserver://h:1433;user=u",
            "Server=tcp:h,1433;Database=d",
            "data source=h;user id=u",
        ] {
            assert!(is_sql_server(url), "{url}");
        }
        for url in ["sqlite:jobs.db", "postgres://h/d?a=b", "jobs.db", ""] {
            assert!(!is_sql_server(url), "{url}");
        }
    }
}
