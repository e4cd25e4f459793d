//! `/repositories/{name}/packages/{package}/versions/{version}`: details of a version and actions
//! on it.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::documents;
use packhouse_api::error::ApiError;
use packhouse_api::operations::advisories::Mark;
use packhouse_api::operations::packages::{self, VersionPage};
use packhouse_api::operations::policies;
use packhouse_api::operations::upkeep::{self, VersionPath};
use packhouse_runtime::VersionState;
use packhouse_store::{Version, VersionFile};

use super::Routes;
use super::attestations::attestations;
use super::image::image;
use super::package::{crumbs, rights};
use super::repository::named;
use crate::field::{Filled, Text};
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, dates, fault, parts};

/// Property of a version with the reason for its state.
const REASON: &str = "reason";
/// Maximum number of rows in each list.
const ROWS: usize = 40;
/// Maximum bytes of a page's content. With frame, style sheet and script the page stays below 60
/// KiB.
const ROOM: usize = 42 * 1024;

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
    let (package, number) = (ctx.named("package"), ctx.named("version"));
    let page_data = packages::version(&ctx.actor, &row.id.to_string(), package, number).await?;
    let ruled = policies::of_version(&ctx.actor, &row, package, number).await?;
    let VersionPage { details, install, presented, .. } = &page_data;
    let version = &details.version;
    let before = html! {
        @if let Some(wrong) = wrong { (parts::alert(wrong.message())) }
        @if !version.summary.is_empty() { p { (parts::short(&version.summary)) } }
        @if !details.damaged_files.is_empty() { (damaged(&page_data)) }
        (facts(&page_data))
        @if !ruled.is_empty() { (super::policies::rulings(&ruled, package, number)) }
        @if !page_data.advisories.is_empty() { (advisories(&page_data.advisories)) }
        @if !install.is_empty() {
            section aria-labelledby="install" {
                h2 id="install" { "Install" }
                @for (number, one) in install.iter().enumerate() {
                    @let id = format!("install-{number}");
                    div.card {
                        h3 { (one.client) }
                        pre tabindex="0" role="region" aria-label={ (one.client) ", how to install" } { code id=(id) { (one.text) } }
                        (parts::copyable(&id, &Markup::default(), &format!("Copy for {}", one.client)))
                    }
                }
            }
        }
    };
    let behind = html! {
        @if !presented.dependencies.is_empty() { (dependencies(&page_data)) }
        (files(&page_data))
        @if !page_data.documents.is_empty() { (bills(&page_data)) }
        @if let Some(found) = &presented.image { (image(found)) }
        (attestations(&page_data.attestations, &presented.attestations))
        @if !version.properties.is_empty() { (properties(version)) }
        (actions(ctx, &page_data))
    };
    let room = ROOM.saturating_sub(before.0.len() + behind.0.len());
    let readme = match &presented.readme {
        Some(text) => Some(ctx.portal.readmes.html(&text.media_type, &text.text, room).await),
        None => None,
    };
    let body = html! {
        (before)
        @if let Some(readme) = &readme { section.card.readme aria-label="README" dir="auto" { (readme) } }
        (behind)
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    let title = format!("{package} {number}");
    Ok(frame::page(ctx, Sheet { status, crumbs: crumbs(&row, Some(package)), ..Sheet::of(&title) }, &body))
}

fn reason(version: &Version) -> Option<&str> {
    version
        .properties
        .iter()
        .find(|(name, _)| name == REASON)
        .map(|(_, value)| value.as_str())
        .filter(|text| !text.is_empty())
}

fn facts(page_data: &VersionPage) -> Markup {
    let (details, version) = (&page_data.details, &page_data.details.version);
    html! {
        div.card {
            dl {
                @if !version.state.is_empty() {
                    dt { "State" } dd { (parts::tag(&version.state)) @if let Some(reason) = reason(version) { " " (parts::short(reason)) } }
                }
                dt { "Published" }
                dd {
                    @match version.published { Some(at) => (dates::unsigned_time(at)), None => "unknown" }
                    @if !details.published_by.is_empty() { " by " (parts::isolated(&details.published_by)) }
                }
                dt { "Downloads" }
                dd { (details.downloads) @if let Some(at) = details.last_downloaded_at { ", last " (dates::time(at)) } }
            }
        }
    }
}

