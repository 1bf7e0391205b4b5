//! A program that enqueues jobs which another program runs: it links no handler, and knows none.
//!
//! ```sh
//! cargo run --bin two-crates-producer
//! cargo run --bin two-crates-worker
//! ```
//!
//! Both open the database of `CHOKAQ_DATABASE_URL`, or else `chokaq.db` in the working directory.

use chokaq::prelude::*;

/// The producer's view: the fields, the stored name, and the policy that is written into each row.
#[job(type_key = "send_receipt", queue = "mail", retries = 5, enqueue_only)]
struct ReceiptRequest {
    order_id: u64,
    to: &'static str,
}

#[tokio::main]
async fn main() -> chokaq::Result<()> {
    let pool = chokaq::Pool::from_env().await?;
    for (order_id, to) in [(7, "ada@example.com"), (8, "grace@example.com")] {
        let receipt = ReceiptRequest { order_id, to };
        let enqueued = receipt.enqueue(&pool).created_by("shop").await?;
        println!("{}", enqueued.id);
    }
    Ok(())
}
