//! The rows of a run. The run prints each row when it is measured, and all rows again at the end.

/// The goal of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// The ratio must be at least this.
    Ratio(f64),
    /// The figure must be at most this.
    AtMost(f64),
    /// The figure must be at least this.
    AtLeast(f64),
}

/// One measurement.
#[derive(Clone, Debug)]
pub(crate) struct ResultRow {
    /// Name of the measurement, with its conditions.
    pub(crate) name: String,
    /// Unit of the figures. A higher rate is better; of all other units, a lower figure is better.
    pub(crate) unit: Unit,
    /// Figure of the server.
    pub(crate) ours: f64,
    /// Figure for comparison: of nginx, or of the server in another state. `None` if the goal is
    /// only a bound.
    pub(crate) peer: Option<f64>,
    /// Goal that the figure must reach.
    pub(crate) goal: Goal,
}

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// CPU time of the server for a request, in µs.
    Micros,
    /// CPU time of the server, in ms.
    CpuMillis,
    /// Elapsed time, in ms.
    Millis,
    /// Requests per second.
    Rate,
    /// Memory, in MiB.
    Mebibytes,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Micros => "µs CPU",
            Self::CpuMillis => "ms CPU",
            Self::Millis => "ms",
            Self::Rate => "/s",
            Self::Mebibytes => "MiB",
        }
    }
}

impl ResultRow {
    /// Ratio to the peer: greater than 1 is better.
    fn ratio(&self) -> Option<f64> {
        let peer = self.peer?;
        Some(if self.unit == Unit::Rate { self.ours / peer } else { peer / self.ours })
    }

    fn reached(&self) -> bool {
        match self.goal {
            Goal::Ratio(least) => self.ratio().is_some_and(|ratio| ratio >= least),
            Goal::AtMost(most) => self.ours <= most,
            Goal::AtLeast(least) => self.ours >= least,
        }
    }

    fn line(&self) -> String {
        let Self { name, ours, .. } = self;
        let unit = self.unit.name();
        let peer = self.peer.map_or_else(|| "-".to_owned(), |peer| format!("{peer:.1}"));
        let ratio = self.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        let goal = match self.goal {
            Goal::Ratio(least) => format!("ratio >= {least}"),
            Goal::AtMost(most) => format!("<= {most} {unit}"),
            Goal::AtLeast(least) => format!(">= {least}{unit}"),
        };
        let reached = if self.reached() { "yes" } else { "no" };
        let ours = format!("{ours:.1} {unit}");
        format!("{name:<58} {ours:>16} {peer:>10} {ratio:>6}  {goal:<18} {reached}")
    }
}

/// The measurements so far.
#[derive(Debug)]
pub(crate) struct ResultTable {
    only: String,
    rows: Vec<ResultRow>,
    skipped: Vec<String>,
}

impl ResultTable {
    /// Creates a table for rows whose names contain this word.
    pub(crate) fn new(only: &str) -> Self {
        Self { only: only.to_owned(), rows: Vec::new(), skipped: Vec::new() }
    }

    /// True if the row with this name must be measured.
    pub(crate) fn selects(&self, name: &str) -> bool {
        name.contains(&self.only)
    }

    /// Adds a row and prints it.
    pub(crate) fn add(&mut self, row: ResultRow) {
        println!("{}", row.line());
        self.rows.push(row);
    }

    /// Reports once that something was left out, and the reason.
    pub(crate) fn skip(&mut self, what: &str, reason: &str) {
        let line = format!("left out: {what}: {reason}");
        if !self.skipped.contains(&line) {
            println!("{line}");
            self.skipped.push(line);
        }
    }

    /// Prints all rows again below one header.
    pub(crate) fn print(&self) {
        println!(
            "\n{:<58} {:>16} {:>10} {:>6}  {:<18} reached",
            "measurement", "ours", "peer", "ratio", "goal"
        );
        self.rows.iter().for_each(|row| println!("{}", row.line()));
        self.skipped.iter().for_each(|line| println!("{line}"));
    }
}
