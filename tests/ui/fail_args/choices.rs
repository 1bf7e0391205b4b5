//! Arguments that have a few values, or none.

use chokaq::prelude::*;

#[job(enqueue_only, on_crash = "ignore", serde = "no")]
struct UnknownChoice;

#[job(enqueue_only, on_crash = retry, serde)]
struct NoString;

#[job(enqueue_only = true)]
struct FlagWithValue;

#[job(enqueue_only, crate = 7)]
struct NumberAsCrate;

#[job(enqueue_only, crate = "no path")]
struct TextAsCrate;

/// Nothing is derived a second time.
#[derive(serde::Serialize, serde::Deserialize)]
#[job(enqueue_only, serde = 0)]
struct NumberForSerde;

macro_rules! declare {
    ($name:ident) => {
        #[job(enqueue_only, crate = $crate::chokaq)]
        struct $name;
    };
}

mod chokaq {
    pub(crate) use ::chokaq::*;
}

declare!(CrateOfMacro);

fn main() {}
