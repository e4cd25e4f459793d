//! Command-line options of a run.

use clap::Parser;

/// Selection and size of the measurements.
#[derive(Debug, Parser)]
#[command(about = "Measures the goals of the server as one table of ratios")]
pub(crate) struct Options {
    /// Measure only rows whose names contain this word
    #[arg(long, default_value = "")]
    pub(crate) only: String,
    /// Seconds of load for each read
    #[arg(long, default_value_t = 4)]
    pub(crate) seconds: u32,
    /// Distinct paths of the working set
    #[arg(long, default_value_t = 100_000)]
    pub(crate) paths: u32,
    /// Versions of the large packages
    #[arg(long, default_value_t = 2_000)]
    pub(crate) versions: usize,
    /// Number of artifacts before publishes are measured again; a million takes about ten minutes
    #[arg(long, default_value_t = 20_000)]
    pub(crate) grown: u32,
    /// Seconds before idle memory is measured: within a minute the allocator returns the memory
    /// used to load the plugins
    #[arg(long, default_value_t = 60)]
    pub(crate) settle: u64,
    /// Size of the large transfer, in MiB
    #[arg(long, default_value_t = 1024)]
    pub(crate) transfer: u64,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    /// Reads the command line. Exits the program if it is invalid.
    pub(crate) fn read() -> Self {
        Self::parse()
    }

    /// True if a section can contain a selected row. `words` are the words in the names of its
    /// rows.
    pub(crate) fn selects(&self, words: &str) -> bool {
        self.only.is_empty()
            || self.only.split([' ', ':', ',']).any(|word| !word.is_empty() && words.contains(word))
    }
}
