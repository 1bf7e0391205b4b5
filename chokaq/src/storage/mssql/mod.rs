//! What the SQL Server backend stands on: connections and calls. The storage contract itself is not implemented yet.
//!
//! ```text
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
mod call;
mod connect;
mod explain;
mod failure;
mod keys;
mod numbers;
mod options;
mod pairs;
mod pool;
mod quiet;
mod retry;
mod session;
mod statement;
mod time;
mod url;
#[cfg(test)]
mod url_tests;
mod values;

pub use access_token::AccessTokens;
pub use answer::{Answer, FromColumn, Mismatch, Row};
pub use call::{Call, Value};
pub use failure::{Failure, Outcome};
pub use numbers::{Class, History, class_of};
pub use options::{MssqlOptions, SchemaName};
pub use pool::{Connections, PooledSession};
pub use retry::{Attempt, Retry};
pub use session::Role;
pub use statement::Statement;
