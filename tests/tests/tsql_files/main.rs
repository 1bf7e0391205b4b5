//! Offline checks over `sql/mssql/*.sql`: what can be held to the rules without a server.
//!
//! `tokens` up to `transactions` take a text apart; each module after `lints` is a lint with the tests that show what it
//! notices; `mutants` takes every guard away in turn and asks all lints.

mod files;
mod tokens;

mod flow;

mod blocks;
mod sources;

mod schema;
mod scope;

mod relations;
mod transactions;

mod lints;

mod collation;
mod dates;
mod filters;
mod guards;
mod headers;
mod hints;
mod keys;
mod locks;
mod page;
mod sending;
mod shape;
mod types;
mod wait_graph;

mod mutants;
