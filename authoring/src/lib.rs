//! Tools for plugin authors. This crate creates projects from templates and builds components, for
//! `packhouse plugins new` and `packhouse plugins build`. `xtask` uses the crate to build this
//! repository's own plugins.
//!
//! The program needs no other files: the build script packs the contract, the SDK and the
//! templates, and the program itself encodes components. It starts only the author's compiler or
//! build tool as another process.

pub mod compile;
pub mod component;
mod contract_only;
pub mod files;
mod language;
pub mod project;
pub mod renamed;
mod scripts;
pub mod toolchain;

pub use language::Language;
pub use project::{build, own_tests, write, write_policy};
