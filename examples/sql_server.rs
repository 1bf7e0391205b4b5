//! Some two hundred jobs of several kinds, run to the end on a SQL Server, and what became of them.
//!
//! ```sh
//! export MSSQL_SA_PASSWORD=...                 # of your choice; see compose.yaml
//! docker compose up --wait
//! export CHOKAQ_DATABASE_URL="mssql://sa:$MSSQL_SA_PASSWORD@localhost/chokaq?trust_server_certificate=true"
//! cargo run --release --example sql_server --features mssql
//! ```

use std::{error::Error, process::ExitCode, sync::mpsc, time::Duration};

use chokaq::{JobCall, Pool, SummaryStats, Worker, prelude::*};
use tower::util::MapRequestLayer;
use tracing_subscriber::filter::LevelFilter;

const HELP: &str = r#"This example needs a SQL Server. In a checkout of chokaq this starts one on this machine, in a minute:

    export MSSQL_SA_PASSWORD=...                 # of your choice; see compose.yaml
    docker compose up --wait
    export CHOKAQ_DATABASE_URL="mssql://sa:$MSSQL_SA_PASSWORD@localhost/chokaq?trust_server_certificate=true"

For another server: mssql://user:password@host:1433/database?schema=chokaq. The login must be able to create tables there."#;

/// The usual case. Queues of the example's own: no job of yours is touched.
#[job(queue = "example-mail")]
struct SendReceipt {
    order_id: u64,
}

impl Job for SendReceipt {
    type Output = String;
    async fn run(self, _: &JobContext) -> Result<String, JobError> {
        tokio::time::sleep(Duration::from_millis(2)).await;
        Ok(format!("receipt of order {}", self.order_id))
    }
}

/// It fails twice, and succeeds on its third attempt.
#[job(queue = "example-api", backoff = fixed("50ms"))]
struct CallFlakyApi;

impl Job for CallFlakyApi {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        if ctx.attempt() < 3 { Err("503 Service Unavailable".into()) } else { Ok(()) }
    }
}

/// No retry can help.
#[job(queue = "example-api")]
struct ChargeCard;

impl Job for ChargeCard {
    type Output = ();
    async fn run(self, _: &JobContext) -> Result<(), JobError> {
        Err(JobError::fatal("the card has expired"))
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    // What the worker waits for, such as a database that is gone, is told by its log.
    tracing_subscriber::fmt().with_max_level(LevelFilter::WARN).with_writer(std::io::stderr).init();
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // chokaq's errors name the server and the part at fault, never the password.
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("CHOKAQ_DATABASE_URL").unwrap_or_default();
    if url.is_empty() {
        return Err(format!("CHOKAQ_DATABASE_URL is not set.\n\n{HELP}").into());
    }
    if url.starts_with("sqlite:") {
        let error = "CHOKAQ_DATABASE_URL names SQLite, for which there is the example quickstart.";
        return Err(format!("{error}\n\n{HELP}").into());
    }
    let pool = Pool::connect(url).await.map_err(|error| format!("{error}\n\n{HELP}"))?;
    for migration in pool.migrate().await? {
        println!("migrated    {migration}");
    }
    let before = pool.operator().summary_stats().await?;
    enqueue(&pool).await?;

    // A layer sees every run: this one hands its context out, for the times in the report.
    let (runs, ran) = mpsc::channel();
    let watch = MapRequestLayer::new(move |call: JobCall| {
        let _ = runs.send(call.context.clone());
        call
    });
    // Two failures of each flaky job are meant: a circuit breaker would take them for an outage, and wait.
    let worker = Worker::builder(&pool).layer(watch).circuit_failures(0).build()?;
    worker.run_until_idle().await?;
    report(&pool, &before, &ran.try_iter().collect::<Vec<_>>()).await
}

async fn enqueue(pool: &Pool) -> chokaq::Result<()> {
    let receipts = (1..=180).map(|order_id| SendReceipt { order_id });
    let mut jobs = SendReceipt::enqueue_all(pool, receipts).await?.added;
    jobs += CallFlakyApi::enqueue_all(pool, (0..18).map(|_| CallFlakyApi)).await?.added;
    ChargeCard::enqueue(pool).await?;
    SendReceipt { order_id: 181 }.enqueue(pool).delay(Duration::from_secs(1)).await?;
    let first = SendReceipt { order_id: 182 }.enqueue(pool).idempotency_key("182").await?;
    let again = SendReceipt { order_id: 182 }.enqueue(pool).idempotency_key("182").await?;
    println!("enqueued    {:>6}", jobs + 3);
    let refused = u8::from(again.duplicate && again.id == first.id);
    println!("duplicates  {refused:>6}  (the same key twice is one job)");
    Ok(())
}

/// What became of them, as the database has it, and how long they waited.
async fn report(
    pool: &Pool,
    before: &SummaryStats,
    runs: &[JobContext],
) -> Result<(), Box<dyn Error>> {
    let after = pool.operator().summary_stats().await?;
    println!("archived    {:>6}", after.succeeded_total - before.succeeded_total);
    println!("retried     {:>6}", after.retried_total - before.retried_total);
    println!("dead        {:>6}", after.failed_total - before.failed_total);
    for job in pool.operator().dlq_page(Some("example-api"), None, 1).await? {
        let reason = job.reason.as_str();
        println!("  {:<14}{reason:<12}{}", job.job_type, job.error.unwrap_or_default());
    }
    // Of what was due when the first one started: without the retries and the delayed one.
    let first = runs.iter().map(JobContext::started_at).min().ok_or("nothing ran")?;
    let due = runs.iter().filter(|run| run.due_at() <= first);
    let last = due.clone().map(JobContext::started_at).max().unwrap_or(first);
    let jobs = f64::from(u32::try_from(due.count())?);
    println!("throughput  {:>6.0}  jobs/s", jobs / last.since(first).as_secs_f64());
    let mut waits: Vec<_> = runs.iter().map(|run| run.started_at().since(run.due_at())).collect();
    waits.sort();
    for percent in [50, 99] {
        let wait = waits.get(waits.len() * percent / 100).copied().unwrap_or_default();
        println!("p{percent}         {:>6}  ms from due to start", wait.as_millis());
    }
    Ok(())
}
