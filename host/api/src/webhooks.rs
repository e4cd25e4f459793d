//! Webhooks: addresses that are told of events.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_store::{Delivery, DeliveryId, DeliveryState, Try, WebhookId, WebhookRow};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::Answer;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error_response::ErrorBody;
use crate::operations::confirmations::Action;
use crate::operations::webhooks::{self, MadeWebhook};
use crate::paging::{self, Page};

pub(crate) mod bodies;

use bodies::{ChangeWebhook, CreateWebhook, ReachBody};

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<Described> {
    vec![
        routes!(create),
        routes!(list),
        routes!(show),
        routes!(change),
        routes!(remove),
        routes!(test),
        routes!(deliveries),
        routes!(redeliver),
    ]
}

/// A webhook.
#[derive(Serialize, ToSchema)]
pub(crate) struct WebhookView {
    id: String,
    url: String,
    /// Names of events.
    events: Vec<&'static str>,
    /// Ids, or `*` for every repository.
    #[schema(value_type = ReachBody)]
    repositories: Value,
    /// `active` or `paused`.
    state: &'static str,
    /// In ms since 1970; null while it is active.
    paused_at: Option<i64>,
    /// Why, where the server paused it.
    paused_because: Option<String>,
    /// Since when so much waits for it that it is not told of what happens now, in ms since 1970; null: it is told.
    full_at: Option<i64>,
    /// An e-mail.
    created_by: String,
    /// In ms since 1970.
    created_at: i64,
}

impl From<WebhookRow> for WebhookView {
    fn from(row: WebhookRow) -> WebhookView {
        let repositories = row.repositories.map_or_else(
            || json!("*"),
            |ids| ids.iter().map(|id| Value::from(id.to_string())).collect::<Vec<Value>>().into(),
        );
        WebhookView {
            id: row.id.to_string(),
            url: row.url,
            events: row.events.iter().map(|kind| kind.name()).collect(),
            repositories,
            state: if row.active { "active" } else { "paused" },
            paused_at: row.paused_at,
            paused_because: row.paused_because,
            full_at: row.full_at,
            created_by: row.created_by,
            created_at: row.created_at,
        }
    }
}

/// A webhook that was just made, with its secret.
#[derive(Serialize, ToSchema)]
pub(crate) struct MadeWebhookView {
    #[serde(flatten)]
    webhook: WebhookView,
    /// `whsec_` and base64: with it the signatures of what is sent are checked. It is told this once.
    secret: String,
}

/// An event on its way to a webhook, or there.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeliveryView {
    id: String,
    /// What is sent as `webhook-id`, and as the event's `id`.
    event_id: String,
    /// The event's name.
    #[serde(rename = "type")]
    kind: String,
    /// `pending`, `delivered` or `failed`.
    state: &'static str,
    /// When the event happened, in ms since 1970.
    at: i64,
    /// The first first; the last fifty.
    tries: Vec<TryView>,
}

/// One try to send it.
#[derive(Serialize, ToSchema)]
pub(crate) struct TryView {
    /// In ms since 1970.
    at: i64,
    /// Of the answer; null where there was none.
    status: Option<u16>,
    /// The first KiB of its body.
    answer: Option<String>,
    /// Why there was no answer, or why it does not count.
    error: Option<String>,
}

impl From<Delivery> for DeliveryView {
    fn from(delivery: Delivery) -> DeliveryView {
        let tries = delivery.tries.into_iter();
        DeliveryView {
            id: delivery.id.to_string(),
            event_id: packhouse_app::webhooks::wire_id(delivery.event),
            kind: delivery.kind,
            state: match delivery.state {
                DeliveryState::Pending => "pending",
                DeliveryState::Delivered => "delivered",
                DeliveryState::Failed => "failed",
            },
            at: delivery.at,
            tries: tries
                .map(|Try { at, status, answer, error }| TryView { at, status, answer, error })
                .collect(),
        }
    }
}

/// Makes a webhook.
#[utoipa::path(post, path = "/v1/webhooks", operation_id = "create_webhook",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-confirmation" = json!(Action::ManageWebhooks))),
    request_body = CreateWebhook,
    responses((status = 201, body = MadeWebhookView), (status = 409, body = ErrorBody)))]
