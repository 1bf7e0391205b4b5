//! Jobs of a crate that has chokaq under the name `jobs`, and passes it on.

/// For crates that reach chokaq only through this one.
pub use jobs as chokaq;

use jobs::prelude::*;

/// A path for the crate.
#[job(crate = jobs, backoff = fixed("1s"), on_crash = "retry")]
#[derive(Debug)]
pub struct ByPath {
    /// A number.
    pub number: u8,
}

impl Job for ByPath {
    type Output = u8;

    async fn run(self, _: &JobContext) -> Result<u8, JobError> {
        Ok(self.number)
    }
}

/// A string for the crate, as serde writes it.
#[job(crate = "jobs")]
#[derive(Debug)]
pub struct ByString;

impl Job for ByString {
    type Output = ();

    async fn run(self, _: &JobContext) -> Result<(), JobError> {
        Ok(())
    }
}
