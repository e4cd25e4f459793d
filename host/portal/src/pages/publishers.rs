//! `/repositories/{name}/trusted-publishers`: workflows of build services that may publish here without a kept secret.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::{PageRequest, publishers, repositories};
use packhouse_store::{PublisherId, PublisherRow, RepositoryRow};
use serde_json::{Map, Value, json};

use super::Routes;
use super::repositories::{ROWS, after};
use super::repository::{named, sheet, tabs};
use crate::confirm::{self, Deed, Outcome};
use crate::field::{Choice, Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, dates, fault, parts};

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/repositories/{name}/trusted-publishers", visit::page(show).merge(visit::form(act)))]
}

fn path(row: &RepositoryRow) -> String {
    format!("{}/trusted-publishers", parts::repository(&row.name))
}

/// The way to the page, on that of the settings.
pub(super) fn section(row: &RepositoryRow) -> Markup {
    html! {
        h2 { "Trusted publishers" }
        div.card {
            p { "Workflows of GitHub, GitLab and others that may publish here without a kept secret." }
            p { a href=(path(row)) { "Trusted publishers" } }
        }
    }
}

async fn show(seat: Arc<Seat>) -> Answer {
    let row = managed(&seat).await?;
    if confirm::is_back(&seat) {
        return confirm::ask(&seat, &creating(&row), &seat.form, None).await;
    }
    page(&seat, &row, None).await
}

async fn managed(seat: &Seat) -> Result<RepositoryRow, ApiError> {
    let row = named(seat).await?;
    repositories::managed(&seat.actor, &row.id.to_string()).await
}

async fn page(seat: &Seat, row: &RepositoryRow, wrong: Option<&ApiError>) -> Answer {
    let request = PageRequest { limit: ROWS, after: after::<PublisherId>(seat)? };
    let listed = publishers::list(&seat.actor, Some(&row.id.to_string()), request).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|last| last.id.to_string());
    let filled = Filled::new(&seat.form, wrong);
    let body = html! {
        (tabs(seat, row, "/settings"))
        @if listed.rows.is_empty() {
            div.card.empty {
                h2 { "None yet" }
                p { "A workflow that is trusted here publishes with a token that its build service vouches for. It lives for minutes, and there is nothing to keep." }
            }
        } @else { (rows(seat, row, &listed.rows)) }
        (parts::further(&path(row), &[], next.as_deref()))
        form.card method="post" action=(path(row)) {
            h2 { "New trusted publisher" }
            (parts::guard(seat))
            (parts::hidden("do", "create"))
            (filled.told(html! { (fields(&filled)) button.go type="submit" { "Add publisher" } }))
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(seat, Sheet { status, ..sheet(row) }, &body))
}

fn rows(seat: &Seat, row: &RepositoryRow, publishers: &[PublisherRow]) -> Markup {
    html! {
        ul.rows {
            @for publisher in publishers {
                @let id = publisher.id.to_string();
                @let name = who(publisher);
                li {
                    div.what {
                        strong { (parts::said(&name)) }
                        p.meta {
                            span { (publisher.provider) " · " (parts::said(&publisher.issuer)) }
                            span { "packages " (parts::said(&patterns(publisher).join(", "))) }
                            span { (scope(publisher)) }
                        }
                        p.meta {
                            span { "made by " (parts::said(&publisher.created_by)) " " (dates::time(publisher.created_at)) }
                            @match publisher.last_used_at {
                                Some(at) => { span { "last used " (dates::time(at)) } }
                                None => { span { "not used yet" } }
                            }
                        }
                    }
                    (parts::deed_in_two_steps(seat, &path(row), &[("do", "delete"), ("publisher", &id)], "Delete", &name))
                }
            }
        }
    }
}

/// What a publisher is called: the claims that tell it.
fn who(publisher: &PublisherRow) -> String {
    let claims: Map<String, Value> = serde_json::from_str(&publisher.claims).unwrap_or_default();
    let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (owner, name) = match publisher.provider.as_str() {
        "github" => (text("repository_owner"), text("repository")),
        "gitlab" => (text("namespace"), text("project")),
        _ => {
            let pairs = claims.iter().map(|(name, value)| match value {
                Value::String(text) => format!("{name}={text}"),
                other => format!("{name}={other}"),
            });
            return pairs.collect::<Vec<_>>().join(" ");
        }
    };
    let environment = Some(text("environment")).filter(|text| !text.is_empty());
    let environment = environment.map(|text| format!(" in {text}")).unwrap_or_default();
    format!("{owner}/{name} {}{environment}", text("workflow"))
}

