//! Offline checks over what is for the people who look after a SQL Server: the procedure, the roles, the scripts.

mod procedure;
mod roles;
mod scripts;
mod text;
