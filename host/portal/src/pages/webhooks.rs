//! `/organization/webhooks` and the page of each: where it listens, what it is told of, and how that went.

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
use crate::confirm::{self, Deed, Outcome};
use crate::field::{Choice, Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, dates, fault, parts};

/// Where the webhooks are.
const PATH: &str = "/organization/webhooks";
/// Webhooks that another page shows.
const SHOWN: u32 = 50;
/// Deliveries of one page.
const DELIVERIES: u32 = 25;
/// Characters of an answer that are shown.
const BEGINNING: usize = 200;

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![
        (PATH, visit::page(list).merge(visit::form(create))),
        ("/organization/webhooks/{id}", visit::page(show).merge(visit::form(act))),
    ]
}

/// The webhooks on a page of something else.
pub(super) async fn section(seat: &Seat) -> Result<Markup, ApiError> {
    if !seat.holds(ManageOwnerAccount) {
        return Ok(Markup::default());
    }
    let listed = webhooks::list(&seat.actor, PageRequest { limit: SHOWN, after: None }).await?;
    Ok(html! {
        h2 { "Webhooks" }
        div.card {
            @if listed.rows.is_empty() { p { "Nobody is told of what happens here." } } @else { (rows(&listed.rows)) }
            p { a href=(PATH) { "All webhooks" } }
        }
    })
}

fn rows(hooks: &[WebhookRow]) -> Markup {
    html! {
        ul.rows {
            @for hook in hooks {
                li {
                    div.what {
                        a href={ (PATH) "/" (hook.id) } { (parts::said(&hook.url)) }
                        p.meta { (parts::tag(state(hook))) span { "made by " (parts::said(&hook.created_by)) " " (dates::time(hook.created_at)) } }
                    }
                }
            }
        }
    }
}

fn state(hook: &WebhookRow) -> &'static str {
    if hook.active { "active" } else { "paused" }
}

async fn list(seat: Arc<Seat>) -> Answer {
    if confirm::is_back(&seat) {
        return confirm::ask(&seat, &creating(&seat), &seat.form, None).await;
    }
    listed(&seat, None).await
}

async fn listed(seat: &Seat, wrong: Option<&ApiError>) -> Answer {
    let page = PageRequest { limit: ROWS, after: after::<WebhookId>(seat)? };
    let listed = webhooks::list(&seat.actor, page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|hook| hook.id.to_string());
    let filled = Filled::new(&seat.form, wrong);
    let fields = hook_fields(&filled, &choices(seat).await?);
    let body = html! {
        @if listed.rows.is_empty() {
            div.card.empty {
                h2 { "None yet" }
                p { "A webhook is an address of yours that is told of what happens: what was published or deleted, which token was made." }
            }
        } @else { (rows(&listed.rows)) }
        (parts::further(PATH, &[], next.as_deref()))
        form.card method="post" action=(PATH) {
            h2 { "New webhook" }
            (parts::guard(seat))
            (parts::hidden("sent", "yes"))
            (filled.told(html! { (fields) button.go type="submit" { "Create webhook" } }))
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    let crumbs = html! { p.crumbs { a href="/organization" { "Organization" } } };
    Ok(frame::page(seat, Sheet { status, crumbs, ..Sheet::of("Webhooks") }, &body))
}

fn hook_fields(filled: &Filled<'_>, repositories: &[Choice]) -> Markup {
    let events: Vec<Choice> = EventKind::ALL.iter().map(|kind| Choice::word(kind.name())).collect();
    html! {
        (filled.text(Text { label: "URL", name: "url", kind: "url", hint: "http or https. What is sent there is signed.", required: true, ..Text::default() }))
        (filled.checks("Events", "events", &events, ""))
        (filled.check("Every repository, also later ones", "every", false))
        (filled.checks("Repositories", "repositories", repositories, ""))
    }
}

/// What the form says, as the body of the call.
fn body(form: &Fields) -> Value {
    let repositories = if form.has("every") { json!("*") } else { form.list("repositories") };
    json!({"url": form.text("url"), "events": form.list("events"), "repositories": repositories})
}

/// A webhook as its form was filled in.
fn fields(hook: &WebhookRow) -> Fields {
    let mut fields = vec![("sent".to_owned(), "yes".to_owned()), ("url".to_owned(), hook.url.clone())];
    fields.extend(hook.events.iter().map(|kind| ("events".to_owned(), kind.name().to_owned())));
    match &hook.repositories {
        None => fields.push(("every".to_owned(), "yes".to_owned())),
        Some(ids) => fields.extend(ids.iter().map(|id| ("repositories".to_owned(), id.to_string()))),
    }
    Fields(fields)
}

async fn create(seat: Arc<Seat>) -> Answer {
    if seat.form.has("filter") {
        return listed(&seat, None).await;
    }
    let made = async {
        let wanted = forms::webhook(body(&seat.form))?;
        confirm::then(&seat, creating(&seat), async |confirmation| {
            webhooks::create(&seat.actor, confirmation, wanted).await
        })
        .await
    };
    match made.await {
        Ok(Outcome::Done(made)) => confirm::spent(&seat, created(&seat, &made)),
        Ok(Outcome::Asked(page)) => Ok(page),
        Err(error) if seat.holds(ManageOwnerAccount) => {
            listed(&seat, Some(&visit::wrong(&seat, error)?)).await
        }
        Err(error) => Err(error),
    }
}

fn creating(seat: &Seat) -> Deed<'static> {
    let what = html! { p { "The webhook to " strong { (parts::said(seat.form.text("url"))) } " is created once you have confirmed that it is you." } };
    Deed { action: Action::ManageWebhooks, title: "Confirm the new webhook", what }
}

/// The page that shows the secret, this once.
fn created(seat: &Seat, made: &MadeWebhook) -> http::Response<axum::body::Body> {
    let body = html! {
        div.card {
            h2 { (parts::said(&made.row.url)) }
            p { "With this secret the receiver checks the signatures of what it is sent. It is shown this once." }
            (parts::secret(made.secret.reveal()))
            p { a href={ (PATH) "/" (made.row.id) } { "Go on to the webhook" } }
        }
    };
    let crumbs =
        html! { p.crumbs { a href="/organization" { "Organization" } " " a href=(PATH) { "Webhooks" } } };
    frame::page(seat, Sheet { crumbs, ..Sheet::of("Webhook created") }, &body)
}

async fn show(seat: Arc<Seat>) -> Answer {
    let hook = webhooks::find(&seat.actor, seat.named("id")).await?;
    shown(&seat, &hook, None).await
}

/// The page of one.
async fn shown(seat: &Seat, hook: &WebhookRow, wrong: Option<&ApiError>) -> Answer {
    let page = PageRequest { limit: DELIVERIES, after: after::<DeliveryId>(seat)? };
    let listed = webhooks::deliveries(&seat.actor, &hook.id.to_string(), page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|delivery| delivery.id.to_string());
    let saving = seat.form.text("do") == "save";
    let held = if saving { seat.form.clone() } else { fields(hook) };
    let filled = Filled::new(&held, wrong.filter(|_| saving));
    let form = hook_fields(&filled, &choices(seat).await?);
    let deed = |name: &str, button: Markup| parts::deed(seat, &seat.path, &[("do", name)], &button);
    let body = html! {
        @if let Some(wrong) = wrong.filter(|_| !saving) { (parts::alert(wrong.message())) }
        div.card {
            p {
                (parts::tag(state(hook))) " "
                @if hook.active { "It is told of what happens." }
                @else if let Some(because) = &hook.paused_because { (because) " What happens is kept for it." }
                @else { "What happens is kept for it." }
                @if hook.full_at.is_some() { " So much waits for it that it is not told of what happens now." }
            }
            div.bar {
                (deed("test", html! { button type="submit" { "Test" } }))
                @if hook.active { (deed("pause", html! { button type="submit" { "Pause" } })) }
                @else { (deed("resume", html! { button.go type="submit" { "Resume" } })) }
            }
        }
        h2 { "Deliveries" }
        @if listed.rows.is_empty() { div.card { p { "Nothing happened yet that it is told of." } } }
        @else { (deliveries(seat, &listed.rows)) }
        (parts::further(&seat.path, &[], next.as_deref()))
        form.card method="post" action=(seat.path) {
            h2 { "What it is told" }
            (parts::guard(seat))
            (parts::hidden("do", "save"))
            (parts::hidden("sent", "yes"))
            (filled.told(html! { (form) button.go type="submit" { "Save" } }))
        }
        div.card.danger {
            h2 { "Delete" }
            p { "It is told nothing more, also of what happened already." }
            (parts::deed_in_two_steps(seat, &seat.path, &[("do", "delete")], "Delete", ""))
        }
    };
    let crumbs =
        html! { p.crumbs { a href="/organization" { "Organization" } " " a href=(PATH) { "Webhooks" } } };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(seat, Sheet { status, crumbs, ..Sheet::of("Webhook") }, &body))
}

