//! `/repositories/{name}/packages/{package}/versions/{version}`: all that is known of a version, and what can be done to it.

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
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, dates, fault, parts};

/// The property of a version that says why it is in its state.
const REASON: &str = "reason";
/// What of files and of dependencies is shown at most.
const ROWS: usize = 40;
/// Bytes of a page's content: with the frame, the style sheet and the script it stays below 60 KiB.
const ROOM: usize = 42 * 1024;

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![
        (
            "/repositories/{name}/packages/{package}/versions/{version}",
            visit::page(show).merge(visit::form(act)),
        ),
        ("/repositories/{name}/packages/{package}/versions/{version}/documents/{digest}", visit::page(fetch)),
    ]
}

async fn show(seat: Arc<Seat>) -> Answer {
    page(&seat, None).await
}

async fn page(seat: &Seat, wrong: Option<&ApiError>) -> Answer {
    let row = named(seat).await?;
    let (package, number) = (seat.named("package"), seat.named("version"));
    let told = packages::version(&seat.actor, &row.id.to_string(), package, number).await?;
    let ruled = policies::of_version(&seat.actor, &row, package, number).await?;
    let VersionPage { details, install, presented, .. } = &told;
    let version = &details.version;
    let before = html! {
        @if let Some(wrong) = wrong { (parts::alert(wrong.message())) }
        @if !version.summary.is_empty() { p { (parts::short(&version.summary)) } }
        @if !details.damaged_files.is_empty() { (damaged(&told)) }
        (facts(&told))
        @if !ruled.is_empty() { (super::policies::ruled(&ruled, package, number)) }
        @if !told.advisories.is_empty() { (advisories(&told.advisories)) }
        @if !install.is_empty() {
            section aria-labelledby="install" {
                h2 id="install" { "Install" }
                @for (number, one) in install.iter().enumerate() {
                    @let id = format!("install-{number}");
                    div.card {
                        h3 { (one.client) }
                        pre tabindex="0" role="region" aria-label={ (one.client) ", how to install" } { code id=(id) { (one.text) } }
                        (parts::copied(&id, &Markup::default(), &format!("Copy for {}", one.client)))
                    }
                }
            }
        }
    };
    let behind = html! {
        @if !presented.dependencies.is_empty() { (dependencies(&told)) }
        (files(&told))
        @if !told.documents.is_empty() { (bills(&told)) }
        @if let Some(found) = &presented.image { (image(found)) }
        (attestations(&told.attestations, &presented.attestations))
        @if !version.properties.is_empty() { (properties(version)) }
        (deeds(seat, &told))
    };
    let room = ROOM.saturating_sub(before.0.len() + behind.0.len());
    let readme = match &presented.readme {
        Some(text) => Some(seat.portal.readmes.shown(&text.media_type, &text.text, room).await),
        None => None,
    };
    let body = html! {
        (before)
        @if let Some(readme) = &readme { section.card.readme aria-label="README" dir="auto" { (readme) } }
        (behind)
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    let title = format!("{package} {number}");
    Ok(frame::page(seat, Sheet { status, crumbs: crumbs(&row, Some(package)), ..Sheet::of(&title) }, &body))
}

fn reason(version: &Version) -> Option<&str> {
    version
        .properties
        .iter()
        .find(|(name, _)| name == REASON)
        .map(|(_, value)| value.as_str())
        .filter(|text| !text.is_empty())
}

fn facts(told: &VersionPage) -> Markup {
    let (details, version) = (&told.details, &told.details.version);
    html! {
        div.card {
            dl {
                @if !version.state.is_empty() {
                    dt { "State" } dd { (parts::tag(&version.state)) @if let Some(reason) = reason(version) { " " (parts::short(reason)) } }
                }
                dt { "Published" }
                dd {
                    @match version.published { Some(at) => (dates::moment(at)), None => "not known" }
                    @if !details.published_by.is_empty() { " by " (parts::said(&details.published_by)) }
                }
                dt { "Downloads" }
                dd { (details.downloads) @if let Some(at) = details.last_downloaded_at { ", last " (dates::time(at)) } }
            }
        }
    }
}

/// Says what to do about files whose bytes are lost.
fn damaged(told: &VersionPage) -> Markup {
    let repair = match told.repository.kind.as_str() {
        "proxy" => "The next download fetches them from the upstream again.",
        _ => "Publish the same files again to repair them.",
    };
    parts::alert(&format!(
        "Stored bytes are missing or damaged, so the files that are marked as damaged cannot be downloaded. {repair}"
    ))
}

/// What is known to be wrong with the version, the worst first.
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
        @if marks.len() > ROWS { p { "And " (marks.len() - ROWS) " more." } }
    }
}

