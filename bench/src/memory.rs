//! What a worker holds while many jobs pass through it.

use std::{sync::atomic::Ordering, time::Duration};

use chokaq::{Enqueue, Pool, Worker};
use serde_json::json;

use crate::{Failure, HANDLED, Noop, args::Args, noop};

/// Enqueues and drains in slices, so that producer and worker are both at work; notes the memory after each slice.
pub(crate) async fn run(args: &Args, pool: &Pool) -> Result<(), Failure> {
    const SLICES: usize = 20;
    let slice = (args.jobs / SLICES).max(1) as u64;
    let worker = Worker::builder(pool).concurrency(args.concurrency).build()?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    let mut kilobytes = Vec::new();
    for n in 0..SLICES as u64 {
        Noop::enqueue_all(pool, (n * slice..(n + 1) * slice).map(noop)).await?;
        while HANDLED.load(Ordering::Relaxed) < (n + 1) * slice || handle.running() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        kilobytes.push(resident_kilobytes()?);
    }
    handle.stop();
    running.await??;
    // The first slices fill caches of a fixed size; what comes after them must not grow.
    let settled = &kilobytes[SLICES / 5..];
    let (least, most) = (settled.iter().min().unwrap_or(&0), settled.iter().max().unwrap_or(&0));
    let line = json!({
        "peer": "chokaq", "mode": args.mode, "jobs": args.jobs, "concurrency": args.concurrency,
        "resident_mb_per_slice": kilobytes.iter().map(|kb| kb / 1024).collect::<Vec<_>>(),
        "growth_after_warm_up_mb": (most - least) / 1024,
        "notes": format!("SQLite, WAL, synchronous={}", args.synchronous()),
    });
    println!("{line}");
    Ok(())
}

fn resident_kilobytes() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no VmRSS in /proc/self/status")?.parse()?)
}
