//! What the store promises, over SQLite and over PostgreSQL: one suite, every test in both.

mod accounts;
mod catalog;
mod commits;
mod failures;
mod generation;
mod keys;
mod support;
