//! Everything else that an attribute can stand on.

use chokaq::{EnqueueOne, Pool, prelude::*};

#[job(enqueue_only)]
enum Enum {
    One,
}

fn enqueue(pool: &Pool) -> EnqueueOne {
    Enum::One.enqueue(pool)
}

#[job]
union Union {
    number: u8,
}

#[job]
pub async fn function(number: u8) -> u8 {
    number
}

#[job]
type Alias = Enum;

#[job]
trait Trait {}

#[job]
mod module {}

#[job]
const NUMBER: u8 = 1;

#[job]
use std::fmt as renamed;

struct Struct;

#[job]
impl Struct {}

fn main() {
    let _ = (function(1), renamed::Error, NUMBER, Struct);
}
