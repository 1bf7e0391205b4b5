//! Offline checks over `sql/sqlite/*.sql`: headers, column lists, the guards of every transition, and query plans.

mod files;
mod guards;
mod list;
mod mutants;
mod plans;
mod shape;
