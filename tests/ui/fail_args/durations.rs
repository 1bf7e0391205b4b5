//! Durations that are none, and durations that no job can have.

use chokaq::prelude::*;

#[job(enqueue_only, timeout = "15", max_age = "one day")]
struct NoUnits;

#[job(enqueue_only, timeout = "", max_age = "-1d")]
struct EmptyOrNegative;

#[job(enqueue_only, timeout = "0s", max_age = "999us")]
struct TooShort;

#[job(enqueue_only, timeout = "18251d", max_age = "99999999999999y")]
struct TooLong;

#[job(enqueue_only, timeout = 30, max_age = Duration::from_secs(30))]
struct NoStrings;

fn main() {}
