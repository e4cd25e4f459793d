//! Webhooks: addresses that receive events.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_store::{Delivery, DeliveryId, DeliveryState, Try, WebhookId, WebhookRow};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error_response::ErrorBody;
use crate::operations::confirmations::Action;
use crate::operations::webhooks::{self, MadeWebhook};
use crate::paging::{self, Page};
use crate::scope::Family;

pub(crate) mod bodies;

use bodies::{ChangeWebhook, CreateWebhook, ReachBody};

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
    /// Repository ids, or `*` for every repository.
    #[schema(value_type = ReachBody)]
    repositories: Value,
    /// `active` or `paused`.
    state: &'static str,
    /// Time in ms since 1970; null while it is active.
    paused_at: Option<i64>,
    /// Reason, if the server paused it.
    paused_because: Option<String>,
    /// Time in ms since 1970 since which its queue is full and new events are dropped; null if it
    /// is not full.
    full_at: Option<i64>,
    /// E-mail address of the creator.
    created_by: String,
    /// Time in ms since 1970.
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

/// A new webhook with its secret.
#[derive(Serialize, ToSchema)]
pub(crate) struct MadeWebhookView {
    #[serde(flatten)]
    webhook: WebhookView,
    /// Secret with which the receiver checks signatures: `whsec_` and base64. It is shown only
    /// once.
    secret: String,
}

/// A delivery of an event to a webhook.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeliveryView {
    id: String,
    /// Value of the header `webhook-id` and of the event's `id`.
    event_id: String,
    /// Name of the event.
    #[serde(rename = "type")]
    kind: String,
    /// `pending`, `delivered` or `failed`.
    state: &'static str,
    /// Time of the event, in ms since 1970.
    at: i64,
    /// The last fifty attempts, oldest first.
    tries: Vec<TryView>,
}

/// One delivery attempt.
#[derive(Serialize, ToSchema)]
pub(crate) struct TryView {
    /// Time in ms since 1970.
    at: i64,
    /// Status of the response; null without a response.
    status: Option<u16>,
    /// First KiB of the response body.
    answer: Option<String>,
    /// Reason why there was no response or why it does not count.
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

/// Creates a webhook.
#[utoipa::path(post, path = "/v1/webhooks", operation_id = "create_webhook",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-scope" = json!(Family::Webhooks)),
        ("x-confirmation" = json!(Action::ManageWebhooks))),
    request_body = CreateWebhook,
    responses((status = 201, body = MadeWebhookView), (status = 409, body = ErrorBody)))]
async fn create(mut call: Call) -> HandlerResult {
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
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-scope" = json!(Family::Webhooks))),
    params(("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<WebhookView>)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let listed = webhooks::list(call.actor()?, paging::request::<WebhookId>(&call)?).await?;
    Ok(Json(Page::of(listed, |row| row.id.to_string(), WebhookView::from)).into_response())
}

/// Returns a webhook.
#[utoipa::path(get, path = "/v1/webhooks/{id}", operation_id = "show_webhook",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-scope" = json!(Family::Webhooks))),
    params(("id" = String, Path)),
    responses((status = 200, body = WebhookView)))]
async fn show(call: Call) -> HandlerResult {
    call.only(&[])?;
    let found = webhooks::find(call.actor()?, call.path("id")).await?;
    Ok(Json(WebhookView::from(found)).into_response())
}

/// Changes a webhook. When it becomes `active` again, it receives all waiting events.
#[utoipa::path(patch, path = "/v1/webhooks/{id}", operation_id = "change_webhook",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-scope" = json!(Family::Webhooks))),
    params(("id" = String, Path)),
    request_body = ChangeWebhook,
    responses((status = 200, body = WebhookView)))]
async fn change(mut call: Call) -> HandlerResult {
    let body: ChangeWebhook = call.body()?;
    call.only(&[])?;
    let changed = webhooks::change(call.actor()?, call.path("id"), body.request()?).await?;
    Ok(Json(WebhookView::from(changed)).into_response())
}

/// Deletes a webhook with its waiting events and its deliveries.
#[utoipa::path(delete, path = "/v1/webhooks/{id}", operation_id = "delete_webhook",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-scope" = json!(Family::Webhooks))),
    params(("id" = String, Path)),
    responses((status = 204)))]
async fn remove(call: Call) -> HandlerResult {
    call.only(&[])?;
    webhooks::remove(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Sends an event of the type `webhook.test` to a webhook, once, even if it is paused. The response
/// does not wait for the delivery.
#[utoipa::path(post, path = "/v1/webhooks/{id}/test", operation_id = "test_webhook",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-scope" = json!(Family::Webhooks))),
    params(("id" = String, Path)),
    responses((status = 202, body = DeliveryView), (status = 429, body = ErrorBody)))]
async fn test(call: Call) -> HandlerResult {
    call.only(&[])?;
    let sent = webhooks::test(call.actor()?, call.path("id")).await?;
    Ok((StatusCode::ACCEPTED, Json(DeliveryView::from(sent))).into_response())
}

/// Lists the deliveries of a webhook and its waiting events, newest first.
#[utoipa::path(get, path = "/v1/webhooks/{id}/deliveries", operation_id = "list_webhook_deliveries",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-scope" = json!(Family::Webhooks))),
    params(("id" = String, Path),
        ("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<DeliveryView>)))]
async fn deliveries(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let page = paging::request::<DeliveryId>(&call)?;
    let listed = webhooks::deliveries(call.actor()?, call.path("id"), page).await?;
    Ok(Json(Page::of(listed, |delivery| delivery.id.to_string(), DeliveryView::from)).into_response())
}

/// Sends a delivery at once: a waiting one is retried now, a finished one is sent again.
#[utoipa::path(post, path = "/v1/webhooks/{id}/deliveries/{delivery}/redelivery",
    operation_id = "redeliver_webhook_delivery",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-scope" = json!(Family::Webhooks))),
    params(("id" = String, Path), ("delivery" = String, Path)),
    responses((status = 202, body = DeliveryView)))]
async fn redeliver(call: Call) -> HandlerResult {
    call.only(&[])?;
    let sent = webhooks::redeliver(call.actor()?, call.path("id"), call.path("delivery")).await?;
    Ok((StatusCode::ACCEPTED, Json(DeliveryView::from(sent))).into_response())
}
