//! Fields of forms, with their values and errors. The API's error sentence appears next to the
//! field that it is about, or above the form if it concerns no single field.

mod settings;

use std::sync::atomic::{AtomicBool, Ordering};

use maud::{Markup, html};
use packhouse_api::error::ApiError;

use crate::dates::{self, DAY_MS};
use crate::fields::Fields;
use crate::parts;

pub(crate) use settings::{Quantity, amount};

/// Maximum number of checkboxes of a group that a page lists, unless more are chosen.
const CHOICES: usize = 60;

/// The values of a form, and the error that refused it.
pub(crate) struct Filled<'a> {
    /// Submitted values; before a submission, the current ones.
    pub(crate) fields: &'a Fields,
    wrong: Option<&'a ApiError>,
    /// True once a field has shown the error.
    error_placed: AtomicBool,
}

/// An input field for text.
#[derive(Clone, Copy, Default)]
pub(crate) struct Text<'a> {
    pub(crate) label: &'a str,
    /// Name of the field in the form.
    pub(crate) name: &'a str,
    /// Type of the input; `text` if empty.
    pub(crate) kind: &'a str,
    /// Explanation below the field, if not empty.
    pub(crate) hint: &'a str,
    /// Value of the attribute `autocomplete`; `off` if empty.
    pub(crate) autocomplete: &'a str,
    pub(crate) required: bool,
    /// Initial value, for a form that was not submitted yet.
    pub(crate) first: &'a str,
}

/// An option of a selection or a group of checkboxes.
pub(crate) struct Choice {
    /// Value that the browser submits.
    pub(crate) value: String,
    /// Text that the member reads.
    pub(crate) label: String,
}

impl Choice {
    /// Returns an option whose value is its label.
    pub(crate) fn word(word: &str) -> Choice {
        Choice { value: word.to_owned(), label: word.to_owned() }
    }
}