async fn create(mut call: Call) -> Answer {
    let body: CreateWebhook = call.body()?;
    call.only(&[])?;
    let confirmation = call.confirmation(body.confirmation_token.as_ref());
    let made = webhooks::create(call.actor()?, &confirmation, body.request()?).await?;
    let MadeWebhook { row, secret } = made;
    let view = MadeWebhookView { webhook: row.into(), secret: secret.reveal().to_owned() };
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// Lists the organization's webhooks.
#[utoipa::path(get, path = "/v1/webhooks", operation_id = "list_webhooks",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount)))),
    params(("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<WebhookView>)))]
async fn list(call: Call) -> Answer {
    call.only(&["limit", "after"])?;
    let listed = webhooks::list(call.actor()?, paging::request::<WebhookId>(&call)?).await?;
    Ok(Json(Page::of(listed, |row| row.id.to_string(), WebhookView::from)).into_response())
}

/// Shows a webhook.
#[utoipa::path(get, path = "/v1/webhooks/{id}", operation_id = "show_webhook",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount)))),
    params(("id" = String, Path)),
    responses((status = 200, body = WebhookView)))]
async fn show(call: Call) -> Answer {
    call.only(&[])?;
    let found = webhooks::find(call.actor()?, call.path("id")).await?;
    Ok(Json(WebhookView::from(found)).into_response())
}

/// Changes a webhook. One that is `active` again is told all that has waited for it.
#[utoipa::path(patch, path = "/v1/webhooks/{id}", operation_id = "change_webhook",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount)))),
    params(("id" = String, Path)),
    request_body = ChangeWebhook,
    responses((status = 200, body = WebhookView)))]
async fn change(mut call: Call) -> Answer {
    let body: ChangeWebhook = call.body()?;
    call.only(&[])?;
    let changed = webhooks::change(call.actor()?, call.path("id"), body.request()?).await?;
    Ok(Json(WebhookView::from(changed)).into_response())
}

/// Deletes a webhook, with what waits for it and what is known of what it was told.
#[utoipa::path(delete, path = "/v1/webhooks/{id}", operation_id = "delete_webhook",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount)))),
    params(("id" = String, Path)),
    responses((status = 204)))]
async fn remove(call: Call) -> Answer {
    call.only(&[])?;
    webhooks::remove(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Sends a webhook an event of the type `webhook.test`, once, also one that is paused. The answer does not wait for that.
#[utoipa::path(post, path = "/v1/webhooks/{id}/test", operation_id = "test_webhook",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount)))),
    params(("id" = String, Path)),
    responses((status = 202, body = DeliveryView), (status = 429, body = ErrorBody)))]
async fn test(call: Call) -> Answer {
    call.only(&[])?;
    let sent = webhooks::test(call.actor()?, call.path("id")).await?;
    Ok((StatusCode::ACCEPTED, Json(DeliveryView::from(sent))).into_response())
}

/// Lists what a webhook was told and what waits for it, the newest first.
#[utoipa::path(get, path = "/v1/webhooks/{id}/deliveries", operation_id = "list_webhook_deliveries",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount)))),
    params(("id" = String, Path),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<DeliveryView>)))]
async fn deliveries(call: Call) -> Answer {
    call.only(&["limit", "after"])?;
    let page = paging::request::<DeliveryId>(&call)?;
    let listed = webhooks::deliveries(call.actor()?, call.path("id"), page).await?;
    Ok(Json(Page::of(listed, |delivery| delivery.id.to_string(), DeliveryView::from)).into_response())
}

/// Has a delivery sent at once: one that waits to be tried again is tried now, one that is done goes out once more.
#[utoipa::path(post, path = "/v1/webhooks/{id}/deliveries/{delivery}/redelivery",
    operation_id = "redeliver_webhook_delivery",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount)))),
    params(("id" = String, Path), ("delivery" = String, Path)),
    responses((status = 202, body = DeliveryView)))]
async fn redeliver(call: Call) -> Answer {
    call.only(&[])?;
    let sent = webhooks::redeliver(call.actor()?, call.path("id"), call.path("delivery")).await?;
    Ok((StatusCode::ACCEPTED, Json(DeliveryView::from(sent))).into_response())
}
