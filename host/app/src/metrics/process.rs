//! The process as Linux sees it, under the names that Prometheus' own clients use. Read when it is asked for; what is not to be had
//! is left out.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Ticks of the clock in which Linux tells times to programs, on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// The metrics as Prometheus' text.
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
    let rows = [
        ("process_cpu_seconds_total", "counter", "CPU time used, in seconds", cpu),
        ("process_start_time_seconds", "gauge", "When the process began, in seconds since 1970", started),
        ("process_resident_memory_bytes", "gauge", "Memory that is resident", kib("VmRSS:")),
        ("process_virtual_memory_bytes", "gauge", "Address space in use", kib("VmSize:")),
        ("process_open_fds", "gauge", "Open file descriptors", files),
        (
            "process_max_fds",
            "gauge",
            "Most file descriptors",
            number_after(&read("self/limits"), "Max open files"),
        ),
        ("process_threads", "gauge", "Threads", number_after(&status, "Threads:")),
    ];
    let mut text = String::new();
    for (name, kind, about, value) in rows.into_iter().filter_map(|(a, b, c, value)| Some((a, b, c, value?)))
    {
        // Writing to a string does not fail.
        let _ = write!(text, "# HELP {name} {about}\n# TYPE {name} {kind}\n{name} {value}\n\n");
    }
    text
}

/// A field of `/proc/PID/stat` by its number in proc(5). The second one, the name, may hold spaces and parentheses.
fn field(stat: &str, number: usize) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

/// The first number behind a word at the beginning of a line.
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
    fn this_process_is_told_of() {
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
