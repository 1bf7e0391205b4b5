//! Every mistake of an attribute and its struct in one compile, and nothing that follows from them.

use chokaq::{EnqueueOne, Pool, prelude::*};

#[job(queue = "", retires = 3, timeout = "soon", timeout = "1s", cron = "@daily", aliases = ["send_receipt"])]
#[job(priority = 1)]
#[derive(Debug)]
struct SendReceipt<T> {
    order: T,
}

impl Job for SendReceipt<u64> {
    type Output = ();

    async fn run(self, _: &JobContext) -> Result<(), JobError> {
        println!("{}", self.order);
        Ok(())
    }
}

#[job(timeout = "soon", enqueue_onyl)]
struct Unit;

fn enqueue(pool: &Pool) -> [EnqueueOne; 3] {
    [SendReceipt { order: 7_u64 }.enqueue(pool).queue("q"), Unit.enqueue(pool), Unit::enqueue(pool)]
}

fn main() {}
