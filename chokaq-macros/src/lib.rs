//! The `#[job]` attribute of chokaq. Use it through the `chokaq` crate.

mod args;
mod argument;
mod attributes;
mod backoff;
mod errors;
mod expand;
mod item;
mod values;

use proc_macro::TokenStream;
use quote::quote;

use crate::{args::Args, errors::Errors, item::Target};

/// Declares a job: a struct that can be enqueued, and, unless another program runs it, that a worker knows.
///
/// ```
/// use std::time::Duration;
/// use chokaq::prelude::*;
///
/// #[job(queue = "mail", retries = 5, timeout = "30s", backoff = exponential(base = "10s"))]
/// pub struct SendReceipt {
///     pub order_id: u64,
///     pub to: String,
/// }
///
/// impl Job for SendReceipt {
///     type Output = ();
///
///     async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
///         println!("receipt {} to {}, attempt {}", self.order_id, self.to, ctx.attempt());
///         Ok(())
///     }
/// }
///
/// # async fn f(pool: &chokaq::Pool) -> chokaq::Result<()> {
/// SendReceipt { order_id: 7, to: "ada@example.com".into() }
///     .enqueue(pool)
///     .delay(Duration::from_secs(60))
///     .await?;
/// # Ok(()) }
/// ```
///
/// The struct may have named fields, unnamed fields or none, but no generic parameters: a job is one type, and owns its
/// data. For a struct without a body, `MyJob::enqueue(&pool)` works as well as `MyJob.enqueue(&pool)`.
///
/// # Arguments
///
/// All are optional. What sets no retries, times or backoff inherits them from the pool and the worker, whose defaults
/// are those of this table.
///
/// | argument | default | what it says |
/// |---|---|---|
/// | `queue = "mail"` | `"default"` | The queue of new jobs. A name of 1 to 255 UTF-16 units, no white space at its ends. |
/// | `retries = 3` | 3 | Executions after the first, 0 to 1000. |
/// | `type_key = "send_receipt"` | the struct's name in snake case | The name that is stored with each job. A name, like `queue`. Give one before you rename a struct. |
/// | `aliases = ["old_key"]` | none | Other keys whose jobs this struct runs: older names. Names, each once. |
/// | `priority = 10` | 10 | The priority of new jobs, an `i32`; within a queue the higher is fetched first. |
/// | `timeout = "15m"` | 15 minutes | How long one attempt may run: 1 ms to 18,250 days. |
/// | `max_age = "1d"` | 1 day | How long after it was first due a job may still be retried: 1 ms to 18,250 days. |
/// | `backoff = exponential(base = "3s", max = "1h", factor = 2.0)` | as written | The wait before a retry: `base`, each time multiplied by `factor` (1 to 1000), at most `max` (not below `base`). Each part may be left out. |
/// | `backoff = fixed("10s")` | | The same wait before each retry. |
/// | `backoff = path::to::function` | | A `fn(u32) -> Duration` of the attempt that failed; the first is 1. |
/// | `on_crash = "dead_letter"` | `"dead_letter"` | What becomes of a job whose worker died while it ran: the dead-letter queue, or with `"retry"` another attempt. |
/// | `enqueue_only` | | Another program runs the job: no `Job` impl is wanted, and no worker here knows the type. |
/// | `serde = false` | `true` | Adds none of serde's derives. |
/// | `crate = path::to::chokaq` | `::chokaq` | Where chokaq is, for a renamed or re-exported dependency; a path, or one in quotes. |
///
/// Durations are written as [humantime](https://docs.rs/humantime) reads them: `"30s"`, `"1h 30m"`, `"250ms"`. They are
/// checked when the attribute is compiled.
///
/// # serde
///
/// A job is stored as JSON. The attribute derives `Serialize` and `Deserialize`, those of the two that are not derived
/// **below** it, and a crate needs no serde of its own; `#[serde(...)]` on the struct and its fields works as usual. A
/// derive of serde's **above** `#[job]` is expanded before the attribute, which cannot see it: the compiler then
/// reports conflicting implementations. Move `#[job]` up, or write `#[job(serde = false)]`, also for impls that are
/// written by hand or made by another macro.
///
/// # What it expands to
///
/// An impl of `chokaq::Enqueue`, and an entry in the registry in which `Worker` looks for the types that it can run. An
/// impl of `chokaq::Job` has to be there, except with `enqueue_only`.
#[proc_macro_attribute]
pub fn job(args: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let args = Args::parse(args.into(), &mut errors);
    let target = item::check(item.into(), &args, &mut errors);
    expand(&args, &target, errors).into()
}

fn expand(args: &Args, target: &Target, mut errors: Errors) -> proc_macro2::TokenStream {
    let input = match target {
        Target::Type(input) => input,
        Target::Other(tokens) => {
            let errors = errors.to_compile_errors();
            return quote!(#errors #tokens);
        }
    };
    let key = item::key(input, args, &mut errors);
    args.check_aliases(&key.value(), &mut errors);
    let item = expand::item(input, args);
    let stand_in = (!errors.is_empty()).then(|| expand::stand_in_bounds(input, args));
    let enqueue = expand::enqueue(input, args, &key, stand_in.as_ref());
    let registration =
        (errors.is_empty() && !args.enqueue_only).then(|| expand::registration(input, args));
    let errors = errors.to_compile_errors();
    quote!(#item #enqueue #registration #errors)
}
