//! The process that a server starts to compile a component.

use std::fmt;
use std::io::{self, Write as _};

use anyhow::Context as _;
use packhouse_runtime::{
    CompilingProcess, EngineOptions, NOT_COMPILED, compile_component, receive_component,
};

use crate::serve;

/// The very program that runs, whatever lies in its place by now.
const PROGRAM: &str = "/proc/self/exe";

/// The component cannot be compiled; why has been said.
#[derive(Debug)]
pub(crate) struct NotCompiled;

impl fmt::Display for NotCompiled {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the component cannot be compiled")
    }
}

impl std::error::Error for NotCompiled {}

impl NotCompiled {
    /// What the process ends with.
    pub(crate) const CODE: u8 = NOT_COMPILED;
}

/// How a server starts it.
pub(super) fn process() -> CompilingProcess {
    CompilingProcess { program: PROGRAM.into(), command: "compile-component" }
}

/// Does its work, and ends as soon as the server does.
#[expect(clippy::print_stderr, reason = "the server that started it reads that")]
pub(super) fn run(options: &EngineOptions) -> anyhow::Result<()> {
    let component = receive_component(io::stdin().lock()).context("failed to read a component")?;
    serve::end_with_stdin(1);
    match compile_component(options, &component)? {
        Ok(code) => {
            let mut output = io::stdout().lock();
            output.write_all(&code).and_then(|()| output.flush()).context("failed to write what was compiled")
        }
        Err(why) => {
            eprintln!("{why}");
            Err(NotCompiled.into())
        }
    }
}
