//! The server under strace: in what order it makes its system calls.

use std::process::{Command, Stdio};

/// Why the server cannot be traced here; none when it can.
pub fn unavailable() -> Option<String> {
    let mut command = Command::new("strace");
    command.args(["-D", "-f", "-o", "/dev/null", "-e", "trace=fsync", "true"]);
    match command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Err(error) => Some(format!("no strace: {error}")),
        Ok(status) if status.success() => None,
        Ok(_) => Some("strace may not trace here (ptrace is refused)".to_owned()),
    }
}

/// A command to wrap the server in, which traces these system calls into a file.
pub fn command<'a>(calls: &'a str, into: &'a str) -> Vec<&'a str> {
    // -D: the server stays our own child, so that kill and wait mean the server.
    vec!["strace", "-D", "-f", "-y", "-s", "64", "-o", into, "-e", calls]
}
