//! Waits that are none.

use chokaq::prelude::*;

#[job(enqueue_only, backoff = "10s")]
struct Text;

#[job(enqueue_only, backoff = linear("10s"))]
struct UnknownKind;

#[job(enqueue_only, backoff = |_| std::time::Duration::from_secs(1))]
struct Closure;

#[job(enqueue_only, backoff = exponential)]
struct ExponentialAlone;

#[job(enqueue_only, backoff = exponential("3s", "1h", 2.0))]
struct Unnamed;

#[job(enqueue_only, backoff = exponential(base = "3", max = 60, factor = 0.5))]
struct BadParts;

#[job(enqueue_only, backoff = exponential(base = "3s", base = "4s", step = 2))]
struct RepeatedOrUnknownPart;

#[job(enqueue_only, backoff = exponential(factor = 1001, max = "1h"))]
struct SteepFactor;

#[job(enqueue_only, backoff = exponential(base = "2h"))]
struct BaseOverMax;

#[job(enqueue_only, backoff = fixed)]
struct FixedAlone;

#[job(enqueue_only, backoff = fixed())]
struct FixedEmpty;

#[job(enqueue_only, backoff = fixed("1s", "2s"))]
struct FixedTwice;

#[job(enqueue_only, backoff = fixed(10))]
struct FixedNumber;

#[job(enqueue_only, backoff = fixed("0s"))]
struct FixedZero;

fn main() {}
