//! Sessions of browsers: the session's secret in a cookie that no script can read, and against forged requests a second
//! secret that no other site can know.
//!
//! A browser gets the cookie from `POST /v1/sessions` with `"cookie": true`, or from a sign-in by a provider. A request that
//! shows it and may change something must carry the session's CSRF token, in `X-CSRF-Token` or in a form's field, and must not
//! say that it comes from another site (`Origin`, `Sec-Fetch-Site`). A request with `Authorization` is judged by that alone.
//!
//! For the pages of plain forms on this host (`host/portal`): [`Visitor::of`] says who sits there, [`Visitor::csrf`] goes into a hidden
//! field of each form, [`Visitor::check`] judges what comes back, [`signed_in`] is the cookie to set after
//! `operations::sessions::sign_in`, and `operations::confirmations::confirm_by_password` gives the confirmation.

use http::header::{COOKIE, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::error::ApiError;
use crate::operations::Caller;
use packhouse_app::App;
use packhouse_identity::Secret;
use packhouse_wire::catalogue;

/// The cookie of an identity that its member has to confirm.
pub const LINK: &str = "packhouse_sso_link";
/// The page where that is done.
pub const LINK_PAGE: &str = "/sign-in/link";

/// Where a request carries the session's CSRF token, and an answer tells it.
pub const CSRF: &str = "x-csrf-token";
/// The session's cookie.
const SESSION: &str = "packhouse_session";
/// The cookie of a confirmation that a page without a script asked for.
const CONFIRMATION: &str = "packhouse_confirmation";
/// How long that is kept, in seconds: as long as a confirmation is good.
const CONFIRMATION_SECONDS: i64 = 5 * 60;

/// Somebody in a browser who is signed in.
pub struct Visitor {
    /// Who it is.
    pub caller: Caller,
    session: Secret,
}

impl Visitor {
    /// Whom the request's cookie shows; none without a cookie, and where the session has ended. 503 like every call.
    pub async fn of(app: &App, headers: &HeaderMap) -> Result<Option<Visitor>, ApiError> {
        let Some(session) = cookie(app, headers, SESSION) else { return Ok(None) };
        let caller = Caller::of(app, session.reveal()).await?;
        Ok(caller.map(|caller| Visitor { caller, session }))
    }

    /// The session's CSRF token: for a hidden field, or for `X-CSRF-Token`. It cannot be made from what the database holds.
    pub fn csrf(&self) -> String {
        csrf(&self.session)
    }

    /// Judges a request that may change something: 403 `csrf_refused` unless it is this site's own and `given` is the
    /// session's CSRF token.
    pub fn check(&self, app: &App, headers: &HeaderMap, given: &str) -> Result<(), ApiError> {
        let right = bool::from(self.csrf().as_bytes().ct_eq(given.as_bytes()));
        if right && same_origin(app, headers) {
            Ok(())
        } else {
            Err(ApiError::from(&catalogue::CSRF_REFUSED))
        }
    }
}

/// The CSRF token that goes with a session.
pub fn csrf(session: &Secret) -> String {
    hex::encode(Sha256::new_with_prefix("packhouse csrf 1\0").chain_update(session.reveal()).finalize())
}

/// The cookie of a session that lives so many seconds, for `Set-Cookie`.
pub fn signed_in(app: &App, session: &Secret, seconds: i64) -> Result<HeaderValue, ApiError> {
    set(app, SESSION, session.reveal(), seconds)
}

/// The cookie of a confirmation by a provider. It confirms nothing before a form with the CSRF token comes along.
pub fn confirmed(app: &App, token: &str) -> Result<HeaderValue, ApiError> {
    set(app, CONFIRMATION, token, CONFIRMATION_SECONDS)
}

/// The confirmation that the request's cookie shows.
pub fn confirmation(app: &App, headers: &HeaderMap) -> Option<Secret> {
    cookie(app, headers, CONFIRMATION)
}

/// Takes the confirmation's cookie away.
pub fn forget_confirmation(app: &App) -> Result<HeaderValue, ApiError> {
    set(app, CONFIRMATION, "", 0)
}

/// Takes the session's cookie away.
pub fn signed_out(app: &App) -> Result<HeaderValue, ApiError> {
    set(app, SESSION, "", 0)
}

/// A cookie of this host alone, which no script reads and no other site's form sends along. `Lax`, not `Strict`: the way back
/// from a sign-in provider begins at that provider, and must find whom it concerns.
pub fn set(app: &App, name: &str, value: &str, seconds: i64) -> Result<HeaderValue, ApiError> {
    let secure = if is_secure(app) { "; Secure" } else { "" };
    let name = named(app, name);
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
    let mut field = HeaderValue::try_from(text).map_err(|error| ApiError::Internal(error.into()))?;
    field.set_sensitive(true);
    Ok(field)
}

/// The cookie of this name; none where there are two, one of which somebody else has put there.
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

/// Browsers take a name with this prefix only over TLS and from the host itself, never from one beside it.
fn named(app: &App, name: &str) -> String {
    if is_secure(app) { format!("__Host-{name}") } else { name.to_owned() }
}

fn is_secure(app: &App) -> bool {
    app.api_url().starts_with("https://")
}

/// Whether nothing says that the request was made by another site's page. Programs say nothing, browsers always.
pub fn same_origin(app: &App, headers: &HeaderMap) -> bool {
    let field = |name: &str| headers.get(name).map(|field| field.to_str().unwrap_or("?"));
    let fetched = field("sec-fetch-site").is_none_or(|site| matches!(site, "same-origin" | "none"));
    let origin = match (field(ORIGIN.as_str()), &app.config.api_url) {
        (None, _) => true,
        (Some(origin), Some(url)) => origin == url.origin().ascii_serialization(),
        (Some(origin), None) => {
            field(HOST.as_str()).is_some_and(|host| origin == format!("{}://{host}", app.api_scheme()))
        }
    };
    fetched && origin
}
