//! Numbers that are out of range, or no whole numbers.

use chokaq::prelude::*;

#[job(enqueue_only, retries = -1, priority = 2_147_483_648)]
struct OutOfRange;

#[job(enqueue_only, retries = 1001, priority = -2_147_483_649)]
struct JustOutOfRange;

#[job(enqueue_only, retries = "3", priority = 1.5)]
struct NoWholeNumbers;

#[job(enqueue_only, retries = RETRIES, priority = 5 + 5)]
struct NoLiterals;

fn main() {}
