//! Sign-in by a provider: `GET, PUT, DELETE /v1/sso` for its settings, `GET /v1/sso/start` and `GET /v1/sso/callback` for the
//! way there and back.

mod callback;
pub(crate) mod settings;
mod start;

use crate::described::{Described, routes};

/// The cookie of a sign-in under way.
const FLOW: &str = "packhouse_sso";

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<Described> {
    vec![
        routes!(settings::show),
        routes!(settings::change),
        routes!(settings::remove),
        routes!(start::start),
        routes!(callback::callback),
    ]
}
