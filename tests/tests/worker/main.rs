//! What a worker does, seen through the public API, on the embedded backend.

#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod cancelling;
mod circuits;
mod controls;
mod crashes;
mod enqueueing;
mod evolving;
mod failing;
mod faults;
mod leases;
#[cfg(target_os = "linux")]
mod outages;
mod processes;
mod registering;
mod render_farm;
mod running;
#[cfg(unix)]
mod signals;
mod stopping;
mod support;
mod tracing_names;
