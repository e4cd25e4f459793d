//! Webhooks: who is told of which events, and how that went. All of it needs manage-owner-account.

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
use super::{Actor, Listed, PageRequest};
use crate::error::ApiError;

/// What is to be another of a webhook, or all of a new one; none: as it is.
#[derive(Clone, Debug, Default)]
pub struct WebhookRequest {
    /// Where it listens.
    pub url: Option<Url>,
    /// What it is told of.
    pub events: Option<Vec<EventKind>>,
    /// About which repositories; within: none for all.
    pub repositories: Option<Option<Vec<RepositoryId>>>,
    /// Whether it is told.
    pub active: Option<bool>,
}

/// A webhook that was just made.
pub struct MadeWebhook {
    /// Its row.
    pub row: WebhookRow,
    /// Its secret, told this once.
    pub secret: Secret,
}

/// A webhook that is wanted.
#[derive(Clone, Debug)]
pub struct WantedWebhook {
    /// Where it listens.
    pub url: Url,
    /// What it is told of.
    pub events: Vec<EventKind>,
    /// About which repositories; none for all.
    pub repositories: Option<Vec<RepositoryId>>,
}

/// Makes a webhook. 400 where it may not be at its address, or names a repository that is not there; 409 `too_many_webhooks`.
pub async fn create(
    actor: &Actor,
    confirmation: &Confirmation,
    wanted: WantedWebhook,
) -> Result<MadeWebhook, ApiError> {
    confirmation.judge(actor, Action::ManageWebhooks).await?;
    actor.needs(ManageOwnerAccount)?;
    let WantedWebhook { url, events, repositories } = wanted;
    check_address(actor, &url)?;
    check_repositories(actor, repositories.as_deref()).await?;
    let store = &actor.app.store;
    let (id, secret) = (store.new_webhook_id(), mint_webhook_secret());
    let sealed = actor.app.sealer.seal(&purpose(id), &secret);
    let sealed = sealed.map_err(|error| ApiError::Internal(error.into()))?;
    let event = actor.event("create_webhook", id.to_string());
    let new = NewWebhook { url: url.into(), events, repositories, created_by: actor.member().email.clone() };
    let made = store.create_webhook(actor.organization(), id, new, &sealed, Some(event)).await?;
    let row = made.ok_or_else(|| ApiError::with(&catalogue::TOO_MANY_WEBHOOKS, &MAX_WEBHOOKS.to_string()))?;
    Ok(MadeWebhook { row, secret })
}

/// A page of them.
pub async fn list(actor: &Actor, page: PageRequest<WebhookId>) -> Result<Listed<WebhookRow>, ApiError> {
    actor.needs(ManageOwnerAccount)?;
    let found = actor.app.store.list_webhooks(actor.organization(), page.after, page.one_further()).await?;
    Ok(page.cut(found))
}

/// The one of this id.
pub async fn find(actor: &Actor, id: &str) -> Result<WebhookRow, ApiError> {
    actor.needs(ManageOwnerAccount)?;
    let id = id.parse::<WebhookId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_webhook(actor.organization(), id).await?;
    row.ok_or_else(|| ApiError::from(&catalogue::NOT_FOUND))
}

/// Changes the one of this id. One that is told again is told all that has waited for it.
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

/// Deletes the one of this id, with what waits for it.
pub async fn remove(actor: &Actor, id: &str) -> Result<(), ApiError> {
    let row = find(actor, id).await?;
    let event = actor.event("delete_webhook", row.id.to_string());
    if actor.app.store.delete_webhook(row.organization, row.id, Some(event)).await? {
        Ok(())
    } else {
        Err(ApiError::from(&catalogue::NOT_FOUND))
    }
}

/// Sends the one of this id an event of no consequence, once, whether it is paused or not. 429 where many such are to come.
pub async fn test(actor: &Actor, id: &str) -> Result<Delivery, ApiError> {
    let row = find(actor, id).await?;
    let event = actor.event("test_webhook", row.id.to_string());
    let data = json!({"webhook": row.id.to_string(), "asked_by": actor.member().email});
    let sent = actor.app.store.test_webhook(row.id, row.id.to_string(), &data, Some(event)).await?;
    sent.ok_or_else(|| ApiError::from(&catalogue::RATE_LIMITED))
}

/// What the one of this id was told and is to be told, the newest first.
pub async fn deliveries(
    actor: &Actor,
    id: &str,
    page: PageRequest<DeliveryId>,
) -> Result<Listed<Delivery>, ApiError> {
    let row = find(actor, id).await?;
    let found = actor.app.store.list_deliveries(row.id, page.after, page.one_further()).await?;
    Ok(page.cut(found))
}

/// Has one of these sent at once, or once more.
pub async fn redeliver(actor: &Actor, id: &str, delivery: &str) -> Result<Delivery, ApiError> {
    let row = find(actor, id).await?;
    let delivery = delivery.parse::<DeliveryId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let event = actor.event("redeliver_webhook", format!("{}/{delivery}", row.id));
    let sent = actor.app.store.redeliver(row.id, delivery, Some(event)).await?;
    sent.ok_or_else(|| ApiError::from(&catalogue::NOT_FOUND))
}

/// 400 where a webhook may not be at this address, as far as it shows: a name is judged when it is connected to.
fn check_address(actor: &Actor, url: &Url) -> Result<(), ApiError> {
    let judged = actor.app.receivers.check(url);
    judged.map_err(|error| ApiError::invalid(&format!("`url`: {error}.")))
}

/// 400 unless these are repositories of the organization.
async fn check_repositories(actor: &Actor, ids: Option<&[RepositoryId]>) -> Result<(), ApiError> {
    let Some(ids) = ids else { return Ok(()) };
    let found = actor.app.store.find_repositories(actor.organization(), ids).await?;
    if found.len() == ids.len() {
        Ok(())
    } else {
        Err(ApiError::invalid("`repositories` names one that is not there, or one twice."))
    }
}
