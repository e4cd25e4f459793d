//! Secrets from standard input: a hidden line of a terminal, or the first line of a pipe.

use std::io::{BufRead as _, IsTerminal as _, Write as _, stderr, stdin};

use anyhow::Context;
use packhouse_config::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Reads a secret. On a terminal, prints `prompt` to standard error first and hides the input.
pub(super) fn read_secret(prompt: &str) -> anyhow::Result<Secret> {
    let hidden = stdin().is_terminal().then(HiddenInput::begin).flatten();
    if stdin().is_terminal() {
        let mut output = stderr().lock();
        write!(output, "{prompt}: ").and_then(|()| output.flush()).context("failed to write the prompt")?;
    }
    let mut line = String::new();
    stdin().lock().read_line(&mut line).context("failed to read standard input")?;
    if hidden.is_some() {
        // The terminal does not show the end of the hidden line.
        writeln!(stderr()).context("failed to write to the terminal")?;
    }
    Ok(Secret::new(line.trim()))
}

/// Hides the input of the terminal until it is dropped.
struct HiddenInput(Termios);

impl HiddenInput {
    /// Returns `None` if the terminal cannot hide its input.
    fn begin() -> Option<HiddenInput> {
        let before = tcgetattr(stdin()).ok()?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(stdin(), OptionalActions::Flush, &hidden).ok()?;
        Some(HiddenInput(before))
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        tcsetattr(stdin(), OptionalActions::Now, &self.0).unwrap_or_default();
    }
}
