//! What authors of formats need besides a server: a project to begin with, and a component of what they wrote. Behind
//! `packhouse plugins new` and `packhouse plugins build`, and behind `xtask`, which builds this repository's own plugins.
//!
//! All of it is in the program: the contract, the SDK and the templates are packed by the build script, and the component is made in the
//! process itself. Only the author's own compiler is started.

pub mod compile;
pub mod component;
mod contract_alone;
pub mod files;
mod language;
pub mod project;
pub mod renamed;
mod scripts;
pub mod toolchain;

pub use language::Language;
pub use project::{build, own_tests, write, write_policy};
