//! The server under strace: the order of its system calls.

use std::process::{Command, Stdio};

/// Returns the reason why strace cannot trace the server here; `None` if it can.
pub fn unavailable() -> Option<String> {
    let mut command = Command::new("strace");
    command.args(["-D", "-f", "-o", "/dev/null", "-e", "trace=fsync", "true"]);
    match command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Err(error) => Some(format!("no strace: {error}")),
        Ok(status) if status.success() => None,
        Ok(_) => Some("strace may not trace here (ptrace is refused)".to_owned()),
    }
}

/// A command for `ServerBuilder::wrapped_in` that traces these system calls into a file.
pub fn command<'a>(calls: &'a str, into: &'a str) -> Vec<&'a str> {
    // `-D` keeps the server as the test's direct child, so that kill and wait apply to the server
    // and not to strace.
    vec!["strace", "-D", "-f", "-y", "-s", "64", "-o", into, "-e", calls]
}
