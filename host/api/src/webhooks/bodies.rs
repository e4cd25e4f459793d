//! Bodies that create and change webhooks.

use packhouse_store::{EventKind, RepositoryId};
use serde::Deserialize;
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::fields::{Field, given};
use crate::operations::webhooks::{NewWebhookRequest, WebhookRequest};

/// Maximum length of an address in bytes.
const ADDRESS: usize = 2048;
/// Maximum number of listed repositories.
const REPOSITORIES: usize = 1_000;

/// Ids of repositories, or `*` for all.
#[derive(Deserialize, ToSchema)]
#[schema(as = WebhookReach)]
#[serde(untagged)]
#[allow(dead_code, reason = "only the OpenAPI description uses it")]
pub(crate) enum ReachBody {
    /// `*`.
    All(String),
    /// Ids.
    Only(Vec<String>),
}

/// A new webhook.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateWebhook {
    /// An http or https address that is public or in a network that the operator allows.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    url: Field,
    /// Names of events, at least one.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Vec<String>, required)]
    events: Field,
    /// Ids of repositories, or `*` for all present and future ones. Events without a repository are
    /// always delivered.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = ReachBody, required)]
    repositories: Field,
    /// Confirmation token for the action `manage_webhooks`, valid for five minutes. The header
    /// `X-Confirmation-Token` may carry it instead.
    #[schema(value_type = Option<String>)]
    pub(super) confirmation_token: Option<Value>,
}

/// Changes to a webhook.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeWebhook {
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    url: Field,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    events: Field,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<ReachBody>)]
    repositories: Field,
    /// `active` or `paused`.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    state: Field,
}

impl CreateWebhook {
    pub(crate) fn request(self) -> Result<NewWebhookRequest, ApiError> {
        let missing = |field: &str| ApiError::invalid(&format!("`{field}` is missing."));
        Ok(NewWebhookRequest {
            url: url(self.url.as_ref().ok_or_else(|| missing("url"))?)?,
            events: events(self.events.as_ref().ok_or_else(|| missing("events"))?)?,
            repositories: reach(self.repositories.as_ref().ok_or_else(|| missing("repositories"))?)?,
        })
    }
}

impl ChangeWebhook {
    pub(crate) fn request(self) -> Result<WebhookRequest, ApiError> {
        Ok(WebhookRequest {
            url: self.url.as_ref().map(url).transpose()?,
            events: self.events.as_ref().map(events).transpose()?,
            repositories: self.repositories.as_ref().map(reach).transpose()?,
            active: match self.state.as_ref().map(Value::as_str) {
                None => None,
                Some(Some("active")) => Some(true),
                Some(Some("paused")) => Some(false),
                Some(_) => return Err(ApiError::invalid("`state` must be `active` or `paused`.")),
            },
        })
    }
}

fn url(value: &Value) -> Result<Url, ApiError> {
    let wrong = || {
        ApiError::invalid(
            "`url` must be an http or https address, for example https://hooks.example/packages, of at \
             most 2048 characters, without a user name, a password or a fragment.",
        )
    };
    let text = value.as_str().filter(|text| text.len() <= ADDRESS).ok_or_else(wrong)?;
    let url: Url = text.parse().map_err(|_| wrong())?;
    let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    let sound = plain && matches!(url.scheme(), "http" | "https") && url.host().is_some();
    if sound { Ok(url) } else { Err(wrong()) }
}

fn events(value: &Value) -> Result<Vec<EventKind>, ApiError> {
    let wrong = || {
        let names: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
        ApiError::invalid(&format!(
            "`events` must be a list of at least one of {}, each at most once.",
            names.join(", ")
        ))
    };
    let names = value.as_array().filter(|names| !names.is_empty()).ok_or_else(wrong)?;
    let mut events: Vec<EventKind> = Vec::with_capacity(names.len().min(EventKind::ALL.len()));
    for name in names {
        let kind = name.as_str().and_then(EventKind::of).ok_or_else(wrong)?;
        if events.contains(&kind) {
            return Err(wrong());
        }
        events.push(kind);
    }
    Ok(events)
}

/// Reads the repositories; `None` means all.
fn reach(value: &Value) -> Result<Option<Vec<RepositoryId>>, ApiError> {
    let wrong = || ApiError::invalid("`repositories` must be a list of ids, or \"*\".");
    if value == "*" {
        return Ok(None);
    }
    let ids = value.as_array().filter(|ids| (1..=REPOSITORIES).contains(&ids.len())).ok_or_else(wrong)?;
    // A malformed id matches nothing.
    let unknown =
        || ApiError::invalid("`repositories` lists a repository that does not exist, or lists one twice.");
    let id = |id: &Value| id.as_str().ok_or_else(wrong)?.parse::<RepositoryId>().map_err(|_| unknown());
    let mut ids: Vec<RepositoryId> = ids.iter().map(id).collect::<Result<_, _>>()?;
    ids.sort_unstable();
    if ids.windows(2).any(|two| matches!(two, [one, other] if one == other)) {
        return Err(unknown());
    }
    Ok(Some(ids))
}
