//! The same argument twice.

use chokaq::prelude::*;

#[job(enqueue_only, queue = "a", retries = 1, queue = "b", enqueue_only)]
struct Twice;

#[job(enqueue_only, queue = "a", queue = "b", queue = "c")]
struct Thrice;

fn main() {}
