//! Fields of forms, with what was filled in and what was wrong with it: the API's sentence stands beside the field that it is about,
//! and above the form where it is about none.

use std::sync::atomic::{AtomicBool, Ordering};

use maud::{Markup, html};
use packhouse_api::error::ApiError;

use crate::dates::{self, DAY_MS};
use crate::fields::Fields;
use crate::parts;

/// Repositories and the like that are shown to choose from at one time.
const CHOICES: usize = 60;

/// What was filled in, and what was wrong with it.
pub(crate) struct Filled<'a> {
    /// What was filled in.
    pub(crate) fields: &'a Fields,
    wrong: Option<&'a ApiError>,
    told: AtomicBool,
}

/// A field for text.
#[derive(Clone, Copy, Default)]
pub(crate) struct Text<'a> {
    /// Its label.
    pub(crate) label: &'a str,
    /// By which the form knows it.
    pub(crate) name: &'a str,
    /// Its type; `text` where it is empty.
    pub(crate) kind: &'a str,
    /// What to put there.
    pub(crate) hint: &'a str,
    /// For the browser's memory; `off` where it is empty.
    pub(crate) autocomplete: &'a str,
    /// Whether it must be filled in.
    pub(crate) required: bool,
    /// What stands there at first.
    pub(crate) first: &'a str,
}

/// One of several things to choose.
pub(crate) struct Choice {
    /// What is sent.
    pub(crate) value: String,
    /// What is read.
    pub(crate) label: String,
}

impl Choice {
    /// One that is sent as it is read.
    pub(crate) fn word(word: &str) -> Choice {
        Choice { value: word.to_owned(), label: word.to_owned() }
    }
}

impl<'a> Filled<'a> {
    /// What was filled in.
    pub(crate) fn new(fields: &'a Fields, wrong: Option<&'a ApiError>) -> Filled<'a> {
        Filled { fields, wrong, told: AtomicBool::new(false) }
    }

    /// The form's content, with what was wrong above it where no field of it has said so.
    pub(crate) fn told(&self, content: Markup) -> Markup {
        match self.wrong {
            Some(wrong) if !self.told.load(Ordering::Relaxed) => {
                html! { (parts::alert(wrong.message())) (content) }
            }
            _ => content,
        }
    }

    /// What was wrong with this field.
    fn wrong(&self, name: &str) -> Option<Markup> {
        let wrong = self.wrong?;
        if self.told.load(Ordering::Relaxed)
            || fields_of(wrong.code()?.code).iter().all(|about| *about != name)
        {
            return None;
        }
        self.told.store(true, Ordering::Relaxed);
        Some(html! { p role="alert" id={ (name) "-wrong" } { (wrong.message()) } })
    }

    /// A field for text.
    pub(crate) fn text(&self, field: Text<'_>) -> Markup {
        let Text { label, name, kind, hint, autocomplete, required, first } = field;
        let wrong = self.wrong(name);
        let secret = kind == "password";
        let value = if secret { "" } else { self.fields.get(name).unwrap_or(first) };
        let described = described(name, wrong.is_some(), !hint.is_empty());
        html! {
            div.field {
                label for=(name) { (label) }
                @if let Some(wrong) = &wrong { (wrong) }
                input id=(name) name=(name) type=(or(kind, "text")) value=[(!secret).then_some(value)]
                    autocomplete=(or(autocomplete, "off")) required[required] aria-invalid=[wrong.is_some().then_some("true")]
                    aria-describedby=[described] dir=[(!secret).then_some("auto")];
                @if !hint.is_empty() { p.hint id={ (name) "-hint" } { (hint) } }
            }
        }
    }

    /// A field for several lines.
    pub(crate) fn lines(&self, label: &str, name: &str, hint: &str, first: &str) -> Markup {
        let wrong = self.wrong(name);
        let described = described(name, wrong.is_some(), !hint.is_empty());
        html! {
            div.field {
                label for=(name) { (label) }
                @if let Some(wrong) = &wrong { (wrong) }
                // A browser takes the first line break away.
                textarea id=(name) name=(name) rows="3" aria-describedby=[described] dir="auto" { "\n" (self.fields.get(name).unwrap_or(first)) }
                @if !hint.is_empty() { p.hint id={ (name) "-hint" } { (hint) } }
            }
        }
    }

    /// A field to choose one of several.
    pub(crate) fn select(&self, label: &str, name: &str, choices: &[Choice], first: &str) -> Markup {
        let wrong = self.wrong(name);
        let chosen = self.fields.get(name).unwrap_or(first);
        let described = described(name, wrong.is_some(), false);
        html! {
            div.field {
                label for=(name) { (label) }
                @if let Some(wrong) = &wrong { (wrong) }
                select id=(name) name=(name) aria-describedby=[described] data-kinds[name == "kind"] {
                    @for choice in choices {
                        option value=(choice.value) selected[choice.value == chosen] { (choice.label) }
                    }
                }
            }
        }
    }

    /// A checkbox.
    pub(crate) fn check(&self, label: &str, name: &str, first: bool) -> Markup {
        // An empty form says nothing yet; one that was sent says `no` by saying nothing.
        let sent = self.fields.has("sent");
        let checked = if sent { self.fields.has(name) } else { first };
        html! { label.check { input type="checkbox" name=(name) value="yes" checked[checked]; (label) } }
    }

    /// A group of checkboxes of one name. Where there are many, those that match the filter are shown, and those that are chosen.
    pub(crate) fn checks(&self, legend: &str, name: &str, choices: &[Choice], hint: &str) -> Markup {
        let wrong = self.wrong(name);
        let filter = format!("{name}_filter");
        let wanted = self.fields.text(&filter).to_lowercase();
        let many = choices.len() > 12;
        let chosen = |choice: &&Choice| self.fields.holds(name, &choice.value);
        let matching =
            choices.iter().filter(|choice| !chosen(choice) && choice.label.to_lowercase().contains(&wanted));
        let shown: Vec<&Choice> = choices
            .iter()
            .filter(chosen)
            .chain(matching)
            .take(CHOICES.max(choices.iter().filter(chosen).count()))
            .collect();
        let left = choices.len() > shown.len() && wanted.is_empty();
        html! {
            fieldset aria-describedby=[wrong.is_some().then(|| format!("{name}-wrong"))] {
                legend { (legend) }
                @if let Some(wrong) = &wrong { (wrong) }
                @if !hint.is_empty() { p.hint { (hint) } }
                @if many {
                    // What Enter presses, in the place of the filter.
                    button.away type="submit" tabindex="-1" aria-hidden="true" {}
                    div.bar {
                        div.field {
                            label for=(filter) { "Filter " (legend.to_lowercase()) }
                            input id=(filter) name=(filter) value=(wanted) autocomplete="off" data-narrows={ (name) "-list" };
                        }
                        button type="submit" name="filter" value=(name) formnovalidate { "Filter" }
                    }
                }
                div class=[many.then_some("many")] id={ (name) "-list" } tabindex=[many.then_some("0")] {
                    @for choice in &shown {
                        label.check dir="auto" {
                            input type="checkbox" name=(name) value=(choice.value) checked[self.fields.holds(name, &choice.value)];
                            (choice.label)
                        }
                    }
                    @if choices.is_empty() { p.soft { "There are none yet." } }
                }
                @if left { p.hint { "More are there; filter to see them." } }
            }
        }
    }

    /// When something expires: the end of a day, or never. `days` from `now` stand there at first, none for an empty field.
    pub(crate) fn expires(&self, now: i64, days: Option<i64>, hint: &str) -> Markup {
        let wrong = self.wrong("expires");
        let first = days.map(|days| dates::day(now + days * DAY_MS)).unwrap_or_default();
        let described = described("expires", wrong.is_some(), !hint.is_empty());
        html! {
            div.field {
                label for="expires" { "Expires" }
                @if let Some(wrong) = &wrong { (wrong) }
                div.inline {
                    input id="expires" name="expires" type="date" value=(self.fields.get("expires").unwrap_or(&first))
                        aria-invalid=[wrong.is_some().then_some("true")] aria-describedby=[described];
                    label.check { input type="checkbox" name="never" value="yes" checked[self.fields.has("never")] data-never="expires"; "Never" }
                }
                @if !hint.is_empty() { p.hint id="expires-hint" { (hint) } }
            }
        }
    }
}

