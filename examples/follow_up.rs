//! A job whose handler enqueues the jobs that follow from it, and what a second run of that handler does: nothing.
//!
//! ```sh
//! cargo run --example follow_up
//! ```

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chokaq::{JobId, Pool, Worker, prelude::*};

/// Splits an order into parcels, one job each.
#[job(queue = "orders", backoff = fixed("50ms"))]
struct PlaceOrder {
    items: Vec<String>,
}

/// `order` is the id of the job it follows from: together with `line` it names the parcel, whoever asks for it.
#[job(queue = "parcels")]
struct SendParcel {
    order: JobId,
    line: usize,
    item: String,
}

/// Stands for a table whose primary key is (order, line).
#[derive(Clone, Default)]
struct Parcels(Arc<Mutex<BTreeMap<(JobId, usize), String>>>);

impl Job for PlaceOrder {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        for (line, item) in self.items.into_iter().enumerate() {
            // The id is the same in every attempt, so this key is too: a follow-up that waits or runs is not doubled.
            let key = format!("{}-{line}", ctx.id());
            let enqueued = SendParcel { order: ctx.id(), line, item }
                .enqueue(ctx.pool())
                .delay(Duration::from_secs(1))
                .idempotency_key(key)
                .await?;
            let is_new = if enqueued.duplicate { "was there already" } else { "is new" };
            println!("attempt {}: parcel {line} {is_new}", ctx.attempt());
        }
        if ctx.attempt() == 1 {
            return Err("the connection was lost at the very end".into());
        }
        Ok(())
    }
}

impl Job for SendParcel {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        // A key is free again once its job has finished; a follow-up that comes a second time after that finds its row.
        let mut parcels = ctx.state::<Parcels>()?.0.lock().unwrap_or_else(PoisonError::into_inner);
        parcels.entry((self.order, self.line)).or_insert(self.item);
        Ok(())
    }
}

#[tokio::main]
async fn main() -> chokaq::Result<()> {
    let pool = Pool::connect("sqlite::memory:").await?;
    let parcels = Parcels::default();
    let items = ["tea", "cups", "kettle"].map(str::to_owned).to_vec();
    let order = PlaceOrder { items }.enqueue(&pool).await?;
    Worker::builder(&pool).state(parcels.clone()).build()?.run_until_idle().await?;

    let attempts = pool.job(order.id).await?.map_or(0, |job| job.attempts);
    let parcels = parcels.0.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{attempts} attempts of the order, {} parcels: {:?}", parcels.len(), parcels.values());
    Ok(())
}
