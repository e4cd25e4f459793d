//! Sign-in by a provider that speaks OpenID Connect: an organization's settings, the way there and back, and what is believed
//! of what comes back.

mod settings;

pub(crate) use settings::{Settings, allows_password};
