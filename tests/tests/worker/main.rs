//! What a worker does, seen through the public API, on the embedded backend.

mod cancelling;
mod controls;
mod enqueueing;
mod failing;
mod leases;
mod processes;
mod registering;
mod running;
mod stopping;
mod support;
