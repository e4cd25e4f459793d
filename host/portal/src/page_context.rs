//! Context of a page request by a signed-in member.

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

/// A signed-in member's request to a page.
pub(crate) struct PageContext {
    /// State shared by all pages.
    pub(crate) portal: Arc<Portal>,
    /// The member, as operations expect it.
    pub(crate) actor: Actor,
    /// CSRF token of the session.
    pub(crate) csrf: String,
    /// Path of the page as requested.
    pub(crate) path: String,
    /// Path parameters, percent-decoded once.
    pub(crate) named: HashMap<String, String>,
    /// Parameters of the query string.
    pub(crate) query: Fields,
    /// Submitted form fields, or the saved fields when the member returns to a page.
    pub(crate) form: Fields,
    pub(crate) headers: HeaderMap,
}

impl PageContext {
    /// Returns a path parameter, percent-decoded once; empty if it is missing.
    pub(crate) fn named(&self, name: &str) -> &str {
        self.named.get(name).map_or("", String::as_str)
    }

    /// Returns whether the member holds this permission. Pages use it only to decide which links
    /// they show; operations check permissions themselves.
    pub(crate) fn holds(&self, permission: Permission) -> bool {
        self.actor.permissions().holds(permission)
    }

    /// Returns the key under which a submission of this form number in this session is recorded.
    pub(crate) fn form_key(&self, once: &str) -> [u8; 32] {
        let hash = Sha256::new_with_prefix("packhouse portal form 1\0");
        let session = self.actor.session().copied().unwrap_or_default();
        hash.chain_update(session).chain_update(once).finalize().into()
    }
}

/// Redirects to another page of this host (303).
pub(crate) fn see_other(path: &str) -> Response {
    let location = HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}
