//! What a proxy keeps of its upstream, and the credentials that it may show there.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_identity::Secret;
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::CacheEntry;
use packhouse_upstream::CountsView;
use packhouse_upstream::credentials::Credentials;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;

use crate::Answer;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error::ApiError;
use crate::fields::{Field, given};
use crate::operations::confirmations::Action;
use crate::operations::proxy_cache::{self, Kept, KeptRequest};
use crate::paging;

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(show), routes!(purge), routes!(set_credentials)]
}

/// An answer of the upstream's that is kept.
#[derive(Serialize, ToSchema)]
pub(crate) struct CacheEntryView {
    /// `GET` or `HEAD`.
    method: String,
    /// What was asked for: below the upstream's address, or an address of its own.
    path: String,
    /// The upstream's status.
    status: u16,
    /// In bytes.
    size: u64,
    /// When it came, in ms since 1970.
    fetched_at: i64,
    /// When the upstream last said that it still holds.
    validated_at: i64,
    /// When it was last used; up to half a minute behind.
    last_used_at: i64,
}

impl From<CacheEntry> for CacheEntryView {
    fn from(entry: CacheEntry) -> CacheEntryView {
        CacheEntryView {
            method: entry.method,
            path: entry.target,
            status: entry.status,
            size: entry.size,
            fetched_at: entry.fetched_at,
            validated_at: entry.validated_at,
            last_used_at: entry.last_used_at,
        }
    }
}

/// A page of what a proxy keeps, how much that is in all, and what became of requests since this server started.
#[derive(Serialize, ToSchema)]
pub(crate) struct CacheView {
    items: Vec<CacheEntryView>,
    next: Option<String>,
    /// Answers in all.
    entries: u64,
    /// Their bytes.
    bytes: u64,
    counts: CountsView,
}

/// Lists what a proxy keeps, by its path. It tells what the repository holds, and so needs read there as well.
#[utoipa::path(get, path = "/v1/repositories/{id}/cache", operation_id = "list_cache",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path),
        ("path" = Option<String>, Query, description = "Only what begins so"),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = CacheView)))]
async fn show(call: Call) -> Answer {
    call.only(&["path", "limit", "after"])?;
    let (limit, offset) = (paging::limit(&call)?, paging::after::<u32>(&call)?.unwrap_or_default());
    let request = KeptRequest { prefix: call.query("path").unwrap_or_default(), offset, limit };
    let kept = proxy_cache::list(call.actor()?, call.path("id"), request).await?;
    let Kept { entries, more, total, bytes, counts } = kept;
    let items = entries.into_iter().map(CacheEntryView::from).collect();
    let next = more.then(|| offset.saturating_add(limit).to_string());
    Ok(Json(CacheView { items, next, entries: total, bytes, counts }).into_response())
}

/// Keeps no longer what begins with `path`: all of it where none is given.
#[utoipa::path(delete, path = "/v1/repositories/{id}/cache", operation_id = "purge_cache",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path), ("path" = Option<String>, Query, description = "Only what begins so")),
    responses((status = 204)))]
async fn purge(call: Call) -> Answer {
    call.only(&["path"])?;
    proxy_cache::purge(call.actor()?, call.path("id"), call.query("path").unwrap_or_default()).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Credentials for a proxy's upstream.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpstreamCredentials {
    /// The account there; null takes the credentials away.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, required)]
    username: Field,
    /// Its password or token.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, required)]
    password: Field,
    /// The address of a token service on another host that may see them.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    token_realm: Field,
    /// From POST /v1/confirmations for `set_upstream_credentials`; or in the header X-Confirmation-Token.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    confirmation_token: Field,
}

/// Sets the credentials that a proxy may show its upstream. They are sealed, and nothing gives them out again.
#[utoipa::path(put, path = "/v1/repositories/{id}/upstream-credentials", operation_id = "set_upstream_credentials",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-confirmation" = json!(Action::SetUpstreamCredentials))),
    params(("id" = String, Path)),
    request_body = UpstreamCredentials,
    responses((status = 204)))]
async fn set_credentials(mut call: Call) -> Answer {
    let body: UpstreamCredentials = call.body()?;
    call.only(&[])?;
    let credentials = credentials(&body)?;
    let confirmation = call.confirmation(body.confirmation_token.as_ref());
    proxy_cache::set_credentials(call.actor()?, &confirmation, call.path("id"), credentials).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) fn credentials(wanted: &UpstreamCredentials) -> Result<Option<Credentials>, ApiError> {
    let text = |field: &Field| field.as_ref().and_then(Value::as_str).map(str::to_owned);
    let none = |field: &Field| field.as_ref().is_none_or(Value::is_null);
    if none(&wanted.username) && none(&wanted.password) {
        return Ok(None);
    }
    let (Some(username), Some(password)) = (text(&wanted.username), text(&wanted.password)) else {
        return Err(ApiError::invalid("`username` and `password` are texts, or both null."));
    };
    if username.contains(':') || [&username, &password].iter().any(|text| text.chars().any(char::is_control))
    {
        return Err(ApiError::invalid("`username` is without a colon, and neither has a control character."));
    }
    let token_realm = match (&wanted.token_realm, text(&wanted.token_realm)) {
        (None | Some(Value::Null), _) => None,
        (_, Some(address)) if address.parse::<Url>().is_ok_and(|url| url.has_host()) => Some(address),
        _ => return Err(ApiError::invalid("`token_realm` is the address of a token service.")),
    };
    Ok(Some(Credentials { username, password: Secret::new(password), token_realm }))
}
