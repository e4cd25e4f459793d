//! Somebody who is signed in and sits at a page: what a page knows of who asks, and of what came along.

use std::collections::HashMap;
use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::header::LOCATION;
use http::{HeaderMap, HeaderValue, StatusCode};
use packhouse_api::operations::Actor;
use packhouse_identity::permissions::Permission;
use sha2::{Digest as _, Sha256};

use crate::Portal;
use crate::fields::Fields;

/// Somebody signed in, at a page.
pub(crate) struct Seat {
    /// What the pages share.
    pub(crate) portal: Arc<Portal>,
    /// Who it is, for operations.
    pub(crate) actor: Actor,
    /// The session's token against forged forms.
    pub(crate) csrf: String,
    /// The page's path, as it was asked for.
    pub(crate) path: String,
    /// The parameters of the path, percent-decoded once.
    pub(crate) named: HashMap<String, String>,
    /// Of the address.
    pub(crate) query: Fields,
    /// What was sent; of a page that was come back to, what had been filled in.
    pub(crate) form: Fields,
    /// The request's.
    pub(crate) headers: HeaderMap,
}

impl Seat {
    /// A parameter of the path, percent-decoded once.
    pub(crate) fn named(&self, name: &str) -> &str {
        self.named.get(name).map_or("", String::as_str)
    }

    /// Whether the member holds this permission: for what is shown of the way there, never for what may be done.
    pub(crate) fn holds(&self, permission: Permission) -> bool {
        self.actor.permissions().holds(permission)
    }

    /// Names the session's form of this number.
    pub(crate) fn form_key(&self, once: &str) -> [u8; 32] {
        let hash = Sha256::new_with_prefix("packhouse portal form 1\0");
        hash.chain_update(self.actor.session()).chain_update(once).finalize().into()
    }
}

/// On to another page.
pub(crate) fn see_other(path: &str) -> Response {
    let location = HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}
