//! The process that a server starts to compile a component.

use std::fmt;

use anyhow::Context as _;
use packhouse_runtime::{CompiledFor, CompilingProcess, NOT_COMPILED, compile_stdin};

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

/// Does its work.
#[expect(clippy::print_stderr, reason = "the server that started it reads that")]
pub(super) fn run(memory_bytes: usize, pool: Option<usize>) -> anyhow::Result<()> {
    let compiled = compile_stdin(CompiledFor { pool, memory_bytes });
    compiled.context("failed to compile a component")?.map_err(|why| {
        eprintln!("{why}");
        NotCompiled.into()
    })
}
