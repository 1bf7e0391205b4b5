//! tiberius reports each error of the server at ERROR and each plain login at WARN, deadlocks that are retried at once
//! and connections that are meant to be plain. What becomes of an error is for its caller to say, so its events are
//! dropped, unless somebody asked for them: with `tiberius` enabled at DEBUG (`RUST_LOG=tiberius=debug`) all are heard.
//!
//! A program without a `tracing` subscriber that collects `log` records gets them as records of the target
//! `tiberius::...` all the same: switch that target off there (`RUST_LOG=info,tiberius=off`).

use tracing::{Dispatch, Level, dispatcher, instrument::WithSubscriber};

/// Runs the driver's future with its events dropped.
pub(super) async fn quietly<F: Future>(future: F) -> F::Output {
    // Entering a dispatcher, even one that drops everything, counts as one being set, and ends the forwarding to `log`
    // for the whole process: where none was set before, the driver keeps its voice.
    let mute = dispatcher::has_been_set() && !tracing::enabled!(target: "tiberius", Level::DEBUG);
    if mute { future.with_subscriber(Dispatch::none()).await } else { future.await }
}
