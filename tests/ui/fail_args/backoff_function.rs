//! A function that does not fit, and one that is not there.

use chokaq::prelude::*;

fn seconds(attempt: u32) -> u64 {
    u64::from(attempt)
}

#[job(enqueue_only, backoff = seconds)]
struct OtherType;

#[job(enqueue_only, backoff = waits::missing)]
struct Missing;

mod waits {}

fn main() {}
