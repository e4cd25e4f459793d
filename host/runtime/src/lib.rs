//! Format plugins as Wasm components: engine, loading, limits, one file for each import. No HTTP server here.
//!
//! [`Runtime::load`] compiles every `*.wasm` of the plugin folder and asks each what it is. A request is then put to its
//! [`Plugin`] in up to three calls: [`Plugin::route`] (pure), [`Plugin::check`] (reads only), [`Plugin::handle`]. Every call has a
//! fresh store and instance, a deadline and limits of its own, and storage handles that match the [`Intent`].

mod answer;
mod call;
mod config;
mod description;
mod error;
mod plugin;
mod request;
mod services;

pub use answer::{Answer, Content, Failure, Problem};
pub use call::{Appended, Call, Part, RepositoryView, VersionState};
pub use config::{Limits, PluginConfig, RuntimeConfig};
pub use description::{Challenge, Claim, Description, DescriptionLimits, ErrorStyle, Setting, SettingKind};
pub use error::{CallError, LoadError};
pub use plugin::{Inspection, Plugin, Runtime, inspect};
pub use request::{Action, BodyPlan, Intent, RequestHead};
pub use services::{
    Fetch, Freshness, Login, LoginState, NoServices, PublicKey, Reply, ServiceError, ServiceFuture, Services,
    Signature, TokenView,
};
