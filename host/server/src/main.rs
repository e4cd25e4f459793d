//! The program: HTTP, identity, access, the management API and the command line, over the store and the plugins.
//!
//! # Layout
//!
//! `cli` reads the command line; `serve` opens everything in order and stops it again. All else is crates that point one way:
//! `config` (settings), `wire` (HTTP below the request, every error code), `identity` (secrets, passwords, the one decision who
//! may do what), `upstream` (proxies' upstreams), `app` (the state that both hosts share), `packages` (the repository host) and
//! `api` (the management API). This one puts them together.

mod cli;
mod log;
mod memory;
mod serve;
mod unbound;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    memory::give_back_soon();
    serve::make_files_private();
    let done = cli::run(cli::Cli::parse());
    log::finish();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<cli::NotCompiled>() => ExitCode::from(cli::NotCompiled::CODE),
        Err(error) => {
            complain(&error);
            if error.is::<cli::NotReplayed>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// Why the program could not do what it was asked, for the person who started it: the log may not have begun.
#[expect(clippy::print_stderr, reason = "the last word of a program that ends")]
fn complain(error: &anyhow::Error) {
    eprintln!("packhouse: {}", packhouse_store::causes(error.as_ref()));
}
