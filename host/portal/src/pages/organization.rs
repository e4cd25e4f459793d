//! `/organization`: its name and address, how its members sign in, and what its repositories hold.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::activity;
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::organization::{self, Organization, Usage};
use packhouse_api::operations::sso;
use packhouse_app::sso::Settings;
use packhouse_identity::permissions::Permission::{ManageOwnerAccount, ManageRepositories};
use serde_json::{Value, json};

use super::tokens::choices;
use super::{Routes, permissions, policies, retention, webhooks};
use crate::confirm::{self, Deed, Outcome};
use crate::field::{Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, chart, dates, fault, parts};

/// Repositories that are shown with what they hold.
const ROWS: usize = 50;

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/organization", visit::page(show).merge(visit::form(act)))]
}

async fn show(seat: Arc<Seat>) -> Answer {
    if confirm::is_back(&seat) {
        return confirm::ask(&seat, &sign_in_deed(), &seat.form, None).await;
    }
    page(&seat, None).await
}

async fn page(seat: &Seat, wrong: Option<(&str, &ApiError)>) -> Answer {
    let of = |form: &str| wrong.filter(|(about, _)| *about == form).map(|(_, wrong)| wrong);
    let own = organization::show(&seat.actor).await?;
    let (owner, manages) = (seat.holds(ManageOwnerAccount), seat.holds(ManageRepositories));
    let body = html! {
        div.card {
            dl {
                dt { "Name" } dd { (parts::said(&own.row.name)) }
                dt { "Address for clients" } dd { code { (own.base_url) } }
                dt { "Since" } dd { (dates::time(own.row.created_at)) }
                dt { "Quota" } dd { @match own.row.quota_bytes { Some(bytes) => (parts::size(bytes)), None => "none" } }
            }
        }
        @if manages { (usage(&organization::usage(&seat.actor).await?)) (chart::activity(&activity::of_organization(&seat.actor).await?)) (retention::section(seat, None).await?) (policies::section(seat).await?) }
        @if owner { (webhooks::section(seat).await?) (own_form(seat, &own, of("own"))) (sso_form(seat, of("sso")).await?) }
    };
    let status = wrong.map_or(http::StatusCode::OK, |(_, wrong)| fault::status(wrong));
    Ok(frame::page(seat, Sheet { status, ..Sheet::of("Organization") }, &body))
}

fn usage(usage: &Usage) -> Markup {
    let mut largest: Vec<_> = usage.repositories.iter().collect();
    largest.sort_by_key(|row| std::cmp::Reverse(row.usage.bytes));
    let rows = html! {
        @for row in largest.iter().take(ROWS) {
            tr {
                th scope="row" { a href=(parts::repository(&row.name)) { (row.name) } }
                td.num { (parts::size(row.usage.bytes)) }
                td.num { (row.usage.packages) }
                td.num { (row.usage.versions) }
                td.num { (row.usage.downloads) }
            }
        }
    };
    html! {
        h2 { "Usage" }
        div.card {
            dl {
                dt { "Files" } dd { (parts::size(usage.bytes)) }
                dt { "Stored, each content once" } dd { (parts::size(usage.stored_bytes)) }
                dt { "Packages" } dd { (usage.packages) " in " (parts::count(usage.versions, "version", "versions")) }
                dt { "Downloads" } dd { (usage.downloads) }
            }
            (bars(&largest))
        }
        @if !largest.is_empty() { (parts::table("Usage by repository", &["Repository", "Size", "Packages", "Versions", "Downloads"], &rows)) }
    }
}

/// What the largest repositories hold, as a picture; the table beside it says the same.
fn bars(largest: &[&packhouse_store::UsageRow]) -> Markup {
    let most = largest.first().map_or(0, |row| row.usage.bytes);
    let shown: Vec<_> = largest.iter().filter(|row| row.usage.bytes > 0).take(12).collect();
    if shown.len() < 2 {
        return Markup::default();
    }
    let height = |bytes: u64| (bytes as f64 / most as f64 * 60.0).max(1.0);
    html! {
        svg.bars viewBox={ "0 0 " (shown.len() * 24) " 62" } preserveAspectRatio="xMinYMax meet" role="img" aria-label="Size of the largest repositories" {
            @for (at, row) in shown.iter().enumerate() {
                rect x=(at * 24 + 2) y=(format!("{:.1}", 61.0 - height(row.usage.bytes))) width="18" height=(format!("{:.1}", height(row.usage.bytes))) rx="2" { title { (row.name) } }
            }
        }
    }
}

fn sent<'a>(seat: &'a Seat, form: &str, none: &'a Fields) -> &'a Fields {
    if seat.form.text("do") == form { &seat.form } else { none }
}

fn own_form(seat: &Seat, own: &Organization, wrong: Option<&ApiError>) -> Markup {
    let none = Fields::default();
    let filled = Filled::new(sent(seat, "own", &none), wrong);
    let quota = own.row.quota_bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
    let name = Text { label: "Name", name: "name", required: true, first: &own.row.name, ..Text::default() };
    let quota = Text {
        label: "Quota (bytes)",
        name: "quota_bytes",
        kind: "number",
        hint: "What all repositories may hold together; empty for no bound.",
        first: &quota,
        ..Text::default()
    };
    html! {
        form.card method="post" action="/organization" {
            h2 { "Name and quota" }
            (parts::guard(seat))
            (parts::hidden("do", "own"))
            (filled.told(html! { (filled.text(name)) (filled.text(quota)) button.go type="submit" { "Save" } }))
        }
    }
}

