//! The rows of a run: each is printed when it is measured, and all of them once more at the end.

/// What a row is held against.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// The ratio is to be so large.
    Ratio(f64),
    /// The figure itself is to be at most this.
    AtMost(f64),
    /// The figure itself is to be at least this.
    AtLeast(f64),
}

/// One figure.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What was measured, and on what terms.
    pub(crate) name: String,
    /// Of costs, times and bytes less is better; of rates more is.
    pub(crate) unit: Unit,
    /// The server's figure.
    pub(crate) ours: f64,
    /// What stands beside it: nginx, or the server in another state. None where the goal is a bound alone.
    pub(crate) peer: Option<f64>,
    /// What it is to reach.
    pub(crate) goal: Goal,
}

/// What a figure is a number of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// CPU of the server for a request, in µs.
    Micros,
    /// CPU of the server, in ms.
    CpuMillis,
    /// Time that passes, in ms.
    Millis,
    /// Requests a second.
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

impl Row {
    /// How much better than the peer: 1 is as good.
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

/// What was measured so far.
#[derive(Debug)]
pub(crate) struct Table {
    only: String,
    rows: Vec<Row>,
    skipped: Vec<String>,
}

impl Table {
    /// For rows in whose names this word stands.
    pub(crate) fn new(only: &str) -> Self {
        Self { only: only.to_owned(), rows: Vec::new(), skipped: Vec::new() }
    }

    /// Whether a row of this name is to be measured.
    pub(crate) fn wants(&self, name: &str) -> bool {
        name.contains(&self.only)
    }

    /// Adds a row and prints it.
    pub(crate) fn add(&mut self, row: Row) {
        println!("{}", row.line());
        self.rows.push(row);
    }

    /// Says once what was left out, and why.
    pub(crate) fn skip(&mut self, what: &str, reason: &str) {
        let line = format!("left out: {what}: {reason}");
        if !self.skipped.contains(&line) {
            println!("{line}");
            self.skipped.push(line);
        }
    }

    /// Everything once more, below one head.
    pub(crate) fn print(&self) {
        println!("\n{:<58} {:>16} {:>10} {:>6}  {:<18} reached", "what", "ours", "peer", "ratio", "goal");
        self.rows.iter().for_each(|row| println!("{}", row.line()));
        self.skipped.iter().for_each(|line| println!("{line}"));
    }
}
