//! Sign-in through an OpenID Connect provider: the organization's settings, the exchange with the
//! provider, and the checks of its response.

mod exchange;
mod flow;
mod groups;
mod provider;
mod settings;

pub use exchange::{Exchange, IdentifiedUser, Refused};
pub use flow::{Aim, FLOW_MS, Flow, Link, Ticket, is_own_path, random};
pub use groups::GroupsClaim;
pub(crate) use provider::ProviderMetadata;
pub use provider::Providers;
pub use settings::{SsoSettings, allows_password};