/// Explains how to repair files whose stored bytes are lost.
fn damaged(page_data: &VersionPage) -> Markup {
    let repair = match page_data.repository.kind.as_str() {
        "proxy" => "The next download fetches them from the upstream again.",
        _ => "Publish the same files again to repair them.",
    };
    parts::alert(&format!(
        "The files marked as damaged cannot be downloaded, because their stored bytes are missing or damaged. {repair}"
    ))
}

/// Advisories about the version, the most severe first.
fn advisories(marks: &[Mark]) -> Markup {
    let rows = html! {
        @for mark in marks.iter().take(ROWS) {
            tr {
                th scope="row" {
                    @if mark.url.starts_with("https://") { a href=(mark.url) rel="noreferrer nofollow" { (parts::short(&mark.id)) } }
                    @else { (parts::short(&mark.id)) }
                }
                td { (parts::tag(if mark.malware { "malware" } else { mark.severity.as_str() })) }
                td { (parts::short(&mark.summary)) }
                td { @for version in mark.fixed.iter().take(5) { (parts::short(version)) " " } }
            }
        }
    };
    html! {
        h2 { "Advisories" }
        (parts::table("Advisories", &["Advisory", "Severity", "Summary", "Fixed in"], &rows))
        @if marks.len() > ROWS { p { (marks.len() - ROWS) " more are not shown." } }
    }
}

fn files(page_data: &VersionPage) -> Markup {
    let (damaged, counted) = (&page_data.details.damaged_files, &page_data.details.file_downloads);
    // Damaged files come first, so that the row limit never hides them.
    let mut files: Vec<&VersionFile> = page_data.details.version.files.iter().collect();
    files.sort_by_key(|file| !damaged.contains(&file.path));
    let rows = html! {
        @for file in files.iter().take(ROWS) {
            tr {
                th scope="row" {
                    (parts::short(&file.path))
                    @if damaged.contains(&file.path) { " " (parts::tag("damaged")) }
                }
                td.num { (parts::size(file.size)) }
                td.num { (counted.get(&file.path).copied().unwrap_or_default()) }
                td { code { (file.digest.to_string()) } }
            }
        }
    };
    html! {
        h2 { "Files" }
        @if files.is_empty() { p.soft { "This version has no files." } } @else { (parts::table("Files", &["File", "Size", "Downloads", "Digest"], &rows)) }
        @if files.len() > ROWS { p.soft { (files.len() - ROWS) " more are listed by the API." } }
    }
}

/// Bills of materials of the version.
fn bills(page_data: &VersionPage) -> Markup {
    let version = &page_data.details.version;
    let page = parts::version(&page_data.repository.name, &version.name, &version.version);
    let rows = html! {
        @for one in page_data.documents.iter().take(ROWS) {
            tr {
                th scope="row" { a href={ (page) "/documents/" (one.sha256.digest().to_string()) } { (parts::short(&one.title)) } }
                td { (parts::short(&one.form)) }
                td { (parts::short(if one.path.is_empty() { "the version" } else { &one.path })) }
                td.num { (parts::size(one.size)) }
            }
        }
    };
    html! {
        h2 { "Bills of materials" }
        (parts::table("Bills of materials", &["Document", "Format", "Describes", "Size"], &rows))
        @if page_data.documents.len() > ROWS { p.soft { (page_data.documents.len() - ROWS) " more are listed by the API." } }
    }
}

async fn fetch(ctx: Arc<PageContext>) -> PageResult {
    let row = named(&ctx).await?;
    let (package, number, digest) = (ctx.named("package"), ctx.named("version"), ctx.named("digest"));
    documents::answer(packages::document(&ctx.actor, &row.id.to_string(), package, number, digest).await?)
        .await
}

fn dependencies(page_data: &VersionPage) -> Markup {
    let all = &page_data.presented.dependencies;
    let rows = html! {
        @for one in all.iter().take(ROWS) {
            tr {
                th scope="row" { (parts::short(&one.name)) }
                td { (parts::short(&one.requirement)) }
                td { (parts::short(&one.group)) }
            }
        }
    };
    html! {
        h2 { "Dependencies" }
        (parts::table("Dependencies", &["Package", "Requirement", "Group"], &rows))
        @if all.len() > ROWS { p.soft { (all.len() - ROWS) " more are not shown." } }
    }
}

fn properties(version: &Version) -> Markup {
    html! {
        div.card {
            h2 { "Properties" }
            dl { @for (name, value) in version.properties.iter().filter(|(name, _)| name != REASON).take(ROWS) { dt { (parts::short(name)) } dd { (parts::short(value)) } } }
        }
    }
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
