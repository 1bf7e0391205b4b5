//! Every argument, at its values and its defaults.

use std::time::Duration;

use chokaq::{Backoff, OnCrash, prelude::*};

#[job]
struct Plain {
    number: u8,
}

#[job()]
struct EmptyList;

#[job(
    queue = "mail",
    retries = 5,
    type_key = "mail.receipt",
    aliases = ["receipt", "send-receipt"],
    priority = -20,
    timeout = "1h 30m",
    max_age = "2d",
    backoff = exponential(base = "250ms", max = "10m", factor = 1.5),
    on_crash = "retry",
)]
struct Full {
    order: u64,
}

#[job(backoff = exponential(), on_crash = "dead_letter", retries = 0)]
struct Exponential;

#[job(backoff = exponential(factor = 3), retries = 1_000, priority = -2_147_483_648)]
struct WholeFactor;

#[job(backoff = fixed("10s"), aliases = [])]
struct Fixed;

mod waits {
    pub fn quadratic(attempt: u32) -> std::time::Duration {
        std::time::Duration::from_secs(u64::from(attempt * attempt))
    }
}

#[job(backoff = waits::quadratic)]
struct Function;

#[job(enqueue_only, queue = "elsewhere")]
struct ElsewhereRun {
    #[allow(dead_code)]
    number: u8,
}

macro_rules! nothing {
    ($($job:ident)*) => {$(
        impl Job for $job {
            type Output = ();
            async fn run(self, _: &JobContext) -> Result<(), JobError> {
                Ok(())
            }
        }
    )*};
}

nothing!(Plain EmptyList Full Exponential WholeFactor Fixed Function);

/// What a macro passes on stands in an invisible group.
macro_rules! declare {
    ($name:ident, $queue:literal, $timeout:expr, $retries:expr, $wait:path) => {
        #[job(queue = $queue, timeout = $timeout, retries = $retries, backoff = $wait)]
        struct $name;
        nothing!($name);
    };
}

declare!(FromMacro, "made", "5s", 7, waits::quadratic);

fn main() {
    let plain = Plain::JOB_TYPE;
    assert_eq!((plain.key, plain.queue, plain.priority), ("plain", "default", 10));
    assert!(plain.aliases.is_empty());
    assert!(plain.policy.retries.is_none() && plain.policy.timeout.is_none());
    assert!(plain.policy.max_age.is_none() && plain.policy.backoff.is_none());
    assert_eq!(plain.policy.on_crash, OnCrash::DeadLetter);
    assert!(plain.rust_name.ends_with("::Plain"), "{}", plain.rust_name);
    assert!(plain.location.ends_with("arguments.rs:7"), "{}", plain.location);

    let full = Full::JOB_TYPE;
    assert_eq!((full.key, full.queue, full.priority), ("mail.receipt", "mail", -20));
    assert_eq!(full.aliases, ["receipt", "send-receipt"]);
    assert_eq!(full.policy.retries, Some(5));
    assert_eq!(full.policy.timeout, Some(Duration::from_secs(5_400)));
    assert_eq!(full.policy.max_age, Some(Duration::from_secs(172_800)));
    assert_eq!(full.policy.on_crash, OnCrash::Retry);
    assert_eq!(waits(&full), [250, 375]);

    assert_eq!(Exponential::JOB_TYPE.policy.retries, Some(0));
    assert_eq!(waits(&Exponential::JOB_TYPE), [3_000, 6_000]);
    assert_eq!(waits(&WholeFactor::JOB_TYPE), [3_000, 9_000]);
    assert_eq!(WholeFactor::JOB_TYPE.priority, i32::MIN);
    assert_eq!(waits(&Fixed::JOB_TYPE), [10_000, 10_000]);
    assert_eq!(waits(&Function::JOB_TYPE), [1_000, 4_000]);

    assert_eq!(ElsewhereRun::JOB_TYPE.queue, "elsewhere");

    assert_eq!(FromMacro::JOB_TYPE.queue, "made");
    assert_eq!(FromMacro::JOB_TYPE.policy.retries, Some(7));
    assert_eq!(FromMacro::JOB_TYPE.policy.timeout, Some(Duration::from_secs(5)));

    let _ = (Plain { number: 1 }, Full { order: 1 }, ElsewhereRun { number: 1 });
}

/// The first two waits, in milliseconds.
fn waits(job_type: &chokaq::model::JobType) -> [u128; 2] {
    let backoff: Backoff = job_type.policy.backoff.unwrap();
    [1, 2].map(|attempt| backoff.delay(attempt).as_millis())
}
