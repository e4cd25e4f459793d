//! `/repositories/new`.

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
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, fault, parts};

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/repositories/new", visit::page(show).merge(visit::form(create)))]
}

async fn show(seat: Arc<Seat>) -> Answer {
    seat.actor.needs(ManageRepositories)?;
    loaded::all(&seat.actor.app)?;
    form(&seat, None).await
}

async fn form(seat: &Seat, wrong: Option<&ApiError>) -> Answer {
    let current = seat.actor.app.runtime.current();
    let plugins = current.plugins();
    let formats: Vec<Choice> =
        plugins.iter().map(|plugin| Choice::word(&plugin.description().format)).collect();
    let mut kinds: Vec<String> =
        plugins.iter().flat_map(|plugin| plugin.description().kinds.clone()).collect();
    kinds.sort_by_key(|kind| ["hosted", "proxy", "group"].iter().position(|known| known == kind));
    kinds.dedup();
    let kinds: Vec<Choice> =
        kinds.iter().map(|kind| Choice { value: kind.clone(), label: kind_in_words(kind) }).collect();
    let reachable = reachable(seat).await?;
    let members = reachable
        .iter()
        .filter(|row| row.kind != "group")
        .map(|row| Choice { value: row.id.to_string(), label: format!("{} ({})", row.name, row.format) });
    let members: Vec<Choice> = members.collect();
    let filled = Filled::new(&seat.form, wrong);
    let name = Text {
        label: "Name",
        name: "name",
        hint: "Lower-case letters, digits, and single . _ - between them. It stands in the repository's address and stays.",
        required: true,
        ..Text::default()
    };
    let upstream = Text {
        label: "Upstream",
        name: "upstream",
        kind: "url",
        hint: "Of a proxy: the address that it fetches from.",
        ..Text::default()
    };
    let fields = html! {
        (filled.text(name))
        (filled.select("Format", "format", &formats, ""))
        (filled.select("Kind", "kind", &kinds, "hosted"))
        div data-of-kind="proxy" { (filled.text(upstream)) }
        div data-of-kind="group" {
            (filled.checks("Members", "members", &members, "Of a group: hosted and proxy repositories of the same format. Their order can be changed in its settings."))
        }
        button.go type="submit" { "Create repository" }
    };
    let body = html! {
        form.card method="post" action="/repositories/new" { (parts::guard(seat)) (filled.told(fields)) }
    };
    let crumbs = html! { p.crumbs { a href="/repositories" { "Repositories" } } };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(seat, Sheet { status, crumbs, ..Sheet::of("New repository") }, &body))
}

fn kind_in_words(kind: &str) -> String {
    match kind {
        "hosted" => "hosted: holds what you publish".to_owned(),
        "proxy" => "proxy: fetches from elsewhere, and keeps it".to_owned(),
        "group" => "group: shows several as one".to_owned(),
        other => other.to_owned(),
    }
}

async fn create(seat: Arc<Seat>) -> Answer {
    if seat.form.has("filter") {
        return form(&seat, None).await;
    }
    let made = async {
        let new = forms::repository(&seat.actor.app, body(&seat))?;
        repositories::create(&seat.actor, new).await
    };
    match made.await {
        // The first thing that a new repository is for is a client.
        Ok(row) => Ok(see_other(&format!("{}/connection?done=created", parts::repository(&row.name)))),
        Err(error) if seat.holds(ManageRepositories) => {
            let wrong = visit::wrong(&seat, error)?;
            form(&seat, Some(&wrong)).await
        }
        Err(error) => Err(error),
    }
}

/// What the form says, as the body of the call. A part of another kind than is chosen is not shown, and says nothing.
fn body(seat: &Seat) -> Value {
    let kind = seat.form.text("kind");
    let mut body = json!({"name": seat.form.text("name"), "format": seat.form.text("format"), "kind": kind});
    if let Some(fields) = body.as_object_mut() {
        if kind == "proxy" {
            fields.insert("upstream".to_owned(), json!({"url": seat.form.text("upstream")}));
        }
        if kind == "group" {
            fields.insert("members".to_owned(), seat.form.list("members"));
        }
    }
    body
}
