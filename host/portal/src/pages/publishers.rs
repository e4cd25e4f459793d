//! `/repositories/{name}/trusted-publishers`: workflows of build services that may publish here
//! without a stored secret. `/trusted-publishers` lists those of all repositories.

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
use crate::confirm::{self, ConfirmationPrompt, ConfirmedOutcome};
use crate::field::{Choice, Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, dates, fault, parts};

/// Path of the list for all repositories.
const ALL: &str = "/trusted-publishers";

pub(super) fn routes() -> Routes {
    vec![
        ("/repositories/{name}/trusted-publishers", visit::page(show).merge(visit::form(act))),
        (ALL, visit::page(overview)),
    ]
}

fn path(row: &RepositoryRow) -> String {
    of_repository(&row.name)
}

fn of_repository(name: &str) -> String {
    format!("{}/trusted-publishers", parts::repository(name))
}

/// Builds the link to this page on the settings page.
pub(super) fn section(row: &RepositoryRow) -> Markup {
    html! {
        h2 { "Trusted publishers" }
        div.card {
            p { "Workflows of GitHub, GitLab and other providers that may publish here without a stored secret." }
            p { a href=(path(row)) { "Manage trusted publishers" } }
        }
    }
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    let row = managed(&ctx).await?;
    if confirm::returned_from_provider(&ctx) {
        return confirm::prompt_page(&ctx, &creation_prompt(&row), &ctx.form, None).await;
    }
    page(&ctx, &row, None).await
}

/// Lists the publishers of all repositories that the member may manage.
async fn overview(ctx: Arc<PageContext>) -> PageResult {
    let request = PageRequest { limit: ROWS, after: after::<PublisherId>(&ctx)? };
    let listed = publishers::list(&ctx.actor, None, request).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|last| last.id.to_string());
    let rows = html! {
        @for publisher in &listed.rows {
            tr {
                th scope="row" { a href=(of_repository(&publisher.repository_name)) { (publisher.repository_name) } }
                td { (parts::isolated(&display_name(publisher))) }
                td { (parts::isolated(&patterns(publisher).join(", "))) }
                td { (scope(publisher)) }
                td.tight { @if let Some(at) = publisher.last_used_at { (dates::time(at)) } @else { "not yet" } }
            }
        }
    };
    let body = html! {
        @if listed.rows.is_empty() {
            div.card.empty {
                h2 { "No trusted publishers yet" }
                p { "A trusted workflow publishes with a token that its build service vouches for. You add it in the settings of the repository to which it publishes." }
                p { a.button href="/repositories" { "Choose a repository" } }
            }
        } @else {
            (parts::list_length(&ctx, listed.rows.len(), listed.more, "trusted publisher", "trusted publishers"))
            (parts::table("Trusted publishers", &["Repository", "Workflow", "Packages", "Scope", "Last used"], &rows))
        }
        (parts::next_page_link(ALL, &[], next.as_deref()))
    };
    Ok(frame::page(&ctx, Sheet::of("Trusted publishers"), &body))
}

async fn managed(ctx: &PageContext) -> Result<RepositoryRow, ApiError> {
    let row = named(ctx).await?;
    repositories::managed(&ctx.actor, &row.id.to_string()).await
}

async fn page(ctx: &PageContext, row: &RepositoryRow, wrong: Option<&ApiError>) -> PageResult {
    let request = PageRequest { limit: ROWS, after: after::<PublisherId>(ctx)? };
    let listed = publishers::list(&ctx.actor, Some(&row.id.to_string()), request).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|last| last.id.to_string());
    let filled = Filled::new(&ctx.form, wrong);
    let body = html! {
        (tabs(ctx, row, "/settings"))
        @if listed.rows.is_empty() {
            div.card.empty {
                h2 { "No trusted publishers yet" }
                p { "A trusted workflow publishes with a token that its build service vouches for. The token lives for minutes, so you store no secret." }
            }
        } @else { (rows(ctx, row, &listed.rows)) }
        (parts::next_page_link(&path(row), &[], next.as_deref()))
        form.card method="post" action=(path(row)) {
            h2 { "New trusted publisher" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "create"))
            (filled.with_error(html! { (fields(&filled)) button.go type="submit" { "Create publisher" } }))
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, ..sheet(row) }, &body))
}

