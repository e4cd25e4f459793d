//! `/subscribers`, `/subscriber-groups` and the page of each one, with its access keys.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::{PageRequest, key_owners};
use packhouse_identity::permissions::Permission::ManageSubscribers;
use packhouse_store::{KeyOwnerId, KeyOwnerKind, KeyOwnerRow};
use serde_json::{Value, json};

use super::repositories::{ROWS, after};
use super::tokens::choices;
use super::{Routes, access_keys};
use crate::field::{Choice, Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, dates, fault, parts};

/// Maximum number of subscribers that a group's page lists.
const MAX_SUBSCRIBERS: u32 = 1000;

pub(super) fn routes() -> Routes {
    vec![
        (
            "/subscribers",
            visit::page(|ctx| list(ctx, KeyOwnerKind::Subscriber))
                .merge(visit::form(|ctx| create(ctx, KeyOwnerKind::Subscriber))),
        ),
        (
            "/subscriber-groups",
            visit::page(|ctx| list(ctx, KeyOwnerKind::Group))
                .merge(visit::form(|ctx| create(ctx, KeyOwnerKind::Group))),
        ),
        (
            "/subscribers/{id}",
            visit::page(|ctx| show(ctx, KeyOwnerKind::Subscriber))
                .merge(visit::form(|ctx| act(ctx, KeyOwnerKind::Subscriber))),
        ),
        (
            "/subscriber-groups/{id}",
            visit::page(|ctx| show(ctx, KeyOwnerKind::Group))
                .merge(visit::form(|ctx| act(ctx, KeyOwnerKind::Group))),
        ),
    ]
}

/// Texts and path that differ between subscribers and groups.
struct Words {
    path: &'static str,
    many: &'static str,
    new: &'static str,
    button: &'static str,
    none: &'static str,
    empty: &'static str,
}

fn words(kind: KeyOwnerKind) -> Words {
    match kind {
        KeyOwnerKind::Subscriber => Words {
            path: "/subscribers",
            many: "Subscribers",
            new: "New subscriber",
            button: "Create subscriber",
            none: "No subscribers yet",
            empty: "A subscriber is somebody outside your organization, such as a customer. You choose the repositories that subscribers can read. They read them with access keys of their own.",
        },
        KeyOwnerKind::Group => Words {
            path: "/subscriber-groups",
            many: "Subscriber groups",
            new: "New subscriber group",
            button: "Create subscriber group",
            none: "No subscriber groups yet",
            empty: "A group gives all its subscribers access to the same repositories. It can have its own access keys.",
        },
    }
}

async fn list(ctx: Arc<PageContext>, kind: KeyOwnerKind) -> PageResult {
    listed(&ctx, kind, None).await
}

async fn listed(ctx: &PageContext, kind: KeyOwnerKind, wrong: Option<&ApiError>) -> PageResult {
    let page = PageRequest { limit: ROWS, after: after::<KeyOwnerId>(ctx)? };
    let listed = key_owners::list(&ctx.actor, kind, page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|row| row.id.to_string());
    let Words { path, many, new, button, none, empty } = words(kind);
    let (one_of, many_of) = match kind {
        KeyOwnerKind::Subscriber => ("subscriber", "subscribers"),
        KeyOwnerKind::Group => ("subscriber group", "subscriber groups"),
    };
    let filled = Filled::new(&ctx.form, wrong);
    let fields = html! { (own_fields(ctx, kind, &filled, None).await?) button.go type="submit" { (button) } };
    let body = html! {
        @if listed.rows.is_empty() { div.card.empty { h2 { (none) } p { (empty) } } } @else {
            (parts::list_length(ctx, listed.rows.len(), listed.more, one_of, many_of))
            ul.rows { @for row in &listed.rows { li { (one(path, row)) } } }
        }
        (parts::next_page_link(path, &[], next.as_deref()))
        form.card method="post" action=(path) { h2 { (new) } (parts::form_tokens(ctx)) (filled.with_error(fields)) }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, ..Sheet::of(many) }, &body))
}

fn one(path: &str, row: &KeyOwnerRow) -> Markup {
    html! {
        div.what {
            a href={ (path) "/" (row.id) } { (parts::isolated(&row.name)) }
            p.meta {
                @if let Some(email) = &row.email { span { (parts::isolated(email)) } }
                (parts::count(row.repositories.len() as u64, "repository", "repositories"))
                @if !row.subscribers.is_empty() { (parts::count(row.subscribers.len() as u64, "subscriber", "subscribers")) }
                span { "since " (dates::time(row.created_at)) }
            }
        }
    }
}

/// Builds the form fields of a subscriber or group. `row` is the existing subscriber or group;
/// `None` for a new one.
async fn own_fields(
    ctx: &PageContext,
    kind: KeyOwnerKind,
    filled: &Filled<'_>,
    row: Option<&KeyOwnerRow>,
) -> Result<Markup, ApiError> {
    let first = row.map(|row| row.name.as_str()).unwrap_or_default();
    let name = Text { label: "Name", name: "name", required: true, first, ..Text::default() };
    let email = row.and_then(|row| row.email.as_deref()).unwrap_or_default();
    let email = Text {
        label: "E-mail",
        name: "email",
        kind: "email",
        hint: "Contact address of the subscriber (optional).",
        first: email,
        ..Text::default()
    };
    let repositories = choices(ctx).await?;
    let subscribers = match kind {
        KeyOwnerKind::Subscriber => Vec::new(),
        KeyOwnerKind::Group => subscribers(ctx).await?,
    };
    Ok(html! {
        (filled.text(name))
        @if kind == KeyOwnerKind::Subscriber { (filled.text(email)) }
        (filled.checks("Repositories", "repositories", &repositories, "Access keys can read these repositories."))
        @if kind == KeyOwnerKind::Group { (filled.checks("Subscribers", "subscribers", &subscribers, "")) }
    })
}

