//! What `#[job]` writes stands on absolute paths: no prelude, and local names that mislead.

#![no_implicit_prelude]

mod core {}
mod std {}
mod serde {}

#[::chokaq::job(retries = 1, timeout = "1s", backoff = exponential(), on_crash = "retry", aliases = ["a"])]
struct Duration {
    number: u8,
}

#[::chokaq::job(queue = "q")]
struct JobType;

impl ::chokaq::Job for Duration {
    type Output = u8;

    async fn run(self, _: &::chokaq::JobContext) -> ::core::result::Result<u8, ::chokaq::JobError> {
        ::core::result::Result::Ok(self.number)
    }
}

impl ::chokaq::Job for JobType {
    type Output = ();

    async fn run(self, _: &::chokaq::JobContext) -> ::core::result::Result<(), ::chokaq::JobError> {
        ::core::result::Result::Ok(())
    }
}

fn main() {
    ::core::assert_eq!(<Duration as ::chokaq::Enqueue>::JOB_TYPE.key, "duration");
}
