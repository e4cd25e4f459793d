//! Form fields saved while the member signs in. They are sealed in a cookie for ten minutes and
//! never contain the member's own password or code.

use http::{HeaderMap, HeaderValue};
use packhouse_api::error::ApiError;
use packhouse_api::portal;
use packhouse_app::App;
use packhouse_identity::Secret;
use serde::{Deserialize, Serialize};

use crate::fields::Fields;

const COOKIE: &str = "packhouse_draft";
/// Purpose that the seal is bound to.
const PURPOSE: &str = "portal draft";
/// Lifetime of the cookie in seconds.
const SECONDS: i64 = 10 * 60;
/// Maximum length of the cookie's value. Browsers reject cookies over 4096 bytes including name and
/// attributes.
const MAX_SEALED_BYTES: usize = 3800;
/// Fields that are never saved.
const NEVER_STORED: [&str; 5] = ["csrf", "once", "password", "current_password", "code"];

/// Saved fields of a form.
#[derive(Deserialize, Serialize)]
struct Draft {
    path: String,
    fields: Fields,
}

/// Returns a cookie with the fields of a form on this path; `None` if they are too large for one.
pub(crate) fn save(app: &App, path: &str, fields: &Fields) -> Result<Option<HeaderValue>, ApiError> {
    let fields =
        fields.0.iter().filter(|(name, _)| !NEVER_STORED.contains(&name.as_str())).cloned().collect();
    let draft = Draft { path: path.to_owned(), fields: Fields(fields) };
    let text = serde_json::to_string(&draft).map_err(anyhow::Error::from)?;
    let sealed = app.sealer.seal(PURPOSE, &Secret::new(text)).map_err(anyhow::Error::from)?;
    (sealed.len() <= MAX_SEALED_BYTES).then(|| portal::set(app, COOKIE, &sealed, SECONDS)).transpose()
}

/// Returns the fields saved for this path.
pub(crate) fn load(app: &App, headers: &HeaderMap, path: &str) -> Option<Fields> {
    let sealed = portal::cookie(app, headers, COOKIE)?;
    let text = app.sealer.open(PURPOSE, sealed.reveal()).ok()?;
    let draft: Draft = serde_json::from_str(text.reveal()).ok()?;
    (draft.path == path).then_some(draft.fields)
}

/// Returns a cookie that deletes the saved fields.
pub(crate) fn forget(app: &App) -> Result<HeaderValue, ApiError> {
    portal::set(app, COOKIE, "", 0)
}
