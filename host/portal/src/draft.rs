//! What was filled in and must outlive a way through the sign-in: sealed, in a cookie of this browser, for ten minutes. It holds no
//! password of the member's own.

use http::{HeaderMap, HeaderValue};
use packhouse_api::error::ApiError;
use packhouse_api::portal;
use packhouse_app::App;
use packhouse_identity::Secret;
use serde::{Deserialize, Serialize};

use crate::fields::Fields;

const DRAFT: &str = "packhouse_draft";
/// For what it is sealed.
const PURPOSE: &str = "portal draft";
/// How long it is kept, in seconds.
const SECONDS: i64 = 10 * 60;
/// The most that a cookie may hold; browsers refuse more than 4096 bytes with its name and attributes.
const MOST: usize = 3800;
/// Fields that are never kept.
const NEVER: [&str; 4] = ["csrf", "once", "password", "current_password"];

/// A form that was filled in.
#[derive(Deserialize, Serialize)]
struct Draft {
    /// The page's path.
    path: String,
    fields: Fields,
}

/// The cookie that keeps a form of this path; none where it is too large for one.
pub(crate) fn keep(app: &App, path: &str, fields: &Fields) -> Result<Option<HeaderValue>, ApiError> {
    let fields = fields.0.iter().filter(|(name, _)| !NEVER.contains(&name.as_str())).cloned().collect();
    let draft = Draft { path: path.to_owned(), fields: Fields(fields) };
    let text = serde_json::to_string(&draft).map_err(anyhow::Error::from)?;
    let sealed = app.sealer.seal(PURPOSE, &Secret::new(text)).map_err(anyhow::Error::from)?;
    (sealed.len() <= MOST).then(|| portal::set(app, DRAFT, &sealed, SECONDS)).transpose()
}

/// What was filled in at this path.
pub(crate) fn kept(app: &App, headers: &HeaderMap, path: &str) -> Option<Fields> {
    let sealed = portal::cookie(app, headers, DRAFT)?;
    let text = app.sealer.open(PURPOSE, sealed.reveal()).ok()?;
    let draft: Draft = serde_json::from_str(text.reveal()).ok()?;
    (draft.path == path).then_some(draft.fields)
}

/// Takes the cookie away.
pub(crate) fn forget(app: &App) -> Result<HeaderValue, ApiError> {
    portal::set(app, DRAFT, "", 0)
}
