//! `/webhooks` and the page of each webhook: its URL, its events and its deliveries.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::PageRequest;
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::webhooks::{self, MadeWebhook, WebhookRequest};
use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_store::{Delivery, DeliveryId, DeliveryState, EventKind, WebhookId, WebhookRow};
use serde_json::{Value, json};

use super::Routes;
use super::repositories::{ROWS, after};
use super::tokens::choices;
use crate::confirm::{self, ConfirmationPrompt, ConfirmedOutcome};
use crate::field::{Choice, Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, dates, fault, parts};

/// Path of the list of webhooks.
const PATH: &str = "/webhooks";
const DELIVERIES: u32 = 25;
/// Maximum characters of a response on the page.
const BEGINNING: usize = 200;

pub(super) fn routes() -> Routes {
    vec![
        (PATH, visit::page(list).merge(visit::form(create))),
        ("/webhooks/{id}", visit::page(show).merge(visit::form(act))),
    ]
}

fn rows(hooks: &[WebhookRow]) -> Markup {
    html! {
        ul.rows {
            @for hook in hooks {
                li {
                    div.what {
                        a href={ (PATH) "/" (hook.id) } { (parts::isolated(&hook.url)) }
                        p.meta { (parts::tag(state(hook))) span { "created by " (parts::isolated(&hook.created_by)) " " (dates::time(hook.created_at)) } }
                    }
                }
            }
        }
    }
}

fn state(hook: &WebhookRow) -> &'static str {
    if hook.active { "active" } else { "paused" }
}

async fn list(ctx: Arc<PageContext>) -> PageResult {
    if confirm::returned_from_provider(&ctx) {
        return confirm::prompt_page(&ctx, &creation_prompt(&ctx), &ctx.form, None).await;
    }
    listed(&ctx, None).await
}

async fn listed(ctx: &PageContext, wrong: Option<&ApiError>) -> PageResult {
    let page = PageRequest { limit: ROWS, after: after::<WebhookId>(ctx)? };
    let listed = webhooks::list(&ctx.actor, page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|hook| hook.id.to_string());
    let filled = Filled::new(&ctx.form, wrong);
    let fields = hook_fields(&filled, &choices(ctx).await?);
    let body = html! {
        @if listed.rows.is_empty() {
            div.card.empty {
                h2 { "No webhooks yet" }
                p { "A webhook is an address of yours that receives events: which version was published or deleted, which token was created." }
            }
        } @else {
            (parts::list_length(ctx, listed.rows.len(), listed.more, "webhook", "webhooks"))
            (rows(&listed.rows))
        }
        (parts::next_page_link(PATH, &[], next.as_deref()))
        form.card method="post" action=(PATH) {
            h2 { "New webhook" }
            (parts::form_tokens(ctx))
            (parts::hidden("sent", "yes"))
            (filled.with_error(html! { (fields) button.go type="submit" { "Create webhook" } }))
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, ..Sheet::of("Webhooks") }, &body))
}

fn hook_fields(filled: &Filled<'_>, repositories: &[Choice]) -> Markup {
    let events: Vec<Choice> = EventKind::ALL.iter().map(|kind| Choice::word(kind.name())).collect();
    html! {
        (filled.text(Text { label: "URL", name: "url", kind: "url", hint: "An http or https URL. Packhouse signs every request that it sends there.", required: true, ..Text::default() }))
        (filled.checks("Events", "events", &events, ""))
        (filled.check("All repositories, including future ones", "every", false))
        (filled.checks("Repositories", "repositories", repositories, ""))
    }
}

/// Converts the form to the body of the API call.
fn body(form: &Fields) -> Value {
    let repositories = if form.has("every") { json!("*") } else { form.list("repositories") };
    json!({"url": form.text("url"), "events": form.list("events"), "repositories": repositories})
}

/// Converts a webhook to the fields of its form.
fn fields(hook: &WebhookRow) -> Fields {
    let mut fields = vec![("sent".to_owned(), "yes".to_owned()), ("url".to_owned(), hook.url.clone())];
    fields.extend(hook.events.iter().map(|kind| ("events".to_owned(), kind.name().to_owned())));
    match &hook.repositories {
        None => fields.push(("every".to_owned(), "yes".to_owned())),
        Some(ids) => fields.extend(ids.iter().map(|id| ("repositories".to_owned(), id.to_string()))),
    }
    Fields(fields)
}

async fn create(ctx: Arc<PageContext>) -> PageResult {
    if ctx.form.has("filter") {
        return listed(&ctx, None).await;
    }
    let made = async {
        let request = forms::webhook(body(&ctx.form))?;
        confirm::run(&ctx, creation_prompt(&ctx), async |confirmation| {
            webhooks::create(&ctx.actor, confirmation, request).await
        })
        .await
    };
    match made.await {
        Ok(ConfirmedOutcome::Done(made)) => confirm::finish(&ctx, created(&ctx, &made)),
        Ok(ConfirmedOutcome::Prompt(page)) => Ok(page),
        Err(error) if ctx.holds(ManageOwnerAccount) => {
            listed(&ctx, Some(&visit::form_error(&ctx, error)?)).await
        }
        Err(error) => Err(error),
    }
}

fn creation_prompt(ctx: &PageContext) -> ConfirmationPrompt<'static> {
    let what = html! { p { "The webhook to " strong { (parts::isolated(ctx.form.text("url"))) } " will be created after you confirm your identity." } };
    ConfirmationPrompt { action: Action::ManageWebhooks, title: "Confirm the new webhook", what }
}