/// What a form says of an expiry, as a body has it: ms since 1970, null for never, none where nothing is said. What is no day is left
/// as it is, for whoever judges it.
pub(crate) fn expiry(fields: &Fields) -> Option<serde_json::Value> {
    if fields.has("never") {
        return Some(serde_json::Value::Null);
    }
    match fields.text("expires") {
        "" => None,
        text => Some(dates::end_of_day(text).map_or_else(|| text.into(), Into::into)),
    }
}

fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

fn described(name: &str, wrong: bool, hint: bool) -> Option<String> {
    let ids = [(wrong, "wrong"), (hint, "hint")].into_iter().filter(|(there, _)| *there);
    let ids: Vec<String> = ids.map(|(_, what)| format!("{name}-{what}")).collect();
    (!ids.is_empty()).then(|| ids.join(" "))
}

/// Which fields a code is about.
fn fields_of(code: &str) -> &'static [&'static str] {
    match code {
        "invalid_name" | "invalid_repository_name" | "repository_already_exists" => &["name"],
        "invalid_scope" => &["scope"],
        "invalid_token_format" | "invalid_format" | "invalid_service_key_format" => &["format"],
        "invalid_kind" => &["kind"],
        "invalid_upstream" => &["upstream"],
        "invalid_provider" => &["provider"],
        "invalid_issuer" => &["issuer"],
        "invalid_packages" => &["packages"],
        "invalid_members" => &["members"],
        "missing_repo_ids" | "repo_access_denied" | "repo_backing_scope_mismatch" => &["repositories"],
        "missing_expires_at" | "invalid_expires_at" | "expires_at_in_past" | "service_key_must_expire" => {
            &["expires"]
        }
        "invalid_overlap_hours" | "overlap_exceeds_expiry" | "overlap_exceeds_scheduled_end" => {
            &["overlap_hours"]
        }
        "invalid_credentials" | "too_many_attempts" => &["password"],
        "organization_required" => &["organization"],
        "user_already_exists" => &["email"],
        _ => &[],
    }
}