async fn sso_form(seat: &Seat, wrong: Option<&ApiError>) -> Result<Markup, ApiError> {
    let known = match sso::show(&seat.actor).await {
        Ok(settings) => Some(settings),
        Err(error) if fault::status(&error) == http::StatusCode::NOT_FOUND => None,
        Err(error) => return Err(error),
    };
    let choices = choices(seat).await?;
    let held = match (&known, seat.form.text("do")) {
        (_, "sso") => seat.form.clone(),
        (Some(Settings { permissions: Some(permissions), .. }), _) => permissions::fields(permissions),
        _ => Fields::default(),
    };
    let filled = Filled::new(&held, wrong);
    let text = |of: fn(&Settings) -> String| known.as_ref().map(of).unwrap_or_default();
    let (issuer, client) = (text(|known| known.issuer.clone()), text(|known| known.client_id.clone()));
    let domains = text(|known| known.email_domains.join("\n"));
    let passwords = known.as_ref().is_none_or(|known| known.password_sign_in);
    let made = known.as_ref().is_some_and(|known| known.permissions.is_some());
    let fields = html! {
        (filled.text(Text { label: "Issuer", name: "issuer", kind: "url", hint: "The provider's address, exactly as its ID tokens name it.", required: true, first: &issuer, ..Text::default() }))
        (filled.text(Text { label: "Client ID", name: "client_id", required: true, first: &client, ..Text::default() }))
        (filled.text(Text { label: "Client secret", name: "client_secret", kind: "password", hint: "Left empty, it stays as it is.", autocomplete: "new-password", ..Text::default() }))
        (filled.lines("Domains of e-mail addresses", "email_domains", "Whose verified addresses may sign in, one to a line; left empty, those of members alone.", &domains))
        (filled.check("Members may still sign in by password", "password_sign_in", passwords))
        (filled.check("Make a member of whoever signs in first, with the permissions below", "makes_members", made))
        details { summary { "Permissions of members made so" } (permissions::section(seat, &filled, &choices)) }
        button.go type="submit" { "Save" }
    };
    let remove = html! { button.bad type="submit" { "Remove" } };
    Ok(html! {
        form.card method="post" action="/organization" {
            h2 { "Sign-in by a provider" }
            p { "OpenID Connect. Register this address with the provider: " code { (sso::callback_url(&seat.actor)) } }
            (parts::guard(seat))
            (parts::hidden("do", "sso"))
            (parts::hidden("sent", "yes"))
            (filled.told(fields))
        }
        @if known.is_some() {
            div.card.danger { h2 { "No provider" } p { "Members sign in by password alone." } (parts::deed(seat, "/organization", &[("do", "no-sso")], &remove)) }
        }
    })
}

async fn act(seat: Arc<Seat>) -> Answer {
    let deed = seat.form.text("do");
    let done = match deed {
        "sso" if seat.form.has("filter") => return page(&seat, None).await,
        "sso" => set_sso(&seat).await,
        "no-sso" => {
            confirm::then(&seat, sign_in_deed(), async |confirmation| {
                sso::remove(&seat.actor, confirmation).await
            })
            .await
        }
        _ => change(&seat).await.map(Outcome::Done),
    };
    match done {
        Ok(Outcome::Done(())) => confirm::spent(&seat, see_other("/organization?done=saved")),
        Ok(Outcome::Asked(page)) => Ok(page),
        Err(error) => {
            let wrong = visit::wrong(&seat, error)?;
            page(&seat, Some((if deed == "sso" { "sso" } else { "own" }, &wrong))).await
        }
    }
}

async fn change(seat: &Seat) -> Result<(), ApiError> {
    let quota = match seat.form.text("quota_bytes") {
        "" => Value::Null,
        text => text.parse::<u64>().map_or_else(|_| text.into(), Value::from),
    };
    let change = forms::organization_change(json!({"name": seat.form.text("name"), "quota_bytes": quota}))?;
    organization::change(&seat.actor, change).await.map(drop)
}

fn sign_in_deed() -> Deed<'static> {
    let what = html! { p { "How members sign in changes once you have confirmed that it is you." } };
    Deed { action: Action::ChangeSignIn, title: "Confirm the change of the sign-in", what }
}

async fn set_sso(seat: &Seat) -> Result<Outcome<()>, ApiError> {
    let form = &seat.form;
    let domains: Value = form.text("email_domains").split_whitespace().map(Value::from).collect();
    let made = form.has("makes_members");
    let secret = form.get("client_secret").filter(|text| !text.is_empty());
    let body = json!({
        "issuer": form.text("issuer"), "client_id": form.text("client_id"), "client_secret": secret,
        "email_domains": domains, "password_sign_in": form.has("password_sign_in"),
        "permissions": if made { permissions::body(form) } else { Value::Null },
    });
    let request = forms::sso(&seat.actor.app, body)?;
    confirm::then(seat, sign_in_deed(), async |confirmation| {
        sso::set(&seat.actor, confirmation, request).await.map(drop)
    })
    .await
}
