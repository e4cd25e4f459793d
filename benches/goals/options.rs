//! What the caller may change of a run.

use clap::Parser;

/// What a run measures, and how much of it.
#[derive(Debug, Parser)]
#[command(about = "Measures what the server is to reach, as one table of ratios")]
pub(crate) struct Options {
    /// Only rows in whose names this word stands, and what is needed for them
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
    /// Artifacts that are there before publishes are measured again; a million takes about ten minutes
    #[arg(long, default_value_t = 20_000)]
    pub(crate) grown: u32,
    /// Seconds until memory is called idle
    #[arg(long, default_value_t = 5)]
    pub(crate) settle: u64,
    /// Bytes of the large transfer, in MiB
    #[arg(long, default_value_t = 1024)]
    pub(crate) transfer: u64,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    /// From the command line; ends the program when that is wrong.
    pub(crate) fn read() -> Self {
        Self::parse()
    }

    /// Whether any row of a section can be wanted, by the words that stand in the names of its rows.
    pub(crate) fn wants(&self, words: &str) -> bool {
        self.only.is_empty()
            || self.only.split([' ', ':', ',']).any(|word| !word.is_empty() && words.contains(word))
    }
}
