//! The storage contract as claims: each is written once and proven on every backend.
//!
//! A claim is an `async fn(&Db)` in one of the modules below, listed in that module's `claims!`. It reaches the backend
//! through the contract (`chokaq::storage::Storage`) and through [`harness::Backend`], which ages rows, looks past the
//! contract at the tables, and loses replies. After every claim the whole database is checked (`Db::check`).

/// Makes a test of every listed claim on every backend; a claim that is not listed is dead code and fails the lints.
macro_rules! claims {
    ($($claim:ident),+ $(,)?) => {
        // One line per backend.
        claims!(@on sqlite, crate::sqlite::Sqlite, $($claim),+);
        claims!(@on mssql, crate::mssql::Mssql, $($claim),+);
    };
    (@on $name:ident, $backend:ty, $($claim:ident),+) => {
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $claim() {
                    crate::harness::prove::<$backend>(stringify!($claim), super::$claim).await;
                }
            )+
        }
    };
}

mod babelfish;
mod calls;
mod harness;
mod mssql;
mod prelude;
mod sqlite;

mod cancel;
mod circuits;
mod crowd;
mod drift;
mod end_to_end;
mod enqueue;
mod errors;
mod fairness;
mod fence;
mod fetch;
mod finalise;
mod gone_processes;
mod idempotency;
mod invariants;
mod keep_alive;
mod lost_replies;
mod many_workers;
mod mark;
mod max_workers;
mod memory;
mod migrate;
mod model;
mod next_due;
mod pages;
mod purge;
mod queues;
mod reads;
mod release;
mod rescue;
mod resurrect;
mod wake_up;
