//! One attribute says it all.

use chokaq::prelude::*;

#[job(enqueue_only, queue = "a")]
#[chokaq::job(retries = 1)]
#[job]
struct Thrice;

fn main() {}