fn patterns(publisher: &PublisherRow) -> Vec<String> {
    serde_json::from_str(&publisher.packages).unwrap_or_default()
}

fn scope(publisher: &PublisherRow) -> &'static str {
    match (publisher.scope.read, publisher.scope.write) {
        (true, true) => "reads and writes",
        (_, true) => "writes",
        _ => "reads",
    }
}

fn fields(filled: &Filled<'_>) -> Markup {
    let choice = |value: &str, label: &str| Choice { value: value.to_owned(), label: label.to_owned() };
    let providers = [choice("github", "GitHub"), choice("gitlab", "GitLab"), choice("oidc", "Another")];
    let may = [choice("read", "Read"), choice("write", "Write")];
    let text = |label: &'static str, name: &'static str, hint: &'static str| {
        filled.text(Text { label, name, hint, ..Text::default() })
    };
    html! {
        (filled.select("Provider", "provider", &providers, "github"))
        (text("Owner", "owner", "A user or an organization of GitHub's, a namespace of GitLab's."))
        (text("Repository or project", "project", "Without its owner."))
        (text("Workflow", "workflow", "The file, as release.yml or .gitlab-ci.yml."))
        (text("Environment", "environment", "The job's; may stay empty, but one with rules for releases keeps others out."))
        (filled.lines("Claims", "claims", "Of another provider: NAME=VALUE, one to a line; sub, or two others at least.", ""))
        (filled.text(Text { label: "Issuer", name: "issuer", kind: "url", hint: "The address of a server of your own or of another provider.", ..Text::default() }))
        (filled.lines("Packages", "packages", "One to a line, with * for any text. They need not be there yet.", ""))
        (filled.checks("Scope", "scope", &may, ""))
    }
}

/// What the form says, as the body of the call.
fn said(row: &RepositoryRow, form: &Fields) -> Value {
    let provider = form.text("provider");
    let claims = match provider {
        "gitlab" => json!({
            "namespace": form.text("owner"), "project": form.text("project"), "workflow": form.text("workflow"),
            "environment": form.or_null("environment"),
        }),
        "oidc" => {
            let lines = form.text("claims").lines().map(str::trim).filter(|line| !line.is_empty());
            let pairs = lines.map(|line| line.split_once('=').unwrap_or((line, "")));
            Value::Object(pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().into())).collect())
        }
        _ => json!({
            "repository_owner": form.text("owner"), "repository": form.text("project"), "workflow": form.text("workflow"),
            "environment": form.or_null("environment"),
        }),
    };
    let lines = form.text("packages").lines().map(str::trim).filter(|line| !line.is_empty());
    let packages: Vec<&str> = lines.collect();
    json!({
        "repository": row.id.to_string(), "provider": provider, "issuer": form.or_null("issuer"), "claims": claims,
        "packages": packages, "scope": form.list("scope"),
    })
}

fn creating(row: &RepositoryRow) -> Deed<'static> {
    let what = html! { p { "The trusted publisher of " strong { (row.name) } " is created once you have confirmed that it is you." } };
    Deed { action: Action::ManagePublishers, title: "Confirm the new trusted publisher", what }
}

async fn act(seat: Arc<Seat>) -> Answer {
    let row = managed(&seat).await?;
    if seat.form.text("do") == "delete" {
        publishers::remove(&seat.actor, seat.form.text("publisher")).await?;
        return Ok(see_other(&format!("{}?done=deleted", path(&row))));
    }
    let made = match packhouse_api::publishers::from_json(said(&row, &seat.form)) {
        Ok(request) => {
            confirm::then(&seat, creating(&row), async |confirmation| {
                publishers::create(&seat.actor, confirmation, request).await
            })
            .await
        }
        Err(error) => Err(error),
    };
    match made {
        Ok(Outcome::Done(_)) => confirm::spent(&seat, see_other(&format!("{}?done=saved", path(&row)))),
        Ok(Outcome::Asked(page)) => Ok(page),
        Err(error) => {
            let wrong = visit::wrong(&seat, error)?;
            page(&seat, &row, Some(&wrong)).await
        }
    }
}
