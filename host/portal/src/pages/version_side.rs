//! Right column of the pages of a package and a version: its licence, publisher, provenance,
//! downloads, size and links.

use maud::{Markup, html};
use packhouse_api::operations::packages::VersionPage;
use packhouse_store::{Attestation, Verdict};

use crate::{dates, parts};

/// Property of a version with its licence.
const LICENCE: &str = "license";
/// Maximum number of links on the card.
const LINKS: usize = 6;

/// Builds the card with the facts about a version. `heading` says which version they are about.
pub(super) fn about(page_data: &VersionPage, heading: &Markup) -> Markup {
    let (details, version) = (&page_data.details, &page_data.details.version);
    let bytes = version.files.iter().map(|file| file.size).fold(0, u64::saturating_add);
    html! {
        section.card aria-labelledby="about" {
            h2 id="about" { (heading) }
            dl {
                @if let Some(licence) = property(page_data, LICENCE) { dt { "Licence" } dd { (parts::short(licence)) } }
                dt { "Published" }
                dd {
                    @match version.published { Some(at) => (dates::unsigned_time(at)), None => "unknown" }
                    @if !details.published_by.is_empty() { " by " (parts::isolated(&details.published_by)) }
                }
                (provenance(&page_data.attestations))
                dt { "Downloads" }
                dd { (details.downloads) @if let Some(at) = details.last_downloaded_at { ", last " (dates::time(at)) } }
                dt { "Size" }
                dd { (parts::size(bytes)) " in " (parts::count(version.files.len() as u64, "file", "files")) }
                (links(page_data))
            }
        }
    }
}

fn property<'a>(page_data: &'a VersionPage, name: &str) -> Option<&'a str> {
    let properties = &page_data.details.version.properties;
    let found = properties.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    found.filter(|value| !value.is_empty())
}

/// Names the source of a version whose signature is valid. The result is empty without a signed
/// statement.
fn provenance(attestations: &[Attestation]) -> Markup {
    let verified = attestations.iter().find(|one| one.verdict == Verdict::Verified);
    html! {
        @if let Some(one) = verified {
            dt { "Provenance" }
            dd {
                a href="#attestations" { "Verified" }
                @if !one.facts.source.is_empty() { ", from " (parts::short(&one.facts.source)) }
                @if !one.facts.commit.is_empty() { " at " code { (parts::short(&one.facts.commit)) } }
            }
        } @else if !attestations.is_empty() {
            dt { "Provenance" }
            dd { a href="#attestations" { "Not verified" } }
        }
    }
}

/// Lists the properties that are addresses of the web.
fn links(page_data: &VersionPage) -> Markup {
    let properties = &page_data.details.version.properties;
    let links: Vec<&(String, String)> =
        properties.iter().filter(|(_, value)| value.starts_with("https://")).take(LINKS).collect();
    html! {
        @if !links.is_empty() {
            dt { "Links" }
            dd { @for (name, value) in links { a href=(value) rel="noreferrer nofollow" { (parts::short(name)) } " " } }
        }
    }
}
