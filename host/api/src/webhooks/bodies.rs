//! The bodies that make and change webhooks.

use packhouse_store::{EventKind, RepositoryId};
use serde::Deserialize;
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::fields::{Field, given};
use crate::operations::webhooks::{WantedWebhook, WebhookRequest};

/// Characters of an address.
const ADDRESS: usize = 2048;
/// Repositories that are named.
const REPOSITORIES: usize = 1_000;

/// Ids of repositories, or `*` for all there are.
#[derive(Deserialize, ToSchema)]
#[schema(as = WebhookReach)]
#[serde(untagged)]
#[allow(dead_code, reason = "for the description alone")]
pub(crate) enum ReachBody {
    /// `*`.
    All(String),
    /// Ids.
    Only(Vec<String>),
}

/// A webhook to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateWebhook {
    /// http or https, at a public address, or in a network that the operator allows.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    url: Field,
    /// Names of events, at least one.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Vec<String>, required)]
    events: Field,
    /// Ids of repositories, or `*` for all there are and will be. What is about no repository is told in any case.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = ReachBody, required)]
    repositories: Field,
    /// Of the action `manage_webhooks`; good for five minutes. The header `X-Confirmation-Token` will do as well.
    #[schema(value_type = Option<String>)]
    pub(super) confirmation_token: Option<Value>,
}

/// What is to be another of a webhook.
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
    pub(crate) fn request(self) -> Result<WantedWebhook, ApiError> {
        let missing = |field: &str| ApiError::invalid(&format!("`{field}` is missing."));
        Ok(WantedWebhook {
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
                Some(_) => return Err(ApiError::invalid("`state` is `active` or `paused`.")),
            },
        })
    }
}

fn url(value: &Value) -> Result<Url, ApiError> {
    let wrong = || {
        ApiError::invalid(
            "`url` is an address as https://hooks.example/packages: http or https, of at most 2048 characters, without a name, a \
             password or a fragment in it.",
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
        ApiError::invalid(&format!("`events` is a list of at least one of {}, each once.", names.join(", ")))
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

/// None: all.
fn reach(value: &Value) -> Result<Option<Vec<RepositoryId>>, ApiError> {
    let wrong = || ApiError::invalid("`repositories` is a list of ids, or \"*\".");
    if value == "*" {
        return Ok(None);
    }
    let ids = value.as_array().filter(|ids| (1..=REPOSITORIES).contains(&ids.len())).ok_or_else(wrong)?;
    // What cannot be an id names nothing.
    let unknown = || ApiError::invalid("`repositories` names one that is not there, or one twice.");
    let id = |id: &Value| id.as_str().ok_or_else(wrong)?.parse::<RepositoryId>().map_err(|_| unknown());
    let mut ids: Vec<RepositoryId> = ids.iter().map(id).collect::<Result<_, _>>()?;
    ids.sort_unstable();
    if ids.windows(2).any(|two| matches!(two, [one, other] if one == other)) {
        return Err(unknown());
    }
    Ok(Some(ids))
}