async fn subscribers(ctx: &PageContext) -> Result<Vec<Choice>, ApiError> {
    let page = PageRequest { limit: MAX_SUBSCRIBERS, after: None };
    let listed = key_owners::list(&ctx.actor, KeyOwnerKind::Subscriber, page).await?;
    let choice = |row: KeyOwnerRow| Choice { value: row.id.to_string(), label: row.name };
    Ok(listed.rows.into_iter().map(choice).collect())
}

/// Converts the form to the body of the API call.
fn body(kind: KeyOwnerKind, form: &Fields) -> Value {
    let (name, repositories) = (form.text("name"), form.list("repositories"));
    match kind {
        KeyOwnerKind::Subscriber => {
            json!({"name": name, "email": form.or_null("email"), "repositories": repositories})
        }
        KeyOwnerKind::Group => {
            json!({"name": name, "subscribers": form.list("subscribers"), "repositories": repositories})
        }
    }
}

async fn create(ctx: Arc<PageContext>, kind: KeyOwnerKind) -> PageResult {
    if ctx.form.has("filter") {
        return listed(&ctx, kind, None).await;
    }
    let made = async {
        let request = forms::key_owner(kind, true, body(kind, &ctx.form))?;
        key_owners::create(&ctx.actor, kind, request).await
    };
    match made.await {
        Ok(row) => Ok(see_other(&format!("{}/{}?done=created", words(kind).path, row.id))),
        Err(error) if ctx.holds(ManageSubscribers) => {
            listed(&ctx, kind, Some(&visit::form_error(&ctx, error)?)).await
        }
        Err(error) => Err(error),
    }
}

async fn show(ctx: Arc<PageContext>, kind: KeyOwnerKind) -> PageResult {
    let row = key_owners::find(&ctx.actor, kind, ctx.named("id")).await?;
    match access_keys::action_page(&ctx, kind, &row).await? {
        Some(page) => Ok(page),
        None => detail_page(&ctx, kind, &row, None).await,
    }
}

async fn detail_page(
    ctx: &PageContext,
    kind: KeyOwnerKind,
    row: &KeyOwnerRow,
    wrong: Option<(&str, &ApiError)>,
) -> PageResult {
    let of = |form: &str| wrong.filter(|(about, _)| *about == form).map(|(_, wrong)| wrong);
    let Words { path, many, .. } = words(kind);
    let mut held: Vec<(String, String)> =
        row.repositories.iter().map(|id| ("repositories".to_owned(), id.to_string())).collect();
    held.extend(row.subscribers.iter().map(|id| ("subscribers".to_owned(), id.to_string())));
    let held = if ctx.form.text("do") == "save" { ctx.form.clone() } else { Fields(held) };
    let filled = Filled::new(&held, of("save"));
    let fields = own_fields(ctx, kind, &filled, Some(row)).await?;
    let body = html! {
        (access_keys::section(ctx, kind, row, of("create")).await?)
        form.card method="post" action=(ctx.path) {
            h2 { "Name and access" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "save"))
            (filled.with_error(html! { (fields) button.go type="submit" { "Save" } }))
        }
        div.card.danger {
            h2 { "Delete" }
            p { "All its access keys stop working immediately." }
            (parts::two_step_button(ctx, &ctx.path, &[("do", "delete")], "Delete", ""))
        }
    };
    let crumbs = html! { p.crumbs { a href=(path) { (many) } } };
    let status = wrong.map_or(http::StatusCode::OK, |(_, wrong)| fault::status(wrong));
    Ok(frame::page(ctx, Sheet { status, crumbs, ..Sheet::of(&row.name) }, &body))
}

async fn act(ctx: Arc<PageContext>, kind: KeyOwnerKind) -> PageResult {
    let id = ctx.named("id");
    let row = key_owners::find(&ctx.actor, kind, id).await?;
    match ctx.form.text("do") {
        "save" if ctx.form.has("filter") => detail_page(&ctx, kind, &row, None).await,
        "save" => {
            let saved = async {
                let request = forms::key_owner(kind, false, body(kind, &ctx.form))?;
                key_owners::change(&ctx.actor, kind, id, request).await
            };
            match saved.await {
                Ok(_) => Ok(see_other(&format!("{}?done=saved", ctx.path))),
                Err(error) => {
                    let wrong = visit::form_error(&ctx, error)?;
                    detail_page(&ctx, kind, &row, Some(("save", &wrong))).await
                }
            }
        }
        "delete" => {
            key_owners::remove(&ctx.actor, kind, id).await?;
            Ok(see_other(&format!("{}?done=deleted", words(kind).path)))
        }
        "create" => match access_keys::create(&ctx, kind, &row).await {
            Ok(answer) => Ok(answer),
            Err(error) => {
                let wrong = visit::form_error(&ctx, error)?;
                detail_page(&ctx, kind, &row, Some(("create", &wrong))).await
            }
        },
        action => access_keys::act(&ctx, kind, action).await,
    }
}
