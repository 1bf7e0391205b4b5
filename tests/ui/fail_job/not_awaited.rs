//! A job that is never enqueued, because nothing awaits the builder.

#![deny(unused_must_use)]

use chokaq::{Pool, prelude::*};

#[job(enqueue_only)]
struct SendReceipt;

fn enqueue(pool: &Pool) {
    SendReceipt.enqueue(pool);
    SendReceipt::enqueue(pool).queue("mail");
}

fn main() {}
