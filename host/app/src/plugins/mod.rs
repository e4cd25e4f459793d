//! Life cycle of the components of formats. The database states which component each format runs,
//! and every server applies a change within a second.
//!
//! A format without an entry in the database runs the component in the plugin folder. The database
//! stores components that an operator activated, pinned or replaced. Therefore, all servers have
//! the same bytes, and a rollback is possible even after an upgrade of the server has replaced the
//! folder.

mod capabilities;
mod component_facts;
mod follow;
mod manage;
mod origin;
mod plugin_state_name;
pub mod registry;
pub mod signatures;
mod start;

pub use capabilities::{Capabilities, Changes};
pub use component_facts::ComponentFacts;
pub use follow::{Followed, follow_changes};
pub use manage::{Activated, Activation, ListedPlugin, PluginError};
pub use origin::PluginOrigin;
pub use plugin_state_name::PluginStateName;
pub use start::compile_rest;
