//! The program: HTTP, identity, access, the management API and the command line, over the store and the plugins.
//!
//! # Layout
//!
//! `cli` reads the command line, `config` the settings; `serve` opens everything in order and stops it again. `packages`
//! is the repository host, `api` the management API; `wire` and `path` are what stands under both. `catalogue` holds every
//! error code, `access` the one decision who may do what, `identity` secrets and passwords.

mod access;
mod app;
mod catalogue;
mod config;
mod identity;
mod path;
mod wire;

fn main() {}
