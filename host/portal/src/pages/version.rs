//! `/repositories/{name}/packages/{package}/versions/{version}`: details of a version and actions
//! on it.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::documents;
use packhouse_api::error::ApiError;
use packhouse_api::operations::packages::{self, VersionPage};
use packhouse_api::operations::policies::{self, RuledVersion};
use packhouse_api::operations::upkeep::{self, VersionPath};
use packhouse_runtime::VersionState;

use super::Routes;
use super::attestations::attestations;
use super::image::image;
use super::install::install;
use super::package::{activity_of, crumbs, rights};
use super::repository::named;
use super::version_lists::{advisories, bills, damaged, dependencies, files, properties, severity, state};
use super::version_side::about;
use crate::field::{Filled, Text};
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, fault, parts};

/// Maximum bytes of a page's content. With frame, style sheet and script the page stays below 60
/// KiB.
pub(super) const ROOM: usize = 31 * 1024;

pub(super) fn routes() -> Routes {
    vec![
        (
            "/repositories/{name}/packages/{package}/versions/{version}",
            visit::page(show).merge(visit::form(act)),
        ),
        ("/repositories/{name}/packages/{package}/versions/{version}/documents/{digest}", visit::page(fetch)),
    ]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    page(&ctx, None).await
}

async fn page(ctx: &PageContext, wrong: Option<&ApiError>) -> PageResult {
    let row = named(ctx).await?;
    let (id, package, number) = (row.id.to_string(), ctx.named("package"), ctx.named("version"));
    let page_data = packages::version(&ctx.actor, &id, package, number).await?;
    let ruled = policies::of_version(&ctx.actor, &row, package, number).await?;
    let chart = activity_of(ctx, &id, package).await?;
    let version = &page_data.details.version;
    let before = html! {
        @if let Some(wrong) = wrong { (parts::alert(wrong.message())) }
        @if !version.summary.is_empty() { p.lead { (parts::short(&version.summary)) } }
        (state(version))
        (damaged(&page_data))
        @if !ruled.is_empty() { h2 { "Policies" } (super::policies::rulings(&ruled, package, number)) }
        (advisories(&page_data.advisories))
    };
    let side = html! {
        (install(&page_data.install, &row.format))
        (about(&page_data, &html! { "About this version" }))
        (chart)
    };
    let lists = html! {
        (dependencies(&page_data))
        (files(&page_data))
        @if let Some(found) = &page_data.presented.image { (image(found)) }
        (attestations(&page_data.attestations, &page_data.presented.attestations))
        (bills(&page_data))
        (properties(version))
    };
    let after = actions(ctx, &page_data);
    let used: usize = [&before, &side, &lists, &after].iter().map(|part| part.0.len()).sum();
    let readme = readme(ctx, &page_data, ROOM.saturating_sub(used)).await;
    let body = html! {
        (before)
        div.columns {
            div.side { (side) }
            div { (readme) (lists) }
        }
        (after)
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    let title = format!("{package} {number}");
    let (crumbs, beside) = (crumbs(&row, Some(package)), tags(&page_data, &ruled));
    Ok(frame::page(ctx, Sheet { status, crumbs, beside, ..Sheet::of(&title) }, &body))
}

/// Builds the README in at most `room` bytes. The result is empty if the version has none.
pub(super) async fn readme(ctx: &PageContext, page_data: &VersionPage, room: usize) -> Markup {
    let Some(text) = &page_data.presented.readme else { return Markup::default() };
    let readme = ctx.portal.readmes.html(&text.media_type, &text.text, room).await;
    html! { section.card.readme aria-label="README" dir="auto" { (readme) } }
}

/// Builds the tags next to the heading: the state of the version, the worst ruling and the worst
/// advisory.
fn tags(page_data: &VersionPage, ruled: &[RuledVersion]) -> Markup {
    let state = &page_data.details.version.state;
    html! {
        span.acts {
            @if !state.is_empty() { (parts::tag(state)) }
            (blocked(ruled))
            @if let Some(worst) = page_data.advisories.first() { (parts::tag(severity(worst))) }
        }
    }
}

/// Builds the tag of a version that policies refuse, or warn about.
pub(super) fn blocked(ruled: &[RuledVersion]) -> Markup {
    let refused = ruled.iter().any(|one| one.ruling != "warned");
    html! {
        @if refused { (parts::tag("blocked")) } @else if !ruled.is_empty() { (parts::tag("warned")) }
    }
}

async fn fetch(ctx: Arc<PageContext>) -> PageResult {
    let row = named(&ctx).await?;
    let (package, number, digest) = (ctx.named("package"), ctx.named("version"), ctx.named("digest"));
    documents::answer(packages::document(&ctx.actor, &row.id.to_string(), package, number, digest).await?)
        .await
}

/// Forms of the actions that the member may perform on the version.
fn actions(ctx: &PageContext, page_data: &VersionPage) -> Markup {
    let (rights, version) = (rights(ctx, &page_data.repository), &page_data.details.version);
    let filled = Filled::new(&ctx.form, None);
    let why = Text {
        label: "Reason",
        name: "reason",
        hint: "Shown to users of the version (optional).",
        ..Text::default()
    };
    html! {
        @if rights.publish {
            form.card method="post" action=(ctx.path) {
                h2 { "Warning" }
                (parts::csrf(&ctx.csrf))
                @if version.state.is_empty() {
                    (filled.text(why))
                    p.acts {
                        button type="submit" name="do" value="yanked" { "Yank" }
                        button type="submit" name="do" value="deprecated" { "Deprecate" }
                    }
                } @else {
                    p { "This version is " (parts::tag(&version.state)) "." }
                    button type="submit" name="do" value="restored" { "Restore" }
                }
            }
        }
        @if rights.delete {
            div.card.danger {
                h2 { "Delete" }
                p { "Deletes this version with its files. Clients that depend on it can no longer download it." }
                (parts::two_step_button(ctx, &ctx.path, &[("do", "delete")], "Delete", ""))
            }
        }
    }
}

async fn act(ctx: Arc<PageContext>) -> PageResult {
    let row = named(&ctx).await?;
    let id = row.id.to_string();
    let path = VersionPath { repository: &id, package: ctx.named("package"), version: ctx.named("version") };
    let state =
        |state: &str| VersionState { state: state.to_owned(), reason: ctx.form.text("reason").to_owned() };
    let done = match ctx.form.text("do") {
        "delete" => match upkeep::delete_version(&ctx.actor, path).await {
            Ok(()) => return Ok(see_other(&gone(&ctx, &id, &row.name).await)),
            Err(error) => Err(error),
        },
        word @ ("yanked" | "deprecated") => upkeep::mark(&ctx.actor, path, state(word)).await.map(drop),
        "restored" => {
            upkeep::mark(&ctx.actor, path, VersionState { state: String::new(), reason: String::new() })
                .await
                .map(drop)
        }
        _ => Err(ApiError::invalid("The form does not state an action.")),
    };
    match done {
        Ok(()) => Ok(see_other(&format!("{}?done=saved", ctx.path))),
        Err(error) => page(&ctx, Some(&visit::form_error(&ctx, error)?)).await,
    }
}

/// Returns the path to continue at after a version was deleted: its package, or the repository if
/// this was the last version.
async fn gone(ctx: &PageContext, id: &str, repository: &str) -> String {
    let package = ctx.named("package");
    let left = packages::versions(&ctx.actor, id, package).await.is_ok();
    let path = if left { parts::package(repository, package) } else { parts::repository(repository) };
    format!("{path}?done=deleted")
}
