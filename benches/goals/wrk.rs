//! Load by wrk from the second core, with the server under load on the first.

use crate::table::Table;
use packhouse_benches::{cpu_seconds, median};
use packhouse_tests::clients::has;
use std::path::Path;
use std::process::Command;

/// What wrk asks for, of whom.
#[derive(Clone, Debug)]
pub(crate) struct Load<'a> {
    /// The server's process.
    pub(crate) pid: u32,
    /// Address and path.
    pub(crate) url: String,
    /// The `Authorization` that it shows.
    pub(crate) authorization: &'a str,
    /// Its `Accept`.
    pub(crate) accept: &'a str,
    /// A script in Lua that makes the requests.
    pub(crate) script: Option<&'a Path>,
    /// Connections at a time.
    pub(crate) connections: u32,
    /// For so long.
    pub(crate) seconds: u32,
}

/// What it saw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Requests a second.
    pub(crate) rate: f64,
    /// CPU of the server for each, in µs.
    pub(crate) micros: f64,
}

/// Whether load can be made here; says what is missing otherwise.
pub(crate) fn available(table: &mut Table) -> bool {
    let missing = ["wrk", "taskset"].into_iter().find(|program| !has(program));
    if let Some(program) = missing {
        table.skip("reads under load", &format!("no {program} on the path"));
    }
    missing.is_none()
}

/// Puts all threads of a process on this core.
pub(crate) fn pin(pid: u32, core: u32) {
    let mut command = Command::new("taskset");
    command.args(["-a", "-p", "-c", &core.to_string(), &pid.to_string()]);
    let output = command.output().expect("taskset");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

impl Load<'_> {
    /// Puts it on the server. Any answer that is no 2xx ends the program.
    pub(crate) fn run(&self) -> Seen {
        pin(self.pid, 0);
        let mut command = Command::new("taskset");
        command.args(["-c", "1", "wrk", "-t1", &format!("-c{}", self.connections)]);
        command.arg(format!("-d{}", self.seconds));
        command.args(["-H", &format!("Authorization: {}", self.authorization)]);
        command.args(["-H", &format!("Accept: {}", self.accept)]);
        if let Some(script) = self.script {
            command.arg("-s").arg(script);
        }
        let before = cpu_seconds(self.pid);
        let output = command.arg(&self.url).output().expect("wrk");
        let spent = cpu_seconds(self.pid) - before;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && !said.contains("Non-2xx"), "{}: {said}", self.url);
        let count = said.lines().find(|line| line.contains("requests in"));
        let count = count.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        let count = count.unwrap_or_else(|| panic!("{}: {said}", self.url));
        Seen { rate: count / f64::from(self.seconds), micros: spent * 1e6 / count }
    }
}

/// µs of CPU for a request of each of these loads: the medians of as many rounds in turn as each has seconds, so that a slow spell of the
/// machine meets all of them.
pub(crate) fn in_turn(loads: &[Load<'_>]) -> Vec<f64> {
    let rounds = loads.iter().map(|load| load.seconds).max().unwrap_or_default();
    let mut micros = vec![Vec::new(); loads.len()];
    for _ in 0..rounds {
        for (load, micros) in loads.iter().zip(&mut micros) {
            micros.push(Load { seconds: 1, ..load.clone() }.run().micros);
        }
    }
    micros.into_iter().map(median).collect()
}
