//! Enqueueing a struct without the attribute.

use chokaq::{Pool, prelude::*};

struct Forgotten;

fn enqueue<T: Enqueue>(pool: &Pool, job: T) {
    let _ = job.enqueue(pool);
}

fn call(pool: &Pool) {
    enqueue(pool, Forgotten);
}

fn main() {}
