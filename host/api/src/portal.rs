//! Browser sessions: the session's secret is in a cookie that scripts cannot read. A second secret
//! that no other site can know protects against forged requests.
//!
//! A browser gets the cookie from `POST /v1/sessions` with `"cookie": true`, or from a sign-in
//! through a provider. A request with the cookie that may change something must carry the session's
//! CSRF token, in `X-CSRF-Token` or in a form field. It is refused if `Origin` or `Sec-Fetch-Site`
//! shows that another site sent it. For a request with `Authorization`, only that header counts.
//!
//! For the portal's pages with plain forms (`host/portal`): [`Visitor::of`] returns the signed-in
//! visitor, [`Visitor::csrf`] the hidden field of each form, and [`Visitor::check`] checks the
//! submitted form. [`signed_in`] is the cookie to set after `operations::sessions::sign_in`.
//! `operations::confirmations::confirm_by_password` creates a confirmation.

use http::header::{COOKIE, ORIGIN};
use http::{HeaderMap, HeaderValue};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::base_path::SITE;
use crate::error::ApiError;
use crate::operations::Caller;
use packhouse_app::App;
use packhouse_identity::Secret;
use packhouse_wire::catalogue;
use packhouse_wire::site::Site;

/// Cookie of an identity that its member has to confirm.
pub const LINK: &str = "packhouse_sso_link";
/// Page where the member confirms it.
pub const LINK_PAGE: &str = "/sign-in/link";

/// Header with the session's CSRF token in requests and responses.
pub const CSRF: &str = "x-csrf-token";
const SESSION: &str = "packhouse_session";
/// Cookie of a confirmation that a page without scripts requested.
const CONFIRMATION: &str = "packhouse_confirmation";
/// Lifetime of that cookie in seconds: that of a confirmation.
const CONFIRMATION_SECONDS: i64 = 5 * 60;

/// Signed-in member in a browser.
pub struct Visitor {
    pub caller: Caller,
    session: Secret,
}

impl Visitor {
    /// Finds the visitor by the request's cookie; `None` without a cookie or after the session has
    /// ended. 503 as for every call.
    pub async fn of(app: &App, headers: &HeaderMap) -> Result<Option<Visitor>, ApiError> {
        let Some(session) = cookie(app, headers, SESSION) else { return Ok(None) };
        let caller = Caller::of(app, session.reveal()).await?;
        Ok(caller.map(|caller| Visitor { caller, session }))
    }

    /// CSRF token of the session, for a hidden field or for `X-CSRF-Token`. It cannot be derived
    /// from the content of the database.
    pub fn csrf(&self) -> String {
        csrf(&self.session)
    }

    /// Checks a request that may change something: 403 `csrf_refused` unless this site sent it and
    /// `given` is the session's CSRF token.
    pub fn check(&self, app: &App, headers: &HeaderMap, given: &str) -> Result<(), ApiError> {
        let right = bool::from(self.csrf().as_bytes().ct_eq(given.as_bytes()));
        if right && same_origin(app, headers) {
            Ok(())
        } else {
            Err(ApiError::from(&catalogue::CSRF_REFUSED))
        }
    }
}

/// CSRF token of a session.
pub fn csrf(session: &Secret) -> String {
    hex::encode(Sha256::new_with_prefix("packhouse csrf 1\0").chain_update(session.reveal()).finalize())
}

/// Cookie of a session, for `Set-Cookie`. `seconds` is its lifetime.
pub fn signed_in(app: &App, session: &Secret, seconds: i64) -> Result<HeaderValue, ApiError> {
    set(app, SESSION, session.reveal(), seconds)
}

/// Cookie of a confirmation by a provider. It is only accepted together with a form that has the
/// CSRF token.
pub fn confirmed(app: &App, token: &str) -> Result<HeaderValue, ApiError> {
    set(app, CONFIRMATION, token, CONFIRMATION_SECONDS)
}

/// Confirmation in the request's cookie.
pub fn confirmation(app: &App, headers: &HeaderMap) -> Option<Secret> {
    cookie(app, headers, CONFIRMATION)
}

/// Header value that removes the confirmation's cookie.
pub fn forget_confirmation(app: &App) -> Result<HeaderValue, ApiError> {
    set(app, CONFIRMATION, "", 0)
}

/// Header value that removes the session's cookie.
pub fn signed_out(app: &App) -> Result<HeaderValue, ApiError> {
    set(app, SESSION, "", 0)
}

/// Cookie of this host only. Scripts cannot read it, and forms of other sites do not send it. It is
/// `Lax`, not `Strict`, because the return from a sign-in provider begins at that provider and
/// needs the cookie.
pub fn set(app: &App, name: &str, value: &str, seconds: i64) -> Result<HeaderValue, ApiError> {
    let secure = if is_secure(app) { "; Secure" } else { "" };
    let name = named(app, name);
    let path = Some(app.config.api_path()).filter(|path| !path.is_empty()).unwrap_or("/");
    let text = format!("{name}={value}; Path={path}; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
    let mut field = HeaderValue::try_from(text).map_err(|error| ApiError::Internal(error.into()))?;
    field.set_sensitive(true);
    Ok(field)
}

/// Cookie with this name. `None` if there are two, because somebody else may have set one of them.
pub fn cookie(app: &App, headers: &HeaderMap, name: &str) -> Option<Secret> {
    let name = named(app, name);
    let fields = headers.get_all(COOKIE).iter().filter_map(|field| field.to_str().ok());
    let pairs = fields.flat_map(|field| field.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(known, _)| *known == name).map(|(_, value)| value);
    match (values.next(), values.next()) {
        (Some(value), None) if !value.is_empty() => Some(Secret::new(value)),
        _ => None,
    }
}

/// Name with a prefix that browsers accept only over TLS. They accept `__Host-` only from the host
/// itself, not from a neighbouring host, and only for all of its paths.
fn named(app: &App, name: &str) -> String {
    match (is_secure(app), app.config.api_path()) {
        (true, "") => format!("__Host-{name}"),
        (true, _) => format!("__Secure-{name}"),
        (false, _) => name.to_owned(),
    }
}

fn is_secure(app: &App) -> bool {
    app.api_url().starts_with("https://")
}

/// Returns whether no header shows that another site's page sent the request. Programs send no such
/// header; browsers always do.
pub fn same_origin(app: &App, headers: &HeaderMap) -> bool {
    let field = |name: &str| headers.get(name).map(|field| field.to_str().unwrap_or("?"));
    let fetched = field("sec-fetch-site").is_none_or(|site| matches!(site, "same-origin" | "none"));
    let public = app.config.public_api_url();
    let own = public.as_deref().and_then(Site::of).map(|site| site.as_str().to_owned());
    let own = own.as_deref().or_else(|| field(SITE.as_str()));
    let origin = field(ORIGIN.as_str()).is_none_or(|origin| own == Some(origin));
    fetched && origin
}
