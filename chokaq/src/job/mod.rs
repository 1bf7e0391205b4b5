//! What a job is to the person who writes it.

mod call;
mod context;
mod error;

pub use call::{JobCall, JobOutput};
pub use context::{CancelCause, JobContext};
pub(crate) use context::{Cancellation, ContextParts, StateMap};
pub use error::JobError;
pub(crate) use error::{ErrorClass, JobFailure};

/// A job: what to do with the data of the struct.
///
/// The future must be `Send`: hold nothing across an `.await` that is not (an `Rc`, a `std::sync::MutexGuard`).
///
/// ```
/// use chokaq::prelude::*;
///
/// #[job(queue = "mail", retries = 5, timeout = "30s")]
/// pub struct SendReceipt { pub order_id: u64, pub to: String }
///
/// impl Job for SendReceipt {
///     type Output = ();
///     async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
///         println!("receipt {} to {}, attempt {}", self.order_id, self.to, ctx.attempt());
///         Ok(())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has `#[job]` but no `Job` implementation",
    label = "this job does not say what to run",
    note = "write `impl Job for {Self} {{ type Output = (); async fn run(self, ctx: &JobContext) -> Result<(), JobError> {{ .. }} }}`",
    note = "if another program runs it, say `#[job(enqueue_only)]`"
)]
pub trait Job: Sized + Send + 'static {
    /// What a success leaves in the archive, as JSON; `()` leaves nothing. At most 1 MB: a larger one is dropped with a
    /// note, the job has succeeded all the same.
    type Output: serde::Serialize;

    /// Does the work. Delivery is at least once: a run may be repeated after a crash.
    ///
    /// # Errors
    /// Any error is retried with backoff; [`JobError`]'s constructors say otherwise.
    fn run(self, ctx: &JobContext) -> impl Future<Output = Result<Self::Output, JobError>> + Send;
}
