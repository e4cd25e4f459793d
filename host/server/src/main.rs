//! The `packhouse` program: the command line and the server process.
//!
//! # Layout
//!
//! `cli` parses and runs commands. `serve` starts the parts of the server in order and stops them
//! again. Everything else is in crates, each of which depends only on earlier ones in this list.
//! `config` has the settings. `wire` has HTTP and all error codes. `identity` has secrets,
//! passwords and access decisions. `upstream` has the upstreams of proxies. `app` has the state
//! that both hosts share. `packages` is the repository host, and `api` is the management API. This
//! crate assembles them.

mod bind_error;
mod cli;
mod log;
mod memory;
mod serve;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    memory::return_memory_soon();
    serve::make_files_private();
    let done = cli::run(cli::Cli::parse());
    log::finish();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<cli::NotCompiled>() => ExitCode::from(cli::NotCompiled::CODE),
        Err(error) => {
            print_error(&error);
            if error.is::<cli::NotReplayed>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// Prints why the program failed. It goes to standard error because the log may not have started.
#[expect(clippy::print_stderr, reason = "the final error of a command")]
fn print_error(error: &anyhow::Error) {
    eprintln!("packhouse: {}", packhouse_store::causes(error.as_ref()));
}
