//! Compiling in a process of its own. A large component takes a hundred MiB while it is compiled, which lie between what the server
//! allocates meanwhile and afterwards: it would keep half of them for good.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::component_file::MAX_COMPONENT_BYTES;
use crate::engine::{self, EngineOptions};
use crate::error::LoadError;

/// What that process ends with when the component cannot be compiled; it says why on standard error.
pub const NOT_COMPILED: u8 = 3;
/// Bytes of what it says that are listened to.
const MAX_REASON: u64 = 64 << 10;

/// How such a process is started. It does [`receive_component`] and [`compile_component`], and writes the code to standard output.
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

/// What such a process is asked to compile: a component, with its length in 8 bytes before it. Input is open behind it as long as somebody
/// waits for what comes of it.
pub fn receive_component(mut input: impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    input.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length).min(MAX_COMPONENT_BYTES as u64);
    let mut component = Vec::new();
    input.take(length).read_to_end(&mut component)?;
    Ok(component)
}

/// Compiles it for an engine with these options. The inner error says why the component cannot be compiled, the outer one why nothing can.
pub fn compile_component(
    options: &EngineOptions,
    component: &[u8],
) -> Result<Result<Vec<u8>, String>, LoadError> {
    let engine = engine::engine(options)?;
    let code = on_own_threads(|| engine.precompile_component(component));
    Ok(code.map_err(|error| format!("{error:#}")))
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
