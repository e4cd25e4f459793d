//! The life cycle of formats' components: what the database says that each format runs, followed by every server within a second, and
//! the changes of it.
//!
//! A format of which nothing was said runs the component of the plugin folder. Whatever is activated, pinned or displaced lies in the
//! database, so that every server has the same bytes, and a folder that an upgrade replaced does not take away what may be rolled back
//! to.

mod capabilities;
mod follow;
mod manage;
mod origin;
pub mod registry;
pub mod signatures;
mod start;
mod told;
mod trials;

pub use capabilities::{Capabilities, Changes};
pub use follow::{Followed, follow_changes};
pub use manage::{Activated, Activation, ListedPlugin, PluginError, PluginStateName};
pub use origin::PluginOrigin;
pub use start::compile_rest;
pub use told::Told;
pub use trials::{MAX_FAILURES, add_up_trials};
