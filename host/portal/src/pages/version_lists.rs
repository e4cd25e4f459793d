//! Lists on the page of a version: advisories, dependencies, files, bills of materials and
//! properties.

use maud::{Markup, html};
use packhouse_api::operations::advisories::Mark;
use packhouse_api::operations::packages::VersionPage;
use packhouse_store::{Version, VersionFile};

use crate::parts;

/// Property of a version with the reason for its state.
const REASON: &str = "reason";
/// Maximum number of rows in each list.
const ROWS: usize = 30;

/// Says why clients should not use the version, if its state says so.
pub(super) fn state(version: &Version) -> Markup {
    let reason = version.properties.iter().find(|(name, _)| name == REASON);
    let reason = reason.map(|(_, value)| value.as_str()).filter(|text| !text.is_empty());
    html! {
        @if !version.state.is_empty() {
            p.note { "This version is " (parts::tag(&version.state)) @if let Some(reason) = reason { ": " (parts::short(reason)) } }
        }
    }
}

/// Explains how to repair files whose stored bytes are lost. The result is empty without such
/// files.
pub(super) fn damaged(page_data: &VersionPage) -> Markup {
    if page_data.details.damaged_files.is_empty() {
        return Markup::default();
    }
    let repair = match page_data.repository.kind.as_str() {
        "proxy" => "The next download fetches them from the upstream again.",
        _ => "Publish the same files again to repair them.",
    };
    parts::alert(&format!(
        "The files marked as damaged cannot be downloaded, because their stored bytes are missing or damaged. {repair}"
    ))
}

/// Returns the word for an advisory's severity, which is also the class of its tag.
pub(super) fn severity(mark: &Mark) -> &'static str {
    if mark.malware { "malware" } else { mark.severity.as_str() }
}

/// Advisories about the version, the most severe first.
pub(super) fn advisories(marks: &[Mark]) -> Markup {
    let rows = html! {
        @for mark in marks.iter().take(ROWS) {
            tr {
                th scope="row" {
                    @if mark.url.starts_with("https://") { a href=(mark.url) rel="noreferrer nofollow" { (parts::short(&mark.id)) } }
                    @else { (parts::short(&mark.id)) }
                }
                td { (parts::tag(severity(mark))) }
                td { (parts::short(&mark.summary)) }
                td { @for version in mark.fixed.iter().take(5) { (parts::short(version)) " " } }
            }
        }
    };
    html! {
        @if !marks.is_empty() {
            h2 { "Advisories" }
            (parts::table("Advisories", &["Advisory", "Severity", "Summary", "Fixed in"], &rows))
            @if marks.len() > ROWS { p { (marks.len() - ROWS) " more are not shown." } }
        }
    }
}

/// Lists the dependencies of the version. The result is empty for a version without dependencies.
pub(super) fn dependencies(page_data: &VersionPage) -> Markup {
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
        @if !all.is_empty() {
            h2 { "Dependencies" }
            (parts::table("Dependencies", &["Package", "Requirement", "Group"], &rows))
            @if all.len() > ROWS { p.soft { (all.len() - ROWS) " more are not shown." } }
        }
    }
}

/// Files of the version with their sizes, downloads and digests.
pub(super) fn files(page_data: &VersionPage) -> Markup {
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

/// Lists the bills of materials of the version. The result is empty for a version without them.
pub(super) fn bills(page_data: &VersionPage) -> Markup {
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
        @if !page_data.documents.is_empty() {
            h2 { "Bills of materials" }
            (parts::table("Bills of materials", &["Document", "Format", "Describes", "Size"], &rows))
            @if page_data.documents.len() > ROWS { p.soft { (page_data.documents.len() - ROWS) " more are listed by the API." } }
        }
    }
}

/// Lists the properties of the version in its format's words. The result is empty for a version
/// without properties.
pub(super) fn properties(version: &Version) -> Markup {
    let all: Vec<&(String, String)> =
        version.properties.iter().filter(|(name, _)| name != REASON).take(ROWS).collect();
    html! {
        @if !all.is_empty() {
            div.card {
                h2 { "Properties" }
                dl { @for (name, value) in all { dt { (parts::short(name)) } dd { (parts::short(value)) } } }
            }
        }
    }
}
