//! Sign-in by a provider that speaks OpenID Connect: an organization's settings, the way there and back, and what is believed
//! of what comes back.

mod exchange;
mod flow;
mod provider;
mod settings;

pub use exchange::{Exchange, Refused};
pub use flow::{Aim, FLOW_MS, Flow, Link, Ticket, is_own_path, random};
pub(crate) use provider::Metadata;
pub use provider::Providers;
pub use settings::{Settings, allows_password};
