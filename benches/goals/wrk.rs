//! Load by wrk on the second core. The server under load runs on the first core.

use crate::table::ResultTable;
use packhouse_benches::{cpu_seconds, median};
use packhouse_tests::clients::has;
use std::path::Path;
use std::process::Command;

/// The requests of wrk, and the server that receives them.
#[derive(Clone, Debug)]
pub(crate) struct WrkLoad<'a> {
    /// Process id of the server.
    pub(crate) pid: u32,
    /// URL of the request.
    pub(crate) url: String,
    /// `Authorization` of the request.
    pub(crate) authorization: &'a str,
    /// `Accept` of the request.
    pub(crate) accept: &'a str,
    /// Lua script that makes the requests.
    pub(crate) script: Option<&'a Path>,
    /// Number of connections.
    pub(crate) connections: u32,
    /// Duration in seconds.
    pub(crate) seconds: u32,
}

/// The result of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrkResult {
    /// Requests per second.
    pub(crate) rate: f64,
    /// CPU time of the server for a request, in µs.
    pub(crate) micros: f64,
}

/// True if the required programs are installed. Otherwise adds a note to the table.
pub(crate) fn available(table: &mut ResultTable) -> bool {
    let missing = ["wrk", "taskset"].into_iter().find(|program| !has(program));
    if let Some(program) = missing {
        table.skip("reads under load", &format!("no {program} on the path"));
    }
    missing.is_none()
}

/// Pins all threads of a process to this core.
pub(crate) fn pin(pid: u32, core: u32) {
    let mut command = Command::new("taskset");
    command.args(["-a", "-p", "-c", &core.to_string(), &pid.to_string()]);
    let output = command.output().expect("taskset");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

impl WrkLoad<'_> {
    /// Runs the load. Panics if any response is not 2xx.
    pub(crate) fn run(&self) -> WrkResult {
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
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && !text.contains("Non-2xx"), "{}: {text}", self.url);
        let count = text.lines().find(|line| line.contains("requests in"));
        let count = count.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        let count = count.unwrap_or_else(|| panic!("{}: {text}", self.url));
        WrkResult { rate: count / f64::from(self.seconds), micros: spent * 1e6 / count }
    }
}

/// CPU time for a request of each load, in µs. The loads take turns of one second, and the result
/// is the median, so that a slow phase of the machine affects all loads.
pub(crate) fn in_turn(loads: &[WrkLoad<'_>]) -> Vec<f64> {
    let rounds = loads.iter().map(|load| load.seconds).max().unwrap_or_default();
    let mut micros = vec![Vec::new(); loads.len()];
    for _ in 0..rounds {
        for (load, micros) in loads.iter().zip(&mut micros) {
            micros.push(WrkLoad { seconds: 1, ..load.clone() }.run().micros);
        }
    }
    micros.into_iter().map(median).collect()
}