fn files(told: &VersionPage) -> Markup {
    let (damaged, counted) = (&told.details.damaged_files, &told.details.file_downloads);
    // Damaged files are among the rows that are shown.
    let mut files: Vec<&VersionFile> = told.details.version.files.iter().collect();
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
        @if files.is_empty() { p.soft { "None." } } @else { (parts::table("Files", &["File", "Size", "Downloads", "Digest"], &rows)) }
        @if files.len() > ROWS { p.soft { "And " (files.len() - ROWS) " more, which the API lists." } }
    }
}

/// What came with the version to say what it is made of.
fn bills(told: &VersionPage) -> Markup {
    let version = &told.details.version;
    let page = parts::version(&told.repository.name, &version.name, &version.version);
    let rows = html! {
        @for one in told.documents.iter().take(ROWS) {
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
        (parts::table("Bills of materials", &["Document", "Form", "Of", "Size"], &rows))
        @if told.documents.len() > ROWS { p.soft { "And " (told.documents.len() - ROWS) " more, which the API lists." } }
    }
}

async fn fetch(seat: Arc<Seat>) -> Answer {
    let row = named(&seat).await?;
    let (package, number, digest) = (seat.named("package"), seat.named("version"), seat.named("digest"));
    documents::answer(packages::document(&seat.actor, &row.id.to_string(), package, number, digest).await?)
        .await
}

fn dependencies(told: &VersionPage) -> Markup {
    let all = &told.presented.dependencies;
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
        (parts::table("Dependencies", &["Package", "Requirement", "For"], &rows))
        @if all.len() > ROWS { p.soft { "And " (all.len() - ROWS) " more." } }
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

/// What the member can do to it, as far as the page knows.
fn deeds(seat: &Seat, told: &VersionPage) -> Markup {
    let (rights, version) = (rights(seat, &told.repository), &told.details.version);
    let filled = Filled::new(&seat.form, None);
    let why = Text {
        label: "Reason",
        name: "reason",
        hint: "For people who use it; may stay empty.",
        ..Text::default()
    };
    html! {
        @if rights.publish {
            form.card method="post" action=(seat.path) {
                h2 { "Warn of it" }
                (parts::csrf(&seat.csrf))
                @if version.state.is_empty() {
                    (filled.text(why))
                    p.acts {
                        button type="submit" name="do" value="yanked" { "Yank" }
                        button type="submit" name="do" value="deprecated" { "Deprecate" }
                    }
                } @else {
                    p { "It is " (parts::tag(&version.state)) "." }
                    button type="submit" name="do" value="restored" { "Restore" }
                }
            }
        }
        @if rights.delete {
            div.card.danger {
                h2 { "Delete" }
                p { "This version with its files. Who depends on it cannot fetch it any more." }
                (parts::deed_in_two_steps(seat, &seat.path, &[("do", "delete")], "Delete", ""))
            }
        }
    }
}

async fn act(seat: Arc<Seat>) -> Answer {
    let row = named(&seat).await?;
    let id = row.id.to_string();
    let path =
        VersionPath { repository: &id, package: seat.named("package"), version: seat.named("version") };
    let state =
        |state: &str| VersionState { state: state.to_owned(), reason: seat.form.text("reason").to_owned() };
    let done = match seat.form.text("do") {
        "delete" => match upkeep::delete_version(&seat.actor, path).await {
            Ok(()) => return Ok(see_other(&gone(&seat, &id, &row.name).await)),
            Err(error) => Err(error),
        },
        word @ ("yanked" | "deprecated") => upkeep::mark(&seat.actor, path, state(word)).await.map(drop),
        "restored" => {
            upkeep::mark(&seat.actor, path, VersionState { state: String::new(), reason: String::new() })
                .await
                .map(drop)
        }
        _ => Err(ApiError::invalid("The form does not say what to do.")),
    };
    match done {
        Ok(()) => Ok(see_other(&format!("{}?done=saved", seat.path))),
        Err(error) => page(&seat, Some(&visit::wrong(&seat, error)?)).await,
    }
}

/// Where to go on after a version is gone: to its package, unless that was the last one.
async fn gone(seat: &Seat, id: &str, repository: &str) -> String {
    let package = seat.named("package");
    let left = packages::versions(&seat.actor, id, package).await.is_ok();
    let path = if left { parts::package(repository, package) } else { parts::repository(repository) };
    format!("{path}?done=deleted")
}
