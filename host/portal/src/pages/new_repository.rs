//! `/repositories/new`: the form that creates a repository.

use std::sync::Arc;

use maud::html;
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::{loaded, repositories};
use packhouse_identity::permissions::Permission::ManageRepositories;
use serde_json::{Value, json};

use super::Routes;
use super::tokens::reachable;
use crate::field::{Choice, Filled, Text};
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, fault, parts};

pub(super) fn routes() -> Routes {
    vec![("/repositories/new", visit::page(show).merge(visit::form(create)))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    ctx.actor.needs(ManageRepositories)?;
    loaded::all(&ctx.actor.app)?;
    form(&ctx, None).await
}

async fn form(ctx: &PageContext, wrong: Option<&ApiError>) -> PageResult {
    let current = ctx.actor.app.runtime.current();
    let plugins = current.plugins();
    let formats: Vec<Choice> =
        plugins.iter().map(|plugin| Choice::word(&plugin.description().format)).collect();
    let mut kinds: Vec<String> =
        plugins.iter().flat_map(|plugin| plugin.description().kinds.clone()).collect();
    kinds.sort_by_key(|kind| ["hosted", "proxy", "group"].iter().position(|known| known == kind));
    kinds.dedup();
    let kinds: Vec<Choice> =
        kinds.iter().map(|kind| Choice { value: kind.clone(), label: kind_in_words(kind) }).collect();
    let reachable = reachable(ctx).await?;
    let members = reachable
        .iter()
        .filter(|row| row.kind != "group")
        .map(|row| Choice { value: row.id.to_string(), label: format!("{} ({})", row.name, row.format) });
    let members: Vec<Choice> = members.collect();
    let kind = Some(ctx.query.text("kind")).filter(|kind| !kind.is_empty()).unwrap_or("hosted");
    let filled = Filled::new(&ctx.form, wrong);
    let name = Text {
        label: "Name",
        name: "name",
        hint: "Lower-case letters and digits, with single . _ - between them. The name is part of the repository's address and cannot be changed later.",
        required: true,
        ..Text::default()
    };
    let upstream = Text {
        label: "Upstream",
        name: "upstream",
        kind: "url",
        hint: "For a proxy: the URL of the registry that it fetches from. It can be changed later.",
        ..Text::default()
    };
    let fields = html! {
        (filled.text(name))
        (filled.select_with_hint("Format", "format", &formats, ctx.query.text("format"), "What kind of packages it contains. The format cannot be changed later."))
        (filled.select_with_hint("Kind", "kind", &kinds, kind, "Where the packages come from. The kind cannot be changed later."))
        div data-of-kind="proxy" { (filled.text(upstream)) }
        div data-of-kind="group" {
            (filled.checks("Members", "members", &members, "For a group: hosted and proxy repositories of the same format. You can change their order in the settings."))
        }
        p.hint { "Everything else has a default that suits most repositories, and can be changed in the settings." }
        button.go type="submit" { "Create repository" }
    };
    let body = html! {
        form.card method="post" action="/repositories/new" { (parts::form_tokens(ctx)) (filled.with_error(fields)) }
    };
    let crumbs = html! { p.crumbs { a href="/repositories" { "Repositories" } } };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, crumbs, ..Sheet::of("New repository") }, &body))
}

fn kind_in_words(kind: &str) -> String {
    match kind {
        "hosted" => "hosted: stores what you publish".to_owned(),
        "proxy" => "proxy: fetches from another server and caches it".to_owned(),
        "group" => "group: combines several repositories".to_owned(),
        other => other.to_owned(),
    }
}

async fn create(ctx: Arc<PageContext>) -> PageResult {
    if ctx.form.has("filter") {
        return form(&ctx, None).await;
    }
    let made = async {
        let new = forms::repository(&ctx.actor.app, body(&ctx))?;
        repositories::create(&ctx.actor, new).await
    };
    match made.await {
        // The next step after creating a repository is to connect a client.
        Ok(row) => Ok(see_other(&format!("{}/connection?done=created", parts::repository(&row.name)))),
        Err(error) if ctx.holds(ManageRepositories) => {
            let wrong = visit::form_error(&ctx, error)?;
            form(&ctx, Some(&wrong)).await
        }
        Err(error) => Err(error),
    }
}

/// Converts the form to the body of the API call. The page hides the fields of the other repository
/// kinds, and this function ignores them.
fn body(ctx: &PageContext) -> Value {
    let kind = ctx.form.text("kind");
    let mut body = json!({"name": ctx.form.text("name"), "format": ctx.form.text("format"), "kind": kind});
    if let Some(fields) = body.as_object_mut() {
        if kind == "proxy" {
            fields.insert("upstream".to_owned(), json!({"url": ctx.form.text("upstream")}));
        }
        if kind == "group" {
            fields.insert("members".to_owned(), ctx.form.list("members"));
        }
    }
    body
}
