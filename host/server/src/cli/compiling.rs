//! The child process in which a server compiles a component.

use std::fmt;
use std::io::{self, Write as _};

use anyhow::Context as _;
use packhouse_runtime::{
    CompilingProcess, EngineOptions, NOT_COMPILED, compile_component, receive_component,
};

use crate::serve;

/// The running program itself, even if its file has been replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";

/// Error for a component that cannot be compiled. The reason has already been printed.
#[derive(Debug)]
pub(crate) struct NotCompiled;

impl fmt::Display for NotCompiled {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the component cannot be compiled")
    }
}

impl std::error::Error for NotCompiled {}

impl NotCompiled {
    /// Exit code of the child process.
    pub(crate) const CODE: u8 = NOT_COMPILED;
}

/// The command with which a server starts the child process.
pub(super) fn process() -> CompilingProcess {
    CompilingProcess { program: PROGRAM.into(), command: "compile-component" }
}

/// Compiles the component on standard input. The process ends as soon as the server ends.
#[expect(clippy::print_stderr, reason = "the parent server reads it")]
pub(super) fn run(options: &EngineOptions) -> anyhow::Result<()> {
    let component = receive_component(io::stdin().lock()).context("failed to read a component")?;
    serve::end_with_stdin(1);
    match compile_component(options, &component)? {
        Ok(code) => {
            let mut output = io::stdout().lock();
            output
                .write_all(&code)
                .and_then(|()| output.flush())
                .context("failed to write the compiled component")
        }
        Err(why) => {
            eprintln!("{why}");
            Err(NotCompiled.into())
        }
    }
}
