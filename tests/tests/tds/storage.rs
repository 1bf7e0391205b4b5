//! The storage contract on SQL Server, over the wire: what each call sends, and what it makes of each answer.

pub(crate) mod columns;
mod controls;
mod enqueue;
mod fetch;
mod finalise;
mod keep_alive;
mod mark;
mod migrate;
mod operate;
mod pages;
mod reads;
mod recognise;
mod release;
mod rescue;
pub(crate) mod stage;
