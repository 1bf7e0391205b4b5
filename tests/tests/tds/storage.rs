//! The storage contract on SQL Server, over the wire: what each call sends, and what it makes of each answer.

mod circuits;
pub(crate) mod columns;
mod controls;
mod enqueue;
mod every_call;
mod fetch;
mod finalise;
mod keep_alive;
mod lost_replies;
mod mark;
mod migrate;
mod operate;
mod pages;
mod pool;
mod reads;
mod recognise;
mod refusals;
mod release;
mod rescue;
pub(crate) mod stage;
