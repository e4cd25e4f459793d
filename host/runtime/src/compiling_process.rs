//! Compiling in a process of its own. A large component takes a hundred MiB while it is compiled, which lie between what the server
//! allocates meanwhile and afterwards: it would keep half of them for good.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::component_file::MAX_COMPONENT_BYTES;
use crate::engine::{self, EngineOptions};

/// What that process ends with when the component cannot be compiled; it says why on standard error.
pub const NOT_COMPILED: u8 = 3;
/// Bytes of what it says that are listened to.
const MAX_REASON: u64 = 64 << 10;

/// How such a process is started. [`compile_stdin`] is what it does.
#[derive(Clone, Debug)]
pub struct CompilingProcess {
    /// The program.
    pub program: PathBuf,
    /// The argument with which it does that, before those of the engine.
    pub command: &'static str,
}

/// Why nothing was compiled.
#[derive(Debug)]
pub(crate) enum NotCompiled {
    /// The component cannot be.
    Refused(String),
    /// The process was of no use: another way may be.
    Failed(String),
}

/// For which engine the process compiles.
#[derive(Clone, Copy, Debug)]
pub struct CompiledFor {
    /// Instances at one time, where they come from a pool.
    pub pool: Option<usize>,
    /// Bytes of the largest linear memory.
    pub memory_bytes: usize,
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
        options: CompiledFor,
        component: &[u8],
        into: &File,
    ) -> Result<(), NotCompiled> {
        let mut command = Command::new(&self.program);
        command.arg(self.command).arg("--memory-bytes").arg(options.memory_bytes.to_string());
        if let Some(pool) = options.pool {
            command.arg("--pool").arg(pool.to_string());
        }
        // What is in the environment may be a secret, and it needs nothing of it.
        command.env_clear().stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.stdout(into.try_clone()?).spawn()?;
        let (handed, said) = converse(&mut child, component);
        // One that was written to in vain ends as well.
        let status = child.wait()?;
        match status.code() {
            Some(0) => Ok(handed?),
            Some(code) if code == i32::from(NOT_COMPILED) => {
                Err(NotCompiled::Refused(said.trim_end().to_owned()))
            }
            _ => Err(NotCompiled::Failed(format!("it ended with {status}"))),
        }
    }
}

/// Hands the component over, and reads until the process ends what it says: how the one went, and the other.
fn converse(child: &mut Child, component: &[u8]) -> (io::Result<()>, String) {
    let (mut input, errors) = (child.stdin.take(), child.stderr.take());
    let handed = input.as_mut().map_or(Ok(()), |input| hand_over(input, component));
    let mut said = Vec::new();
    if let Some(errors) = errors {
        // What was read by then is what it said.
        let _ = errors.take(MAX_REASON).read_to_end(&mut said);
    }
    // Open until then: the process ends when this one does.
    drop(input);
    (handed, String::from_utf8_lossy(&said).into_owned())
}

/// Its length, and its bytes.
fn hand_over(input: &mut ChildStdin, component: &[u8]) -> io::Result<()> {
    input.write_all(&(component.len() as u64).to_le_bytes())?;
    input.write_all(component)
}

/// The work of the process that a [`CompilingProcess`] starts: compiles the component that comes on standard input, with its length in 8
/// bytes before it, to standard output. The process ends as soon as standard input does. The inner error says why the component cannot
/// be compiled, the outer one why this process cannot.
pub fn compile_stdin(options: CompiledFor) -> io::Result<Result<(), String>> {
    let component = receive()?;
    std::thread::spawn(end_with_stdin);
    let engine = engine::engine(&EngineOptions { pool: options.pool, memory_bytes: options.memory_bytes });
    let engine = engine.map_err(io::Error::other)?;
    match on_own_threads(|| engine.precompile_component(&component)) {
        Ok(code) => {
            let mut output = io::stdout().lock();
            output.write_all(&code)?;
            output.flush().map(Ok)
        }
        Err(error) => Ok(Err(format!("{error:#}"))),
    }
}

fn receive() -> io::Result<Vec<u8>> {
    let mut input = io::stdin().lock();
    let mut length = [0; 8];
    input.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length).min(MAX_COMPONENT_BYTES as u64);
    let mut component = Vec::new();
    input.take(length).read_to_end(&mut component)?;
    Ok(component)
}

/// Nobody waits for what is compiled any more.
fn end_with_stdin() {
    let mut byte = [0];
    while matches!(io::stdin().read(&mut byte), Ok(1..)) {}
    std::process::exit(1);
}

/// Compiles with as many threads as there are cores, which are this component's alone: on threads that all share, the functions of a large
/// one would stand before those of all others.
pub(crate) fn on_own_threads<T: Send>(compile: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().thread_name(|at| format!("compile-{at}")).build() {
        Ok(own) => own.install(compile),
        // On those that all share, then.
        Err(error) => {
            tracing::debug!(%error, "there are no threads to be had");
            compile()
        }
    }
}
