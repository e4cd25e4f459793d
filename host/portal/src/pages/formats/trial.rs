//! What is tried beside what a format runs, for whoever manages the server: how it does, its end, and the form that begins one.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::trials::{self, TrialRequest, Trialed};
use packhouse_app::plugins::{ListedPlugin, MAX_FAILURES, PluginStateName};
use packhouse_store::{RecordingId, TrialTimes};
use packhouse_wire::catalogue;

use crate::seat::{Seat, see_other};
use crate::{Answer, dates, parts, visit};

/// The trials of the formats that have these components.
pub(super) async fn all(
    seat: &Seat,
    components: &[ListedPlugin],
) -> Result<BTreeMap<String, Trialed>, ApiError> {
    let mut found = BTreeMap::new();
    let mut formats: Vec<&str> = components.iter().map(|plugin| plugin.format.as_str()).collect();
    formats.dedup();
    for format in formats {
        match trials::find(&seat.actor, format).await {
            Ok(trialed) => {
                found.insert(format.to_owned(), trialed);
            }
            Err(error) if error.code().is_some_and(|code| std::ptr::eq(code, &catalogue::NOT_FOUND)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// How it does, and its end.
pub(super) fn shown(seat: &Seat, Trialed { row, different, failed }: &Trialed) -> Markup {
    let (new, counts) = (&row.new, &row.counts);
    let state = if row.ended_at.is_some() { "taken back" } else { new.mode.as_str() };
    let of = |number: u64, word: &str| html! { (number) " " (word) };
    html! {
        h3 { "On trial " (parts::tag(state)) }
        @if let Some(at) = row.ended_at { (parts::alert("Too many of its calls failed, so what ran before answers again.")) p { "Taken back " (dates::time(at)) } }
        dl {
            dt { "Digest" } dd { code { (new.digest) } }
            dt { "Begun" } dd { (dates::time(row.started_at)) " by " (parts::said(&new.started_by)) }
            dt { "Where" }
            dd { @match &new.repositories { Some(ids) => (parts::count(ids.len() as u64, "repository", "repositories")), None => "everywhere" } ", " (new.percent) " % of the clients" }
            dt { "Requests" } dd { (counts.calls) }
            @if new.mode == "shadow" {
                dt { "Answered" } dd { (of(counts.equal, "the same")) ", " (of(counts.different, "otherwise")) ", " (of(counts.unanswered, "not, for want of an upstream")) }
                dt { "Not compared" } dd { (of(counts.changed, "whose records changed")) ", " (of(counts.dropped, "for want of time")) }
            }
            dt { "Failed" } dd { (counts.failed) @if let Some(most) = new.max_failures { " of at most " (most) } }
            dt { "Time of a call" } dd { (mean(counts.candidate)) ", and of what runs " (mean(counts.active)) }
            @if !different.is_empty() { dt { "Recordings of other answers" } dd { (recordings(different)) } }
            @if !failed.is_empty() { dt { "Recordings of failures" } dd { (recordings(failed)) } }
        }
        (parts::deed(seat, "/formats", &[("do", "end-trial"), ("format", &new.format)],
            &html! { button type="submit" { "End the trial" span.away { " of " (new.format) } } }))
    }
}

fn recordings(ids: &[RecordingId]) -> Markup {
    html! { @for id in ids { code { (id) } " " } }
}

fn mean(times: TrialTimes) -> Markup {
    match times.calls {
        0 => html! { "not known" },
        calls => html! { (format!("{:.2} ms", times.total_us as f64 / calls as f64 / 1e3)) },
    }
}

/// The form that begins a trial, where there is something to try.
pub(super) fn form(seat: &Seat, own: &[&ListedPlugin], format: &str) -> Markup {
    let runs = own.iter().any(|plugin| plugin.state == PluginStateName::Active);
    let others: Vec<_> = own.iter().filter(|plugin| plugin.state != PluginStateName::Active).collect();
    let digests: Vec<&str> = others.iter().filter_map(|plugin| plugin.digest.as_deref()).collect();
    if !runs || digests.is_empty() {
        return html! {};
    }
    // There is a form for each format, so the fields' ids have the format's name.
    let id = |name: &str| format!("{name}-{format}");
    html! {
        details {
            summary { "Try a component" span.away { " of " (format) } }
            form method="post" action="/formats" {
                (parts::csrf(&seat.csrf))
                (parts::hidden("do", "try")) (parts::hidden("format", format))
                div.field { label for=(id("digest")) { "Component" } select id=(id("digest")) name="digest" { @for digest in &digests { option value=(digest) { (digest) } } } }
                div.field {
                    label for=(id("mode")) { "How" }
                    select id=(id("mode")) name="mode" {
                        option value="shadow" { "shadow: its answers are compared, and nobody sees them" }
                        option value="canary" { "canary: it answers clients" }
                    }
                }
                div.field { label for=(id("repositories")) { "Only in these repositories, by name" } input id=(id("repositories")) name="repositories" type="text" autocomplete="off" dir="auto"; }
                div.field { label for=(id("percent")) { "Share of the clients in percent" } input id=(id("percent")) name="percent" type="number" min="1" max="100" value="100"; }
                div.field { label for=(id("failures")) { "Of a canary: failed calls after which it is taken back" } input id=(id("failures")) name="max_failures" type="number" min="0" placeholder=(MAX_FAILURES); }
                button type="submit" { "Try it" span.away { " in " (format) } }
            }
        }
    }
}

/// Begins a trial, or ends it.
pub(super) async fn change(seat: Arc<Seat>) -> Answer {
    let format = seat.form.text("format");
    let done = if seat.form.text("do") == "end-trial" {
        trials::end(&seat.actor, format).await
    } else {
        begin(&seat, format).await
    };
    match done {
        Ok(()) => Ok(see_other("/formats?done=saved")),
        Err(error) => super::page(&seat, Some(&visit::wrong(&seat, error)?)).await,
    }
}

async fn begin(seat: &Seat, format: &str) -> Result<(), ApiError> {
    let actor = &seat.actor;
    let mut chosen = Vec::new();
    let names = seat.form.text("repositories");
    for name in names.split(|sign: char| sign == ',' || sign.is_whitespace()).filter(|name| !name.is_empty())
    {
        let found = actor
            .app
            .store
            .look_up(actor.organization(), name, None)
            .await?
            .repository
            .as_ref()
            .map(|row| row.id);
        chosen.push(found.ok_or_else(|| ApiError::invalid(&format!("There is no repository `{name}`.")))?);
    }
    let percent = number(seat, "percent", "The share is a whole number from 1 to 100.")?;
    let max_failures = number(seat, "max_failures", "The failed calls are a whole number, or left empty.")?;
    let request = TrialRequest {
        digest: seat.form.text("digest").to_owned(),
        mode: seat.form.text("mode").to_owned(),
        repositories: (!chosen.is_empty()).then_some(chosen),
        percent,
        max_failures,
        accept_changes: seat.form.text("accept") == "on",
    };
    trials::begin(actor, format, request).await.map(drop)
}

/// A field that may be left empty.
fn number<T: FromStr>(seat: &Seat, name: &str, wrong: &str) -> Result<Option<T>, ApiError> {
    match seat.form.text(name) {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| ApiError::invalid(wrong)),
    }
}
