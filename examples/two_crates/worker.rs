//! The program that runs what `two-crates-producer` enqueues. They share the stored name of the type, the queue and
//! the fields; neither depends on the other.
//!
//! A service would end with `chokaq::run().await` and work until a signal; this one stops when nothing is left.

use chokaq::{Pool, Worker, prelude::*};

/// The worker's view: its name in Rust is its own, `type_key` is what both sides agree on.
#[job(type_key = "send_receipt", queue = "mail")]
struct SendReceipt {
    order_id: u64,
    to: String,
}

impl Job for SendReceipt {
    type Output = String;
    async fn run(self, _: &JobContext) -> Result<String, JobError> {
        println!("sending the receipt of order {} to {}", self.order_id, self.to);
        Ok(format!("receipt of order {}", self.order_id))
    }
}

#[tokio::main]
async fn main() -> chokaq::Result<()> {
    let pool = Pool::from_env().await?;
    Worker::builder(&pool).build()?.run_until_idle().await
}