impl<'a> Filled<'a> {
    /// Creates a form with these values. `wrong` is the error that refused the form, if there was
    /// one.
    pub(crate) fn new(fields: &'a Fields, wrong: Option<&'a ApiError>) -> Filled<'a> {
        Filled { fields, wrong, error_placed: AtomicBool::new(false) }
    }

    /// Puts the error above the form's content unless one of its fields shows it.
    pub(crate) fn with_error(&self, content: Markup) -> Markup {
        match self.wrong {
            Some(wrong) if !self.error_placed.load(Ordering::Relaxed) => {
                html! { (parts::alert(wrong.message())) (content) }
            }
            _ => content,
        }
    }

    /// Shows the error if it is about this field.
    fn wrong(&self, name: &str) -> Option<Markup> {
        let wrong = self.wrong?;
        let code = wrong.code()?.code;
        // The API's sentence about a setting names the setting.
        let is_setting = code == "invalid_settings"
            && name.strip_prefix("setting-").is_some_and(|key| wrong.message().contains(&format!("`{key}`")));
        if self.error_placed.load(Ordering::Relaxed) || !(is_setting || fields_of(code).contains(&name)) {
            return None;
        }
        self.error_placed.store(true, Ordering::Relaxed);
        Some(html! { p role="alert" id={ (name) "-wrong" } { (wrong.message()) } })
    }

    /// An input field for one line of text.
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

    /// A text area for several lines.
    pub(crate) fn lines(&self, label: &str, name: &str, hint: &str, first: &str) -> Markup {
        let wrong = self.wrong(name);
        let described = described(name, wrong.is_some(), !hint.is_empty());
        html! {
            div.field {
                label for=(name) { (label) }
                @if let Some(wrong) = &wrong { (wrong) }
                // Browsers drop the first line break in a text area, so this adds one.
                textarea id=(name) name=(name) rows="3" aria-describedby=[described] dir="auto" { "\n" (self.fields.get(name).unwrap_or(first)) }
                @if !hint.is_empty() { p.hint id={ (name) "-hint" } { (hint) } }
            }
        }
    }

    /// A drop-down list to choose one option.
    pub(crate) fn select(&self, label: &str, name: &str, choices: &[Choice], first: &str) -> Markup {
        self.select_with_hint(label, name, choices, first, "")
    }

    pub(crate) fn check(&self, label: &str, name: &str, first: bool) -> Markup {
        let checked = self.is_checked(name, first);
        html! { label.check { input type="checkbox" name=(name) value="yes" checked[checked]; (label) } }
    }

    fn is_checked(&self, name: &str, first: bool) -> bool {
        // A missing value means "not checked" only if the form was submitted.
        if self.fields.has("sent") { self.fields.has(name) } else { first }
    }

    /// A group of checkboxes of one name. A long group has a filter and lists only the matching and
    /// the chosen options.
    pub(crate) fn checks(&self, legend: &str, name: &str, choices: &[Choice], hint: &str) -> Markup {
        let wrong = self.wrong(name);
        let filter = format!("{name}_filter");
        let filter_text = self.fields.text(&filter).to_lowercase();
        let many = choices.len() > 12;
        let chosen = |choice: &&Choice| self.fields.holds(name, &choice.value);
        let matching = choices
            .iter()
            .filter(|choice| !chosen(choice) && choice.label.to_lowercase().contains(&filter_text));
        let offered: Vec<&Choice> = choices
            .iter()
            .filter(chosen)
            .chain(matching)
            .take(CHOICES.max(choices.iter().filter(chosen).count()))
            .collect();
        let left = choices.len() > offered.len() && filter_text.is_empty();
        html! {
            fieldset aria-describedby=[wrong.is_some().then(|| format!("{name}-wrong"))] {
                legend { (legend) }
                @if let Some(wrong) = &wrong { (wrong) }
                @if !hint.is_empty() { p.hint { (hint) } }
                @if many {
                    // Enter presses the first button of a form. This button is first, so that Enter
                    // does not press the button of the filter.
                    button.away type="submit" tabindex="-1" aria-hidden="true" {}
                    div.bar {
                        div.field {
                            label for=(filter) { "Filter " (legend.to_lowercase()) }
                            input id=(filter) name=(filter) value=(filter_text) autocomplete="off" data-narrows={ (name) "-list" };
                        }
                        button type="submit" name="filter" value=(name) formnovalidate { "Filter" }
                    }
                }
                div class=[many.then_some("many")] id={ (name) "-list" } tabindex=[many.then_some("0")] {
                    @for choice in &offered {
                        label.check dir="auto" {
                            input type="checkbox" name=(name) value=(choice.value) checked[self.fields.holds(name, &choice.value)];
                            (choice.label)
                        }
                    }
                    @if choices.is_empty() { p.soft { "There is nothing to choose from yet." } }
                }
                @if left { p.hint { "There are more. Filter to find them." } }
            }
        }
    }

    /// An expiry: the end of a day, or never. The initial value is `days` after `now`, or empty for
    /// `None`.
    pub(crate) fn expires(&self, now: i64, days: Option<i64>, hint: &str) -> Markup {
        let never = html! { label.check { input type="checkbox" name="never" value="yes" checked[self.fields.has("never")] data-never="expires"; "Never" } };
        self.expiry_date(now, days, hint, &never)
    }

    /// An expiry that cannot be never: the end of a day, by default `days` after `now`.
    pub(crate) fn required_expiry(&self, now: i64, days: Option<i64>, hint: &str) -> Markup {
        self.expiry_date(now, days, hint, &Markup::default())
    }

    /// The date field of an expiry. `beside` is the content next to the field.
    fn expiry_date(&self, now: i64, days: Option<i64>, hint: &str, beside: &Markup) -> Markup {
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
                    (beside)
                }
                @if !hint.is_empty() { p.hint id="expires-hint" { (hint) } }
            }
        }
    }
}

/// Returns the expiry in the form as a value for the body of the API call: Unix ms, or null for
/// never. `None` if the form has no expiry. A text that is not a date is returned unchanged, and
/// the API refuses it.
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

/// Returns the fields that an error code is about.
fn fields_of(code: &str) -> &'static [&'static str] {
    match code {
        "invalid_name"
        | "invalid_repository_name"
        | "repository_already_exists"
        | "invalid_team_name"
        | "team_already_exists"
        | "service_account_already_exists" => &["name"],
        "invalid_scope" => &["scope", "scopes"],
        "invalid_token_format" | "invalid_format" | "invalid_service_key_format" => &["format"],
        "invalid_kind" => &["kind"],
        "invalid_upstream" => &["upstream"],
        "invalid_provider" => &["provider"],
        "invalid_issuer" => &["issuer"],
        "invalid_packages" => &["packages"],
        "invalid_members" => &["members"],
        "missing_repo_ids" | "repo_access_denied" | "repo_backing_scope_mismatch" => &["repositories"],
        "missing_expires_at"
        | "invalid_expires_at"
        | "expires_at_in_past"
        | "service_key_must_expire"
        | "api_token_must_expire" => &["expires"],
        "invalid_overlap_hours" | "overlap_exceeds_expiry" | "overlap_exceeds_scheduled_end" => {
            &["overlap_hours"]
        }
        "invalid_credentials" | "too_many_attempts" => &["password"],
        "second_factor_required" | "invalid_code" => &["code"],
        "organization_required" => &["organization"],
        "user_already_exists" => &["email"],
        _ => &[],
    }
}
