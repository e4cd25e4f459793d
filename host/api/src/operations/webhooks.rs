//! Webhooks, and the deliveries of events to them. All operations need manage-owner-account.

use packhouse_app::webhooks::purpose;
use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_identity::{Secret, mint_webhook_secret};
use packhouse_store::{
    Delivery, DeliveryId, EventKind, MAX_WEBHOOKS, NewWebhook, RepositoryId, WebhookChange, WebhookId,
    WebhookRow,
};
use packhouse_wire::catalogue;
use serde_json::json;
use url::Url;

use super::confirmations::{Action, Confirmation};
use super::{Actor, PageRequest, RowPage};
use crate::error::ApiError;

/// Changes to a webhook; `None` leaves a field unchanged.
#[derive(Clone, Debug, Default)]
pub struct WebhookRequest {
    pub url: Option<Url>,
    pub events: Option<Vec<EventKind>>,
    /// Repositories whose events it receives; the inner `None` means all.
    pub repositories: Option<Option<Vec<RepositoryId>>>,
    pub active: Option<bool>,
}

pub struct MadeWebhook {
    pub row: WebhookRow,
    /// Secret, shown only this once.
    pub secret: Secret,
}

/// New webhook before its checks.
#[derive(Clone, Debug)]
pub struct NewWebhookRequest {
    pub url: Url,
    pub events: Vec<EventKind>,
    /// Repositories whose events it receives; `None` for all.
    pub repositories: Option<Vec<RepositoryId>>,
}

/// Creates a webhook. 400 if its address is not allowed or a repository does not exist; 409
/// `too_many_webhooks`.
pub async fn create(
    actor: &Actor,
    confirmation: &Confirmation,
    request: NewWebhookRequest,
) -> Result<MadeWebhook, ApiError> {
    confirmation.judge(actor, Action::ManageWebhooks).await?;
    actor.needs(ManageOwnerAccount)?;
    let NewWebhookRequest { url, events, repositories } = request;
    check_address(actor, &url)?;
    check_repositories(actor, repositories.as_deref()).await?;
    let store = &actor.app.store;
    let (id, secret) = (store.new_webhook_id(), mint_webhook_secret());
    let sealed = actor.app.sealer.seal(&purpose(id), &secret);
    let sealed = sealed.map_err(|error| ApiError::Internal(error.into()))?;
    let event = actor.event("create_webhook", id.to_string());
    let new = NewWebhook { url: url.into(), events, repositories, created_by: actor.name().to_owned() };
    let made = store.create_webhook(actor.organization(), id, new, &sealed, Some(event)).await?;
    let row = made.ok_or_else(|| ApiError::with(&catalogue::TOO_MANY_WEBHOOKS, &MAX_WEBHOOKS.to_string()))?;
    Ok(MadeWebhook { row, secret })
}

/// Returns a page of webhooks.
pub async fn list(actor: &Actor, page: PageRequest<WebhookId>) -> Result<RowPage<WebhookRow>, ApiError> {
    actor.needs(ManageOwnerAccount)?;
    let found = actor.app.store.list_webhooks(actor.organization(), page.after, page.one_further()).await?;
    Ok(page.cut(found))
}

pub async fn find(actor: &Actor, id: &str) -> Result<WebhookRow, ApiError> {
    actor.needs(ManageOwnerAccount)?;
    let id = id.parse::<WebhookId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_webhook(actor.organization(), id).await?;
    row.ok_or_else(|| ApiError::from(&catalogue::NOT_FOUND))
}

/// Changes a webhook. When it becomes active again, it receives all waiting events.
pub async fn change(actor: &Actor, id: &str, request: WebhookRequest) -> Result<WebhookRow, ApiError> {
    let row = find(actor, id).await?;
    let WebhookRequest { url, events, repositories, active } = request;
    if let Some(url) = &url {
        check_address(actor, url)?;
    }
    check_repositories(actor, repositories.as_ref().and_then(Option::as_deref)).await?;
    let change = WebhookChange { url: url.map(String::from), events, repositories, active };
    let event = actor.event("change_webhook", row.id.to_string());
    let changed = actor.app.store.change_webhook(row.organization, row.id, change, Some(event)).await?;
    changed.ok_or_else(|| ApiError::from(&catalogue::NOT_FOUND))
}

/// Deletes a webhook with its waiting events.
pub async fn remove(actor: &Actor, id: &str) -> Result<(), ApiError> {
    let row = find(actor, id).await?;
    let event = actor.event("delete_webhook", row.id.to_string());
    if actor.app.store.delete_webhook(row.organization, row.id, Some(event)).await? {
        Ok(())
    } else {
        Err(ApiError::from(&catalogue::NOT_FOUND))
    }
}

/// Sends a test event to a webhook, once, even if it is paused. 429 if many test events are
/// waiting.
pub async fn test(actor: &Actor, id: &str) -> Result<Delivery, ApiError> {
    let row = find(actor, id).await?;
    let event = actor.event("test_webhook", row.id.to_string());
    let data = json!({"webhook": row.id.to_string(), "asked_by": actor.name()});
    let sent = actor.app.store.test_webhook(row.id, row.id.to_string(), &data, Some(event)).await?;
    sent.ok_or_else(|| ApiError::from(&catalogue::RATE_LIMITED))
}

/// Returns a page of a webhook's deliveries and waiting events, newest first.
pub async fn deliveries(
    actor: &Actor,
    id: &str,
    page: PageRequest<DeliveryId>,
) -> Result<RowPage<Delivery>, ApiError> {
    let row = find(actor, id).await?;
    let found = actor.app.store.list_deliveries(row.id, page.after, page.one_further()).await?;
    Ok(page.cut(found))
}

/// Sends a waiting delivery at once, or a finished one again.
pub async fn redeliver(actor: &Actor, id: &str, delivery: &str) -> Result<Delivery, ApiError> {
    let row = find(actor, id).await?;
    let delivery = delivery.parse::<DeliveryId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let event = actor.event("redeliver_webhook", format!("{}/{delivery}", row.id));
    let sent = actor.app.store.redeliver(row.id, delivery, Some(event)).await?;
    sent.ok_or_else(|| ApiError::from(&catalogue::NOT_FOUND))
}

/// Checks that a webhook may have this address; otherwise 400. The addresses of a host name are
/// checked when it is resolved for a connection.
fn check_address(actor: &Actor, url: &Url) -> Result<(), ApiError> {
    let judged = actor.app.receivers.check(url);
    judged.map_err(|error| ApiError::invalid(&format!("`url`: {error}.")))
}

/// Checks that these are repositories of the organization; otherwise 400.
async fn check_repositories(actor: &Actor, ids: Option<&[RepositoryId]>) -> Result<(), ApiError> {
    let Some(ids) = ids else { return Ok(()) };
    let found = actor.app.store.find_repositories(actor.organization(), ids).await?;
    if found.len() == ids.len() {
        Ok(())
    } else {
        Err(ApiError::invalid("`repositories` lists a repository that does not exist, or lists one twice."))
    }
}
