//! SQL Server: the storage contract through tiberius.
//!
//! ```text
//! contract    the backend: its own thread, and which operation a call of the contract is
//!   enqueue, fetch, leases, finalise, controls, rescue, operate, purge, reads, pages: the operations;  migrate: the schema
//!   drift: the schema compared with what it should be;  declared: schema.sql, read for that
//!   core        what they work with;  batch: their items as JSON;  statements: the named files
//! options     what a connection needs to know;  url, pairs, keys, values: read from a connection string
//! connect     one connection: addresses, login, redirection;  access_token: Microsoft Entra ID
//! session     its settings, its calls, and whether it may be used again
//! pool        the connections of a process, by role
//! statement   a .sql file and the types of its parameters;  call: with values;  answer: typed rows;  time: datetime2
//! failure     what may be concluded from a failure;  explain: its message;  numbers: the server's error numbers
//! retry       repeats what may pass;  quiet: the driver's own log events
//! ```

mod access_token;
mod answer;
mod batch;
mod call;
mod circuits;
mod connect;
mod contract;
mod controls;
mod core;
mod declared;
mod drift;
mod enqueue;
mod explain;
mod failure;
mod fetch;
mod finalise;
mod keys;
mod leases;
mod migrate;
mod numbers;
mod operate;
mod options;
mod pages;
mod pairs;
mod pool;
mod purge;
mod quiet;
mod reads;
mod rescue;
mod retry;
mod session;
mod statement;
mod statements;
mod time;
mod url;
#[cfg(test)]
mod url_tests;
mod values;

pub use access_token::AccessTokens;
pub use answer::{Answer, FromColumn, Mismatch, Row};
pub use call::{Call, Value};
pub use contract::MssqlStorage;
pub use failure::{Failure, Outcome};
pub use numbers::{Class, History, class_of};
pub use options::{MssqlOptions, SchemaName};
pub use pool::{Connections, PooledSession};
pub use retry::{Attempt, Retry, Tries};
pub use session::Role;
pub use statement::Statement;
