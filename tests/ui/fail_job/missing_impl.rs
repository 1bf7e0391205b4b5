//! A struct that says nothing about what to run.

use chokaq::prelude::*;

#[job(queue = "mail")]
pub struct SendReceipt {
    pub order: u64,
}

#[job]
struct Unit;

fn main() {}
