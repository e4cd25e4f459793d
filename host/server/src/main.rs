//! The program: HTTP, identity, access, the management API and the command line, over the store and the plugins.
//!
//! # Layout
//!
//! `cli` reads the command line, `config` the settings; `serve` opens everything in order and stops it again. `packages`
//! is the repository host, `api` the management API; `wire` and `path` are what stands under both. `catalogue` holds every
//! error code, `access` the one decision who may do what, `identity` secrets and passwords.

mod access;
mod address;
mod api;
mod app;
mod catalogue;
mod cli;
mod config;
mod descriptors;
mod identity;
mod listen;
mod log;
mod mail;
mod metrics;
mod packages;
mod path;
mod permissions;
mod readiness;
mod serve;
mod services;
mod settings;
mod sso;
mod upstream;
mod wire;

use std::process::ExitCode;

use clap::Parser;

/// Measured under many small publishes: a tenth less CPU than the system's allocator, and memory that compiling plugins or
/// hashing a password took is given back.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    serve::make_files_private();
    match cli::run(cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

/// Why the program could not do what it was asked, for the person who started it: the log may not have begun.
#[expect(clippy::print_stderr, reason = "the last word of a program that ends")]
fn complain(error: &anyhow::Error) {
    eprintln!("packhouse: {}", packhouse_store::causes(error.as_ref()));
}
