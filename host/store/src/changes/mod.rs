//! What commits changed, remembered for a while: what was made of other records stays good.
//!
//! A reader collects what it relied on as [`Dependencies`]. Whether any of that was changed between two revisions of a repository is
//! answered from memory, without a statement. What is not known, such as commits that another
//! process did not announce, counts as changed.

pub(crate) mod announced;
mod dependencies;
mod log;
mod sorted;
#[cfg(test)]
mod tests;

pub use dependencies::Dependencies;
pub(crate) use log::{ChangeLog, Touched, TouchedRange};
