//! Tower layers around every run of a worker's jobs: a time limit, a limit of runs at once, and one of the program's
//! own that says how long each run took.
//!
//! ```sh
//! cargo run --example layers
//! ```

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use chokaq::{JobCall, JobOutput, Pool, Worker, prelude::*};
use tokio::time::sleep;
use tower::{Service, layer::layer_fn, limit::ConcurrencyLimitLayer, timeout::TimeoutLayer};

/// Asks a service that is slow to answer the first time.
#[job(backoff = fixed("50ms"))]
struct AskSlowly {
    number: u32,
}

impl Job for AskSlowly {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        let is_slow = self.number == 3 && ctx.attempt() == 1;
        sleep(Duration::from_millis(if is_slow { 60_000 } else { 20 })).await;
        Ok(())
    }
}

/// Prints what ran, for how long, and how it ended. A real one would record a histogram.
#[derive(Clone)]
struct Timed<S>(S);

impl<S> Service<JobCall> for Timed<S>
where
    S: Service<JobCall, Response = JobOutput, Future: Send + 'static>,
    S::Error: std::fmt::Display,
{
    type Response = JobOutput;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<JobOutput, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, call: JobCall) -> Self::Future {
        let context = call.context.clone();
        let started = Instant::now();
        let run = self.0.call(call);
        Box::pin(async move {
            let result = run.await;
            let end = result.as_ref().err().map_or_else(|| "done".to_owned(), ToString::to_string);
            let (job, attempt) = (context.job_type(), context.attempt());
            println!("{job}, attempt {attempt}: {end} after {:?}", started.elapsed());
            result
        })
    }
}

#[tokio::main]
async fn main() -> chokaq::Result<()> {
    let pool = Pool::connect("sqlite::memory:").await?;
    AskSlowly::enqueue_all(&pool, (1..=4).map(|number| AskSlowly { number })).await?;
    // The first layer is the outermost. The limit holds over all jobs of this worker, and a run that waits for it is
    // not timed yet; a run over the time limit fails with the layer's error, and is retried like any other.
    let worker = Worker::builder(&pool)
        .layer(ConcurrencyLimitLayer::new(2))
        .layer(layer_fn(Timed))
        .layer(TimeoutLayer::new(Duration::from_millis(500)))
        .build()?;
    worker.run_until_idle().await?;
    println!("{} succeeded", pool.operator().summary_stats().await?.succeeded_total);
    Ok(())
}