/// Builds the page that shows the secret, only once.
fn created(ctx: &PageContext, made: &MadeWebhook) -> http::Response<axum::body::Body> {
    let body = html! {
        div.card {
            h2 { (parts::isolated(&made.row.url)) }
            p { "The receiver needs this secret to check the signatures of requests." }
            (parts::secret(made.secret.reveal()))
            p { a href={ (PATH) "/" (made.row.id) } { "Open the webhook" } }
        }
    };
    let crumbs = html! { p.crumbs { a href=(PATH) { "Webhooks" } } };
    frame::page(ctx, Sheet { crumbs, ..Sheet::of("Webhook created") }, &body)
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    let hook = webhooks::find(&ctx.actor, ctx.named("id")).await?;
    detail_page(&ctx, &hook, None).await
}

async fn detail_page(ctx: &PageContext, hook: &WebhookRow, wrong: Option<&ApiError>) -> PageResult {
    let page = PageRequest { limit: DELIVERIES, after: after::<DeliveryId>(ctx)? };
    let listed = webhooks::deliveries(&ctx.actor, &hook.id.to_string(), page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|delivery| delivery.id.to_string());
    let saving = ctx.form.text("do") == "save";
    let held = if saving { ctx.form.clone() } else { fields(hook) };
    let filled = Filled::new(&held, wrong.filter(|_| saving));
    let form = hook_fields(&filled, &choices(ctx).await?);
    let action = |name: &str, button: Markup| parts::action_button(ctx, &ctx.path, &[("do", name)], &button);
    let body = html! {
        @if let Some(wrong) = wrong.filter(|_| !saving) { (parts::alert(wrong.message())) }
        div.card {
            p {
                (parts::tag(state(hook))) " "
                @if hook.active { "The webhook receives events." }
                @else if let Some(because) = &hook.paused_because { (because) " Events are queued until you resume it." }
                @else { "Events are queued until you resume the webhook." }
                @if hook.full_at.is_some() { " The queue is full, so new events are lost." }
            }
            div.bar {
                (action("test", html! { button type="submit" { "Send test event" } }))
                @if hook.active { (action("pause", html! { button type="submit" { "Pause" } })) }
                @else { (action("resume", html! { button.go type="submit" { "Resume" } })) }
            }
        }
        h2 { "Deliveries" }
        @if listed.rows.is_empty() { div.card { p { "There are no deliveries yet." } } }
        @else { (deliveries(ctx, &listed.rows)) }
        (parts::next_page_link(&ctx.path, &[], next.as_deref()))
        form.card method="post" action=(ctx.path) {
            h2 { "URL and events" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "save"))
            (parts::hidden("sent", "yes"))
            (filled.with_error(html! { (form) button.go type="submit" { "Save" } }))
        }
        div.card.danger {
            h2 { "Delete" }
            p { "Deletes the webhook. Queued events are not delivered." }
            (parts::two_step_button(ctx, &ctx.path, &[("do", "delete")], "Delete", ""))
        }
    };
    let crumbs = html! { p.crumbs { a href=(PATH) { "Webhooks" } } };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, crumbs, ..Sheet::of("Webhook") }, &body))
}

fn deliveries(ctx: &PageContext, deliveries: &[Delivery]) -> Markup {
    let rows = html! {
        @for delivery in deliveries {
            tr {
                th scope="row" { (delivery.kind) }
                td.tight { (dates::time(delivery.at)) }
                td { (parts::tag(word(delivery.state))) }
                td.num { (delivery.tries.len()) }
                td { (last_answer(delivery)) }
                td {
                    (parts::action_button(ctx, &ctx.path, &[("do", "again"), ("delivery", &delivery.id.to_string())],
                        &html! { button type="submit" { "Send again " span.away { (delivery.kind) " " (delivery.id) } } }))
                }
            }
        }
    };
    parts::table("Deliveries", &["Event", "Time", "State", "Tries", "Last response", "Redeliver"], &rows)
}

fn word(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Pending => "pending",
        DeliveryState::Delivered => "delivered",
        DeliveryState::Failed => "failed",
    }
}

fn last_answer(delivery: &Delivery) -> Markup {
    let Some(last) = delivery.tries.last() else { return Markup::default() };
    let text = last.answer.as_deref().or(last.error.as_deref()).unwrap_or_default();
    let beginning: String = text.chars().take(BEGINNING).collect();
    html! {
        @if let Some(status) = last.status { (status) " " }
        (parts::isolated(&beginning))
    }
}

async fn act(ctx: Arc<PageContext>) -> PageResult {
    let id = ctx.named("id");
    let hook = webhooks::find(&ctx.actor, id).await?;
    let active = |active| WebhookRequest { active: Some(active), ..WebhookRequest::default() };
    let done = match ctx.form.text("do") {
        "save" if ctx.form.has("filter") => return detail_page(&ctx, &hook, None).await,
        "test" => webhooks::test(&ctx.actor, id).await.map(drop),
        "pause" => webhooks::change(&ctx.actor, id, active(false)).await.map(drop),
        "resume" => webhooks::change(&ctx.actor, id, active(true)).await.map(drop),
        "again" => webhooks::redeliver(&ctx.actor, id, ctx.form.text("delivery")).await.map(drop),
        "delete" => {
            webhooks::remove(&ctx.actor, id).await?;
            return Ok(see_other(&format!("{PATH}?done=deleted")));
        }
        _ => match forms::webhook_change(body(&ctx.form)) {
            Ok(request) => webhooks::change(&ctx.actor, id, request).await.map(drop),
            Err(error) => Err(error),
        },
    };
    match done {
        Ok(()) => Ok(see_other(&format!("{}?done=saved", ctx.path))),
        Err(error) => detail_page(&ctx, &hook, Some(&visit::form_error(&ctx, error)?)).await,
    }
}
