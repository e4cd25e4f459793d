//! Recent changes of commits. Results that depend on unchanged content stay valid.
//!
//! A reader collects its reads as [`Dependencies`]. From memory, without a statement, the log
//! answers if any of these dependencies changed between two revisions of a repository. Unknown
//! commits count as changes of everything, for example commits that another process did not
//! announce.

pub(crate) mod announced;
mod dependencies;
mod log;
mod sorted;
#[cfg(test)]
mod tests;

pub use dependencies::Dependencies;
pub(crate) use log::{ChangeLog, Touched, TouchedRange};
