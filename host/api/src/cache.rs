//! Cached responses of a proxy, and the credentials for its upstream.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_identity::Secret;
use packhouse_store::CacheEntry;
use packhouse_upstream::CountsView;
use packhouse_upstream::credentials::Credentials;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::OfObject;
use crate::error::ApiError;
use crate::fields::{Field, given};
use crate::operations::confirmations::Action;
use crate::operations::proxy_cache::{self, CachePage, CachePageRequest};
use crate::paging;
use crate::scope::Family;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(show), routes!(purge), routes!(set_credentials)]
}

/// A cached upstream response.
#[derive(Serialize, ToSchema)]
pub(crate) struct CacheEntryView {
    /// `GET` or `HEAD`.
    method: String,
    /// The requested path below the upstream's address, or a complete address.
    path: String,
    /// The upstream's status.
    status: u16,
    /// Size in bytes.
    size: u64,
    /// Time of arrival, in ms since 1970.
    fetched_at: i64,
    /// Time at which the upstream last confirmed it, in ms since 1970.
    validated_at: i64,
    /// Time of its last use, in ms since 1970; up to 30 s late.
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

/// A page of a proxy's cached responses, their total, and the results of requests since this server
/// started.
#[derive(Serialize, ToSchema)]
pub(crate) struct CacheView {
    items: Vec<CacheEntryView>,
    next: Option<String>,
    /// Number of cached responses.
    entries: u64,
    /// Size of all cached responses, in bytes.
    bytes: u64,
    counts: CountsView,
}

/// Lists the cached responses of a proxy, by path. Requires read access to the repository too,
/// because the list reveals its content.
#[utoipa::path(get, path = "/v1/repositories/{id}/cache", operation_id = "list_cache",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Repositories))),
    params(("id" = String, Path),
        ("path" = Option<String>, Query, description = "Only responses whose path begins with this text"),
        ("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = CacheView)))]
async fn show(call: Call) -> HandlerResult {
    call.only(&["path", "limit", "after"])?;
    let (limit, offset) = (paging::limit(&call)?, paging::after::<u32>(&call)?.unwrap_or_default());
    let request = CachePageRequest { prefix: call.query("path").unwrap_or_default(), offset, limit };
    let page = proxy_cache::list(call.actor()?, call.path("id"), request).await?;
    let CachePage { entries, more, total, bytes, counts } = page;
    let items = entries.into_iter().map(CacheEntryView::from).collect();
    let next = more.then(|| offset.saturating_add(limit).to_string());
    Ok(Json(CacheView { items, next, entries: total, bytes, counts }).into_response())
}

/// Removes the cached responses whose path begins with `path`; without `path`, all of them.
#[utoipa::path(delete, path = "/v1/repositories/{id}/cache", operation_id = "purge_cache",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Repositories))),
    params(("id" = String, Path), ("path" = Option<String>, Query, description = "Only responses whose path begins with this text")),
    responses((status = 204)))]
async fn purge(call: Call) -> HandlerResult {
    call.only(&["path"])?;
    proxy_cache::purge(call.actor()?, call.path("id"), call.query("path").unwrap_or_default()).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Credentials for a proxy's upstream.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpstreamCredentials {
    /// Account at the upstream; null removes the credentials.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, required)]
    username: Field,
    /// Password or token of the account.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, required)]
    password: Field,
    /// Address of a token service on another host that may receive them.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    token_realm: Field,
    /// Token from POST /v1/confirmations for `set_upstream_credentials`. The header
    /// X-Confirmation-Token may carry it instead.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    confirmation_token: Field,
}

/// Sets the credentials that a proxy sends to its upstream. They are stored encrypted and cannot be
/// read back.
#[utoipa::path(put, path = "/v1/repositories/{id}/upstream-credentials", operation_id = "set_upstream_credentials",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Repositories)),
        ("x-confirmation" = json!(Action::SetUpstreamCredentials))),
    params(("id" = String, Path)),
    request_body = UpstreamCredentials,
    responses((status = 204)))]
async fn set_credentials(mut call: Call) -> HandlerResult {
    let body: UpstreamCredentials = call.body()?;
    call.only(&[])?;
    let credentials = credentials(&body)?;
    let confirmation = call.confirmation(body.confirmation_token.as_ref());
    proxy_cache::set_credentials(call.actor()?, &confirmation, call.path("id"), credentials).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) fn credentials(body: &UpstreamCredentials) -> Result<Option<Credentials>, ApiError> {
    let text = |field: &Field| field.as_ref().and_then(Value::as_str).map(str::to_owned);
    let none = |field: &Field| field.as_ref().is_none_or(Value::is_null);
    if none(&body.username) && none(&body.password) {
        return Ok(None);
    }
    let (Some(username), Some(password)) = (text(&body.username), text(&body.password)) else {
        return Err(ApiError::invalid("`username` and `password` must be strings, or both null."));
    };
    if username.contains(':') || [&username, &password].iter().any(|text| text.chars().any(char::is_control))
    {
        return Err(ApiError::invalid(
            "`username` must not contain a colon; neither field may contain a control character.",
        ));
    }
    let token_realm = match (&body.token_realm, text(&body.token_realm)) {
        (None | Some(Value::Null), _) => None,
        (_, Some(address)) if address.parse::<Url>().is_ok_and(|url| url.has_host()) => Some(address),
        _ => return Err(ApiError::invalid("`token_realm` must be the address of a token service.")),
    };
    Ok(Some(Credentials { username, password: Secret::new(password), token_realm }))
}