fn deliveries(seat: &Seat, deliveries: &[Delivery]) -> Markup {
    let rows = html! {
        @for delivery in deliveries {
            tr {
                th scope="row" { (delivery.kind) }
                td.tight { (dates::time(delivery.at)) }
                td { (parts::tag(word(delivery.state))) }
                td.num { (delivery.tries.len()) }
                td { (last_answer(delivery)) }
                td {
                    (parts::deed(seat, &seat.path, &[("do", "again"), ("delivery", &delivery.id.to_string())],
                        &html! { button type="submit" { "Send again " span.away { (delivery.kind) " " (delivery.id) } } }))
                }
            }
        }
    };
    parts::table("Deliveries", &["Event", "Happened", "State", "Tries", "Last answer", "Again"], &rows)
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
    let told = last.answer.as_deref().or(last.error.as_deref()).unwrap_or_default();
    let beginning: String = told.chars().take(BEGINNING).collect();
    html! {
        @if let Some(status) = last.status { (status) " " }
        (parts::said(&beginning))
    }
}

async fn act(seat: Arc<Seat>) -> Answer {
    let id = seat.named("id");
    let hook = webhooks::find(&seat.actor, id).await?;
    let active = |active| WebhookRequest { active: Some(active), ..WebhookRequest::default() };
    let done = match seat.form.text("do") {
        "save" if seat.form.has("filter") => return shown(&seat, &hook, None).await,
        "test" => webhooks::test(&seat.actor, id).await.map(drop),
        "pause" => webhooks::change(&seat.actor, id, active(false)).await.map(drop),
        "resume" => webhooks::change(&seat.actor, id, active(true)).await.map(drop),
        "again" => webhooks::redeliver(&seat.actor, id, seat.form.text("delivery")).await.map(drop),
        "delete" => {
            webhooks::remove(&seat.actor, id).await?;
            return Ok(see_other(&format!("{PATH}?done=deleted")));
        }
        _ => match forms::webhook_change(body(&seat.form)) {
            Ok(request) => webhooks::change(&seat.actor, id, request).await.map(drop),
            Err(error) => Err(error),
        },
    };
    match done {
        Ok(()) => Ok(see_other(&format!("{}?done=saved", seat.path))),
        Err(error) => shown(&seat, &hook, Some(&visit::wrong(&seat, error)?)).await,
    }
}
