//! A user crate with every lint denied gets no warning from what `#[job]` writes.

#![deny(warnings, missing_docs, missing_debug_implementations, unreachable_pub)]
#![deny(
    unused_qualifications,
    unused_results,
    unused_lifetimes,
    single_use_lifetimes,
    trivial_casts
)]
#![deny(variant_size_differences, let_underscore_drop, non_ascii_idents, redundant_lifetimes)]
#![deny(rust_2018_idioms, keyword_idents, future_incompatible, nonstandard_style, let_underscore)]
#![deny(clippy::all, clippy::pedantic)]
#![forbid(unsafe_code)]

use chokaq::prelude::*;

/// Named by its path, so that the attribute needs no import.
#[chokaq::job(
    queue = "q",
    retries = 1,
    timeout = "1s",
    max_age = "1s",
    backoff = fixed("1s"),
    on_crash = "retry",
    priority = 1,
    aliases = ["a"]
)]
#[derive(Debug)]
pub(crate) struct Documented {
    /// A number.
    pub(crate) number: u8,
}

impl Job for Documented {
    type Output = ();

    async fn run(self, _: &JobContext) -> Result<(), JobError> {
        Err(self.number.to_string().into())
    }
}

/// Never enqueued here: the worker runs what others enqueue.
#[job]
#[derive(Debug)]
struct OnlyRun {
    number: u8,
}

impl Job for OnlyRun {
    type Output = u8;

    async fn run(self, _: &JobContext) -> Result<u8, JobError> {
        Ok(self.number)
    }
}

/// The function of a unit struct need not be used.
#[job]
#[derive(Debug)]
struct OnlyRunUnit;

impl Job for OnlyRunUnit {
    type Output = ();

    async fn run(self, _: &JobContext) -> Result<(), JobError> {
        Ok(())
    }
}

/// A public module, where every public item wants documentation.
pub mod public {
    use chokaq::prelude::*;

    /// A job of a library.
    #[job]
    #[derive(Debug, Clone, Copy)]
    pub struct Exported;

    impl Job for Exported {
        type Output = ();

        async fn run(self, _: &JobContext) -> Result<(), JobError> {
            Ok(())
        }
    }
}

fn main() {
    assert_eq!(Documented::JOB_TYPE.key, "documented");
}
