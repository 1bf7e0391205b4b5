//! Arguments that do not exist, with a suggestion where one is near.

use chokaq::prelude::*;

#[job(enqueue_only, que = "mail", retry = 3, time_out = "5s", typekey = "k", alias = ["a"])]
struct Misspelt;

#[job(enqueue_only, colour = "red", r#type = 1)]
struct Strange;

#[job(enqueue_only, cron = "0 * * * *", unique)]
struct NotSupportedYet;

fn main() {}
