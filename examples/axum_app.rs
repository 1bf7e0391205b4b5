//! A web service that enqueues from a handler and runs the jobs in the same program; one token stops both.
//!
//! ```sh
//! cargo run --example axum_app
//! ```
//!
//! It visits itself and stops. A service would cancel the token at a signal instead: `ctrl_c().await; stop.cancel();`.

use std::{error::Error, io::prelude::*, net::TcpStream, time::Duration};

use axum::{Json, Router, extract::State, http::StatusCode, routing::post};
use chokaq::{Pool, Worker, prelude::*};
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn Error + Send + Sync>;

#[job(queue = "mail")]
struct SendReceipt {
    order_id: u64,
}

impl Job for SendReceipt {
    type Output = String;
    async fn run(self, _: &JobContext) -> Result<String, JobError> {
        Ok(format!("receipt of order {}", self.order_id))
    }
}

/// The body is the job. When this answers 202 the job is in the database, whatever happens to this process.
async fn accept(
    State(pool): State<Pool>,
    Json(receipt): Json<SendReceipt>,
) -> (StatusCode, String) {
    let key = format!("order-{}", receipt.order_id);
    match receipt.enqueue(&pool).idempotency_key(key).await {
        Ok(enqueued) => (StatusCode::ACCEPTED, enqueued.id.to_string()),
        Err(e) if e.is_invalid_input() => (StatusCode::BAD_REQUEST, e.to_string()),
        Err(e) => (StatusCode::SERVICE_UNAVAILABLE, e.to_string()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let pool = Pool::connect("sqlite::memory:").await?;
    let stop = CancellationToken::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let routes = Router::new().route("/receipts", post(accept)).with_state(pool.clone());
    let stopped = || stop.clone().cancelled_owned();
    let server = axum::serve(listener, routes).with_graceful_shutdown(stopped());
    let worker = Worker::builder(&pool).shutdown(stopped()).build()?;

    let visitor = async {
        let _stop_when_done = stop.drop_guard();
        for body in [r#"{"order_id": 7}"#, r#"{"order_id": 8}"#, r#"{"order_id": "nine"}"#] {
            let answer = tokio::task::spawn_blocking(move || visit(port, body)).await??;
            let (head, text) = answer.split_once("\r\n\r\n").ok_or("not an HTTP answer")?;
            println!("{body} -> {}", head.lines().next().unwrap_or_default());
            let Ok(id) = text.parse() else { continue };
            while pool.job(id).await?.is_some_and(|job| job.finished_at.is_none()) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            println!("  {id}: {:?}", pool.job(id).await?.and_then(|job| job.output));
        }
        Ok::<(), Failure>(())
    };
    let (served, worked, visited) = tokio::join!(server.into_future(), worker.run(), visitor);
    println!("server stopped: {served:?}, worker stopped: {worked:?}");
    visited
}

fn visit(port: u16, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let head = "POST /receipts HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json";
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
