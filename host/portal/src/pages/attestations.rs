//! What a version's page shows of signed statements: who made a version and from what, and whether that holds.

use maud::{Markup, html};
use packhouse_runtime::Attestation as Presented;
use packhouse_store::{Attestation, Verdict};

use crate::{dates, parts};

/// What is shown at most: each takes up to 4 KiB of the page.
const ROWS: usize = 6;

/// Those that are kept, each with what it is worth, and those that the format presents of itself alone. Nothing where there are none.
pub(super) fn attestations(kept: &[Attestation], presented: &[Presented]) -> Markup {
    let is_kept =
        |one: &&Presented| kept.iter().any(|kept| !kept.source.is_empty() && kept.source == one.path);
    let others: Vec<&Presented> = presented.iter().filter(|one| !is_kept(one)).collect();
    html! {
        @if !kept.is_empty() || !others.is_empty() {
            h2 { "Attestations" }
            @for one in kept.iter().take(ROWS) { (card(one)) }
            @for one in others.iter().take(ROWS) { (unkept(one)) }
            @if kept.len() > ROWS { p.soft { "And " (kept.len() - ROWS) " more, which the API lists." } }
        }
    }
}

/// What is said of a verdict.
fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pending => "not judged yet",
        Verdict::Verified => "verified",
        Verdict::OtherIdentity => "of another identity",
        Verdict::Failed => "does not hold",
        Verdict::Unverifiable => "not verified",
    }
}

fn card(one: &Attestation) -> Markup {
    let facts = &one.facts;
    let kind = if facts.predicate_type.is_empty() { &one.kind } else { &facts.predicate_type };
    let told = [
        ("Signed by", &facts.identity),
        ("Vouched for by", &facts.issuer),
        ("Key", &facts.key),
        ("Source", &facts.source),
        ("Branch or tag", &facts.source_ref),
        ("Commit", &facts.commit),
        ("Workflow", &facts.workflow),
        ("Run", &facts.run),
        ("Kind", kind),
        ("Where it is", &one.source),
    ];
    html! {
        div.card {
            h3 { span.tag { (words(one.verdict)) } " " (parts::short(if one.path.is_empty() { "the version" } else { &one.path })) }
            @if !one.reason.is_empty() { p { (parts::short(&one.reason)) } }
            @if one.verdict != Verdict::Verified { p.soft { "What it says of itself is a claim that anybody could make." } }
            dl {
                @for (name, value) in told { @if !value.is_empty() { dt { (name) } dd { (parts::short(value)) } } }
                dt { "About" } dd { code { (one.subject.to_string()) } }
                @if let Some(at) = facts.signed_at { dt { "Signed" } dd { (dates::time(at)) } }
            }
        }
    }
}

fn unkept(one: &Presented) -> Markup {
    html! {
        div.card {
            h3 { span.tag { (words(Verdict::Unverifiable)) } " " (parts::short(if one.file.is_empty() { "the version" } else { &one.file })) }
            dl {
                dt { "Kind" } dd { (parts::short(&one.kind)) }
                @for (name, value) in &one.publisher { dt { (parts::short(name)) } dd { (parts::short(value)) } }
                dt { "Where it is" } dd { code { (parts::short(&one.path)) } }
            }
        }
    }
}
