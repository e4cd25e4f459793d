//! Sign-in through a provider: `GET, PUT, DELETE /v1/sso` for its settings, `GET /v1/sso/start` and
//! `GET /v1/sso/callback` for the way there and back.

mod callback;
pub(crate) mod settings;
mod start;

use crate::described::{Described, routes};

/// Cookie of a sign-in in progress.
const FLOW: &str = "packhouse_sso";

pub(crate) fn endpoints() -> Vec<Described> {
    vec![
        routes!(settings::show),
        routes!(settings::change),
        routes!(settings::remove),
        routes!(start::start),
        routes!(callback::callback),
    ]
}
