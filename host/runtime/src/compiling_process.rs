//! Compiling in a separate process. Compiling a large component takes a hundred MiB. If the server
//! compiled, long-lived allocations would end up within that memory, and the server could never
//! return half of it.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::component_file::MAX_COMPONENT_BYTES;
use crate::engine::{self, EngineOptions};
use crate::error::LoadError;

/// Exit code of the compiling process if it cannot compile the component. The process writes the
/// reason to standard error.
pub const NOT_COMPILED: u8 = 3;
/// Bytes of standard error that are read.
const MAX_REASON: u64 = 64 << 10;

/// Program and command of a compiling process. The process runs [`receive_component`] and
/// [`compile_component`], and writes the code to standard output.
#[derive(Clone, Debug)]
pub struct CompilingProcess {
    pub program: PathBuf,
    /// Argument that starts this mode. The engine's options follow it.
    pub command: &'static str,
}

#[derive(Debug)]
pub(crate) enum NotCompiled {
    /// The component cannot be compiled.
    Refused(String),
    /// The process failed. Another way may succeed.
    Failed(String),
}

impl From<io::Error> for NotCompiled {
    fn from(error: io::Error) -> NotCompiled {
        NotCompiled::Failed(error.to_string())
    }
}

impl CompilingProcess {
    /// Compiles a component for an engine with these options into this file. Blocks.
    pub(crate) fn compile(
        &self,
        options: EngineOptions,
        component: &[u8],
        into: &File,
    ) -> Result<(), NotCompiled> {
        let mut command = Command::new(&self.program);
        command.arg(self.command).arg("--memory-bytes").arg(options.memory_bytes.to_string());
        if let Some(pool) = options.pool {
            command.arg("--pool").arg(pool.to_string());
        }
        // The environment may hold secrets, and the process needs none of it.
        command.env_clear().stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.stdout(into.try_clone()?).spawn()?;
        let (handed, stderr) = converse(&mut child, component);
        // The process ends even if it has not read all its input.
        let status = child.wait()?;
        match status.code() {
            Some(0) => Ok(handed?),
            Some(code) if code == i32::from(NOT_COMPILED) => {
                Err(NotCompiled::Refused(stderr.trim_end().to_owned()))
            }
            _ => Err(NotCompiled::Failed(format!("it ended with {status}"))),
        }
    }
}

/// Hands the component over, then reads standard error until the process ends. Returns the result
/// of the hand-over and the text.
fn converse(child: &mut Child, component: &[u8]) -> (io::Result<()>, String) {
    let (mut input, errors) = (child.stdin.take(), child.stderr.take());
    let handed = input.as_mut().map_or(Ok(()), |input| hand_over(input, component));
    let mut stderr = Vec::new();
    if let Some(errors) = errors {
        // After a read error, the text read so far is used.
        let _ = errors.take(MAX_REASON).read_to_end(&mut stderr);
    }
    // The input stays open until here. If this process dies earlier, the input closes and the
    // compiling process ends.
    drop(input);
    (handed, String::from_utf8_lossy(&stderr).into_owned())
}

/// Writes the length and then the bytes.
fn hand_over(input: &mut ChildStdin, component: &[u8]) -> io::Result<()> {
    input.write_all(&(component.len() as u64).to_le_bytes())?;
    input.write_all(component)
}

/// Reads the component that a compiling process receives: its length in 8 bytes, then its bytes.
/// The server keeps the input open as long as it waits for the result.
pub fn receive_component(mut input: impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    input.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length).min(MAX_COMPONENT_BYTES as u64);
    let mut component = Vec::new();
    input.take(length).read_to_end(&mut component)?;
    Ok(component)
}

/// Compiles a component for an engine with these options. The inner error says why this component
/// cannot be compiled. The outer error says why no component can be compiled.
pub fn compile_component(
    options: &EngineOptions,
    component: &[u8],
) -> Result<Result<Vec<u8>, String>, LoadError> {
    let engine = engine::engine(options)?;
    let code = on_own_threads(|| engine.precompile_component(component));
    Ok(code.map_err(|error| format!("{error:#}")))
}

/// Compiles with one thread per core, used by this component only. On shared threads, the functions
/// of one large component would delay all other components.
pub(crate) fn on_own_threads<T: Send>(compile: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().thread_name(|at| format!("compile-{at}")).build() {
        Ok(own) => own.install(compile),
        // Compile on the shared threads instead.
        Err(error) => {
            tracing::debug!(%error, "cannot start compiler threads");
            compile()
        }
    }
}
