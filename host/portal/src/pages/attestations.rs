//! Attestations on a version's page: who built the version from which source, and whether the
//! signature is valid.

use maud::{Markup, html};
use packhouse_runtime::Attestation as Presented;
use packhouse_store::{Attestation, Verdict};

use crate::{dates, parts};

/// Maximum number of attestations on the page. Each takes up to 4 KiB.
const ROWS: usize = 6;

/// Builds a list of the stored attestations with their verdicts, and of those that only the format
/// presents. The result may be empty.
pub(super) fn attestations(stored: &[Attestation], presented: &[Presented]) -> Markup {
    let is_stored =
        |one: &&Presented| stored.iter().any(|stored| !stored.source.is_empty() && stored.source == one.path);
    let others: Vec<&Presented> = presented.iter().filter(|one| !is_stored(one)).collect();
    html! {
        @if !stored.is_empty() || !others.is_empty() {
            h2 id="attestations" { "Attestations" }
            @for one in stored.iter().take(ROWS) { (card(one)) }
            @for one in others.iter().take(ROWS) { (presented_card(one)) }
            @if stored.len() > ROWS { p.soft { (stored.len() - ROWS) " more are listed by the API." } }
        }
    }
}

/// Describes a verdict in words.
fn verdict_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pending => "pending",
        Verdict::Verified => "verified",
        Verdict::OtherIdentity => "other identity",
        Verdict::Failed => "invalid",
        Verdict::Unverifiable => "unverifiable",
    }
}

fn card(one: &Attestation) -> Markup {
    let facts = &one.facts;
    let kind = if facts.predicate_type.is_empty() { &one.kind } else { &facts.predicate_type };
    let fields = [
        ("Signed by", &facts.identity),
        ("Vouched for by", &facts.issuer),
        ("Key", &facts.key),
        ("Source", &facts.source),
        ("Branch or tag", &facts.source_ref),
        ("Commit", &facts.commit),
        ("Workflow", &facts.workflow),
        ("Run", &facts.run),
        ("Kind", kind),
        ("Location", &one.source),
    ];
    html! {
        div.card {
            h3 { span.tag { (verdict_words(one.verdict)) } " " (parts::short(if one.path.is_empty() { "the version" } else { &one.path })) }
            @if !one.reason.is_empty() { p { (parts::short(&one.reason)) } }
            @if one.verdict != Verdict::Verified { p.soft { "The details below are not verified. Anybody could have claimed them." } }
            dl {
                @for (name, value) in fields { @if !value.is_empty() { dt { (name) } dd { (parts::short(value)) } } }
                dt { "About" } dd { code { (one.subject.to_string()) } }
                @if let Some(at) = facts.signed_at { dt { "Signed" } dd { (dates::time(at)) } }
            }
        }
    }
}

fn presented_card(one: &Presented) -> Markup {
    html! {
        div.card {
            h3 { span.tag { (verdict_words(Verdict::Unverifiable)) } " " (parts::short(if one.file.is_empty() { "the version" } else { &one.file })) }
            dl {
                dt { "Kind" } dd { (parts::short(&one.kind)) }
                @for (name, value) in &one.publisher { dt { (parts::short(name)) } dd { (parts::short(value)) } }
                dt { "Location" } dd { code { (parts::short(&one.path)) } }
            }
        }
    }
}
