//! Metrics of the process on Linux, under the names that Prometheus' own clients use. Each
//! rendering reads them again, and omits those that are not available.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::registry::{Metric, MetricKind};

/// Ticks in a second of the clock that Linux uses for times in `/proc`. It is the same on every
/// architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// Metrics of the process, which Linux provides.
pub static PROCESS_METRICS: [Metric; 7] = [
    metric("process_cpu_seconds_total", MetricKind::Counter, "CPU time used, in seconds"),
    metric("process_start_time_seconds", MetricKind::Gauge, "Start of the process, in seconds since 1970"),
    metric("process_resident_memory_bytes", MetricKind::Gauge, "Resident memory"),
    metric("process_virtual_memory_bytes", MetricKind::Gauge, "Virtual memory"),
    metric("process_open_fds", MetricKind::Gauge, "Open file descriptors"),
    metric("process_max_fds", MetricKind::Gauge, "Limit of open file descriptors"),
    metric("process_threads", MetricKind::Gauge, "Threads"),
];

const fn metric(name: &'static str, kind: MetricKind, help: &'static str) -> Metric {
    Metric { name, kind, unit: None, labels: &[], help }
}

/// Renders the metrics in the text format of Prometheus.
pub(super) fn render() -> String {
    render_from(Path::new("/proc"))
}

fn render_from(proc: &Path) -> String {
    let read = |name: &str| fs::read_to_string(proc.join(name)).unwrap_or_default();
    let (stat, status) = (read("self/stat"), read("self/status"));
    let ticks = |number: usize| field(&stat, number).map(|ticks| ticks / TICKS_PER_SECOND);
    let cpu = ticks(14).zip(ticks(15)).map(|(user, system)| user + system);
    let started = ticks(22).zip(number_after(&read("stat"), "btime ")).map(|(since, boot)| boot + since);
    let files = fs::read_dir(proc.join("self/fd")).ok().map(|files| files.count() as f64);
    let kib = |name: &str| number_after(&status, name).map(|kib| kib * 1024.0);
    // The values have the order of `PROCESS_METRICS`.
    let values = [
        cpu,
        started,
        kib("VmRSS:"),
        kib("VmSize:"),
        files,
        number_after(&read("self/limits"), "Max open files"),
        number_after(&status, "Threads:"),
    ];
    let mut text = String::new();
    for (Metric { name, kind, help, .. }, value) in PROCESS_METRICS.iter().zip(values) {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let kind = kind.name();
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n\n");
        }
    }
    text
}

/// Returns a field of `/proc/PID/stat` by its number in proc(5). The second field, the name, may
/// contain spaces and parentheses.
fn field(stat: &str, number: usize) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

/// Returns the first number after a word at the start of a line.
fn number_after(text: &str, word: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(word))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_does_not_shift_the_fields() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 9 0 1000 1 2";
        assert_eq!(
            (field(stat, 14), field(stat, 15), field(stat, 22)),
            (Some(250.0), Some(50.0), Some(1000.0))
        );
        assert_eq!(number_after("Name: x\nVmRSS:\t  12 kB\n", "VmRSS:"), Some(12.0));
    }

    #[test]
    fn this_process_has_metrics() {
        let text = render();
        for name in
            ["cpu_seconds_total", "start_time_seconds", "resident_memory_bytes", "open_fds", "max_fds"]
        {
            let line = text.lines().find(|line| line.starts_with(&format!("process_{name} ")));
            let value = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            assert!(value.is_some_and(|value| value >= 0.0), "{name}: {text}");
        }
    }
}