fn rows(ctx: &PageContext, row: &RepositoryRow, publishers: &[PublisherRow]) -> Markup {
    html! {
        ul.rows {
            @for publisher in publishers {
                @let id = publisher.id.to_string();
                @let name = display_name(publisher);
                li {
                    div.what {
                        strong { (parts::isolated(&name)) }
                        p.meta {
                            span { (publisher.provider) " · " (parts::isolated(&publisher.issuer)) }
                            span { "packages " (parts::isolated(&patterns(publisher).join(", "))) }
                            span { (scope(publisher)) }
                        }
                        p.meta {
                            span { "created by " (parts::isolated(&publisher.created_by)) " " (dates::time(publisher.created_at)) }
                            @match publisher.last_used_at {
                                Some(at) => { span { "last used " (dates::time(at)) } }
                                None => { span { "not used yet" } }
                            }
                        }
                    }
                    (parts::two_step_button(ctx, &path(row), &[("do", "delete"), ("publisher", &id)], "Delete", &name))
                }
            }
        }
    }
}

/// Returns the name of a publisher, made of the claims that identify it.
fn display_name(publisher: &PublisherRow) -> String {
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
    let providers =
        [choice("github", "GitHub"), choice("gitlab", "GitLab"), choice("oidc", "Other (OpenID Connect)")];
    let may = [choice("read", "Read"), choice("write", "Write")];
    let text = |label: &'static str, name: &'static str, hint: &'static str| {
        filled.text(Text { label, name, hint, ..Text::default() })
    };
    html! {
        (filled.select("Provider", "provider", &providers, "github"))
        (text("Owner", "owner", "The user or organization on GitHub, or the namespace on GitLab."))
        (text("Repository or project", "project", "The name without its owner."))
        (text("Workflow", "workflow", "The file name, for example release.yml or .gitlab-ci.yml."))
        (text("Environment", "environment", "The environment of the job (optional). An environment with release rules keeps other jobs from publishing."))
        (filled.lines("Claims", "claims", "For other providers: NAME=VALUE, one per line. Give sub or at least two other claims.", ""))
        (filled.text(Text { label: "Issuer", name: "issuer", kind: "url", hint: "The URL of your own server or of another provider.", ..Text::default() }))
        (filled.lines("Packages", "packages", "Package names, one per line; * matches any text. The packages need not exist yet.", ""))
        (filled.checks("Scope", "scope", &may, ""))
    }
}

/// Converts the form to the body of the API call.
fn request_body(row: &RepositoryRow, form: &Fields) -> Value {
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

fn creation_prompt(row: &RepositoryRow) -> ConfirmationPrompt<'static> {
    let what = html! { p { "The trusted publisher of " strong { (row.name) } " will be created after you confirm your identity." } };
    ConfirmationPrompt { action: Action::ManagePublishers, title: "Confirm the new trusted publisher", what }
}

async fn act(ctx: Arc<PageContext>) -> PageResult {
    let row = managed(&ctx).await?;
    if ctx.form.text("do") == "delete" {
        publishers::remove(&ctx.actor, ctx.form.text("publisher")).await?;
        return Ok(see_other(&format!("{}?done=deleted", path(&row))));
    }
    let made = match packhouse_api::publishers::from_json(request_body(&row, &ctx.form)) {
        Ok(request) => {
            confirm::run(&ctx, creation_prompt(&row), async |confirmation| {
                publishers::create(&ctx.actor, confirmation, request).await
            })
            .await
        }
        Err(error) => Err(error),
    };
    match made {
        Ok(ConfirmedOutcome::Done(_)) => {
            confirm::finish(&ctx, see_other(&format!("{}?done=saved", path(&row))))
        }
        Ok(ConfirmedOutcome::Prompt(page)) => Ok(page),
        Err(error) => {
            let wrong = visit::form_error(&ctx, error)?;
            page(&ctx, &row, Some(&wrong)).await
        }
    }
}
