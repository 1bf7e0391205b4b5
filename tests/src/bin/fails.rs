//! A program whose `main` returns an error: `fails connect URL`, `fails build` or `fails enqueue`. Nothing in it can be
//! served: its one job belongs to another program.

use chokaq::{Pool, Worker, prelude::*};

#[job(enqueue_only)]
struct Text {
    text: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> chokaq::Result<()> {
    let mut args = std::env::args().skip(1);
    let mode = args.next().unwrap_or_default();
    let url = args.next().unwrap_or_else(|| "sqlite::memory:".to_owned());
    let pool = Pool::connect(url).await?;
    match mode.as_str() {
        "build" => drop(Worker::builder(&pool).build()?),
        "enqueue" => {
            let lengths = (0..1_500).map(|n| if n == 1_200 { 1_000_001 } else { 1 });
            let jobs = lengths.map(|length| Text { text: "x".repeat(length) });
            Text::enqueue_all(&pool, jobs).await?;
        }
        _ => {}
    }
    Ok(())
}
