//! A derive above `#[job]` is expanded first and leaves nothing to see: both make the impl.

use chokaq::prelude::*;

#[derive(serde::Serialize, serde::Deserialize)]
#[job(enqueue_only)]
struct DerivedAbove {
    number: u8,
}

fn main() {}
