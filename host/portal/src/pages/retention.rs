//! `/organization/retention` and the page of each policy: what it says, what it would delete, what its runs did.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::PageRequest;
use packhouse_api::operations::retention::{self, Policy, PolicyRun, Preview, Reach, Rule};
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::{PolicyId, RepositoryId};
use serde_json::{Map, Value, json};

use super::Routes;
use super::repositories::{ROWS, after};
use super::tokens::{choice, reachable};
use crate::field::{Choice, Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, dates, fault, parts};

/// Where the policies are.
const PATH: &str = "/organization/retention";
/// Versions of a preview that are shown.
const SHOWN: usize = 200;
/// Runs that are shown.
const RUNS: u32 = 10;
/// Policies that another page shows.
const POLICIES: u32 = 100;

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![
        (PATH, visit::page(list).merge(visit::form(create))),
        ("/organization/retention/{id}", visit::page(show).merge(visit::form(act))),
    ]
}

/// The policies on a page of something else: those that hold in one repository, or all.
pub(super) async fn section(seat: &Seat, of: Option<RepositoryId>) -> Result<Markup, ApiError> {
    if !seat.holds(ManageRepositories) {
        return Ok(Markup::default());
    }
    let listed = retention::list(&seat.actor, PageRequest { limit: POLICIES, after: None }).await?;
    let holds = |policy: &&Policy| match (&policy.rule.repositories, of) {
        (Reach::Only(ids), Some(of)) => ids.contains(&of),
        _ => true,
    };
    let policies: Vec<&Policy> = listed.rows.iter().filter(holds).collect();
    Ok(html! {
        h2 { "Retention" }
        div.card {
            @if policies.is_empty() { p { "No policy deletes anything here." } } @else { (rows(seat, &policies)) }
            p { a href=(PATH) { "Retention policies" } }
        }
    })
}

fn rows(seat: &Seat, policies: &[&Policy]) -> Markup {
    html! {
        ul.rows {
            @for policy in policies {
                li {
                    div.what {
                        a href={ (PATH) "/" (policy.row.id) } { (parts::said(&policy.row.name)) }
                        p.meta { (parts::tag(mode(policy))) span { "made by " (parts::said(&policy.row.created_by)) " " (dates::time(policy.row.created_at)) } }
                    }
                    (parts::deed(seat, &format!("{PATH}/{}", policy.row.id), &[("do", "preview")],
                        &html! { button type="submit" { "Preview " (parts::said(&policy.row.name)) } }))
                }
            }
        }
    }
}

fn mode(policy: &Policy) -> &'static str {
    if policy.row.enforced { "enforced" } else { "paused" }
}

async fn list(seat: Arc<Seat>) -> Answer {
    listed(&seat, None).await
}

async fn listed(seat: &Seat, wrong: Option<&ApiError>) -> Answer {
    let page = PageRequest { limit: ROWS, after: after::<PolicyId>(seat)? };
    let listed = retention::list(&seat.actor, page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|policy| policy.row.id.to_string());
    let policies: Vec<&Policy> = listed.rows.iter().collect();
    let filled = Filled::new(&seat.form, wrong);
    let fields = rule_fields(&filled, &hosted(seat).await?);
    let body = html! {
        @if policies.is_empty() {
            div.card.empty {
                h2 { "None yet" }
                p { "A policy deletes what is old or not used: every hour, once you have seen what it would delete, and with an undo from the repository's trash." }
            }
        } @else { (rows(seat, &policies)) }
        (parts::further(PATH, &[], next.as_deref()))
        form.card method="post" action=(PATH) {
            h2 { "New policy" }
            (parts::guard(seat))
            (parts::hidden("sent", "yes"))
            (filled.told(html! { (fields) button.go type="submit" { "Create policy" } }))
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    let crumbs = html! { p.crumbs { a href="/organization" { "Organization" } } };
    Ok(frame::page(seat, Sheet { status, crumbs, ..Sheet::of("Retention policies") }, &body))
}

/// The repositories to choose from: a policy deletes from hosted ones alone.
async fn hosted(seat: &Seat) -> Result<Vec<Choice>, ApiError> {
    Ok(reachable(seat).await?.iter().filter(|row| row.kind == "hosted").map(choice).collect())
}

/// The fields of a rule.
fn rule_fields(filled: &Filled<'_>, repositories: &[Choice]) -> Markup {
    let choice = |value: &str, label: &str| Choice { value: value.to_owned(), label: label.to_owned() };
    let tagged = [choice("", "either"), choice("yes", "tagged"), choice("no", "not tagged")];
    let prerelease = [choice("", "either"), choice("yes", "pre-releases"), choice("no", "releases")];
    let number = |label: &'static str, name: &'static str, hint: &'static str| {
        filled.text(Text { label, name, kind: "number", hint, ..Text::default() })
    };
    html! {
        (filled.text(Text { label: "Name", name: "name", required: true, ..Text::default() }))
        (filled.check("Every hosted repository, also later ones", "every", false))
        (filled.checks("Repositories", "repositories", repositories, ""))
        fieldset {
            legend { "Which versions" }
            (filled.lines("Packages", "packages", "Patterns, one to a line, in which * stands for any text; empty: any.", ""))
            (filled.lines("Versions", "versions", "Patterns, one to a line; empty: any.", ""))
            (filled.select("Tags", "tagged", &tagged, ""))
            (filled.select("Pre-releases", "prerelease", &prerelease, ""))
        }
        fieldset {
            legend { "Delete of these" }
            (number("Published before (days)", "published_before_days", "Published so many days ago or more; 0: at any age."))
            (number("Not downloaded (days)", "not_downloaded_days", "Not fetched for so many days. Where both are filled in, both must hold."))
        }
        fieldset {
            legend { "Keep in any case" }
            (number("Newest", "newest", "The latest publications of each package, so many."))
            (filled.lines("Kept versions", "kept", "Patterns, one to a line.", ""))
        }
        (filled.text(Text { label: "Deletes in one run", name: "max_deletes", kind: "number", hint: "At most.", required: true, first: "100", ..Text::default() }))
    }
}

/// What the form says, as the body of the call.
fn body(form: &Fields) -> Value {
    let lines = |name: &str| -> Option<Value> {
        let lines: Vec<&str> =
            form.text(name).lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        (!lines.is_empty()).then(|| json!(lines))
    };
    let number = |name: &str| match form.text(name) {
        "" => None,
        text => Some(text.parse::<u64>().map_or_else(|_| text.into(), Value::from)),
    };
    let truth = |name: &str| match form.text(name) {
        "yes" => Some(json!(true)),
        "no" => Some(json!(false)),
        _ => None,
    };
    let object = |fields: [(&str, Option<Value>); 4]| -> Value {
        fields
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect::<Map<_, _>>()
            .into()
    };
    let (tagged, prerelease) = (truth("tagged"), truth("prerelease"));
    json!({
        "name": form.text("name"),
        "repositories": if form.has("every") { json!("*") } else { form.list("repositories") },
        "match": object([("packages", lines("packages")), ("versions", lines("versions")), ("tagged", tagged), ("prerelease", prerelease)]),
        "delete": object([("published_before_days", number("published_before_days")),
            ("not_downloaded_days", number("not_downloaded_days")), ("", None), ("", None)]),
        "keep": object([("newest", number("newest")), ("versions", lines("kept")), ("", None), ("", None)]),
        "max_deletes": number("max_deletes"),
    })
}

/// A rule as its form was filled in.
fn fields(name: &str, rule: &Rule) -> Fields {
    let mut fields = vec![("sent".to_owned(), "yes".to_owned()), ("name".to_owned(), name.to_owned())];
    let mut put =
        |name: &str, value: Option<String>| fields.extend(value.map(|value| (name.to_owned(), value)));
    match &rule.repositories {
        Reach::All => put("every", Some("yes".to_owned())),
        Reach::Only(ids) => ids.iter().for_each(|id| put("repositories", Some(id.to_string()))),
    }
    let lines = |patterns: &Option<Vec<String>>| patterns.as_ref().map(|patterns| patterns.join("\n"));
    let truth = |truth: Option<bool>| truth.map(|truth| if truth { "yes" } else { "no" }.to_owned());
    let number = |number: Option<u32>| number.map(|number| number.to_string());
    put("packages", rule.matching.packages.as_ref().map(|patterns| patterns.written().join("\n")));
    put("versions", lines(&rule.matching.versions));
    put("tagged", truth(rule.matching.tagged));
    put("prerelease", truth(rule.matching.prerelease));
    put("published_before_days", number(rule.delete.published_before_days));
    put("not_downloaded_days", number(rule.delete.not_downloaded_days));
    put("newest", number(rule.keep.newest));
    put("kept", lines(&rule.keep.versions));
    put("max_deletes", Some(rule.max_deletes.to_string()));
    Fields(fields)
}

async fn create(seat: Arc<Seat>) -> Answer {
    if seat.form.has("filter") {
        return listed(&seat, None).await;
    }
    let made = async {
        let (name, rule) = forms::retention_policy(body(&seat.form))?;
        retention::create(&seat.actor, name, rule).await
    };
    match made.await {
        Ok(policy) => Ok(see_other(&format!("{PATH}/{}?done=created", policy.row.id))),
        Err(error) if seat.holds(ManageRepositories) => {
            listed(&seat, Some(&visit::wrong(&seat, error)?)).await
        }
        Err(error) => Err(error),
    }
}

async fn show(seat: Arc<Seat>) -> Answer {
    let policy = retention::find(&seat.actor, seat.named("id")).await?;
    shown(&seat, &policy, None, None).await
}

/// The page of one.
async fn shown(seat: &Seat, policy: &Policy, preview: Option<&Preview>, wrong: Option<&ApiError>) -> Answer {
    let page = PageRequest { limit: RUNS, after: None };
    let runs = retention::runs(&seat.actor, &policy.row.id.to_string(), page).await?;
    let saving = seat.form.text("do") == "save";
    let held = if saving { seat.form.clone() } else { fields(&policy.row.name, &policy.rule) };
    let filled = Filled::new(&held, wrong.filter(|_| saving));
    let rule = rule_fields(&filled, &hosted(seat).await?);
    let button = |word: &str, class: &str| html! { button type="submit" class=[(!class.is_empty()).then_some(class)] { (word) } };
    let deed = |name: &str, button: Markup| parts::deed(seat, &seat.path, &[("do", name)], &button);
    let enforced = policy.row.enforced;
    let body = html! {
        @if let Some(wrong) = wrong.filter(|_| !saving) { (parts::alert(wrong.message())) }
        div.card {
            p { (parts::tag(mode(policy))) " " @if enforced { "It runs every hour." } @else if policy.row.previewed { "It was previewed as it is, and may be enforced." } @else { "It is enforced only after a preview of it as it is." } }
            div.bar {
                (deed("preview", button("Preview", if enforced { "" } else { "go" })))
                @if enforced { (deed("pause", button("Pause", ""))) (deed("run", button("Run now", ""))) }
                @else if policy.row.previewed { (deed("enforce", button("Enforce", "go"))) }
            }
        }
        @if let Some(preview) = preview { (previewed(preview)) }
        (ran(&runs.rows))
        form.card method="post" action=(seat.path) {
            h2 { "Rule" }
            p { "A policy whose rule is changed is paused." }
            (parts::guard(seat))
            (parts::hidden("do", "save"))
            (parts::hidden("sent", "yes"))
            (filled.told(html! { (rule) button.go type="submit" { "Save" } }))
        }
        div.card.danger {
            h2 { "Delete" }
            p { "What it deleted can still be brought back from the trash." }
            (parts::deed_in_two_steps(seat, &seat.path, &[("do", "delete")], "Delete", ""))
        }
    };
    let crumbs = html! { p.crumbs { a href="/organization" { "Organization" } " " a href=(PATH) { "Retention policies" } } };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(seat, Sheet { status, crumbs, ..Sheet::of(&policy.row.name) }, &body))
}

fn previewed(preview: &Preview) -> Markup {
    let Preview { items, hidden, kept, versions, bytes, truncated } = preview;
    let rows = html! {
        @for item in items.iter().take(SHOWN) {
            tr {
                th scope="row" { (parts::said(&item.repository_name)) }
                td { (parts::said(&item.package)) }
                td { (parts::short(&item.version)) }
                td { @match item.published_at { Some(at) => (dates::time(at)), None => "unknown" } }
                td { @match item.last_downloaded_at { Some(at) => (dates::time(at)), None => "never" } }
                td.num { (parts::size(item.bytes)) }
                td { (item.because) }
            }
        }
    };
    html! {
        section role="status" {
            h2 { "Preview" }
            p {
                "It would delete " strong { (parts::count(*versions, "version", "versions")) } " of " (parts::size(*bytes)) " and keep " (parts::count(*kept, "other", "others")) "."
                @if *truncated { " One run deletes " (items.len() as u64 + hidden) " of them." }
                @if *hidden > 0 { " " (hidden) " of them are in repositories that you may not read." }
            }
        }
        @if !items.is_empty() {
            (parts::table("What it would delete", &["Repository", "Package", "Version", "Published", "Last download", "Size", "Because"], &rows))
            @if items.len() > SHOWN { p { "These are the first " (SHOWN) ": the oldest." } }
        }
    }
}

fn ran(runs: &[PolicyRun]) -> Markup {
    if runs.is_empty() {
        return Markup::default();
    }
    let rows = html! {
        @for PolicyRun { row, .. } in runs {
            tr {
                th scope="row" { (dates::time(row.started_at)) }
                td { @match row.ended_at { Some(at) => (dates::time(at)), None => "goes on" } }
                td.num { (row.deleted) }
                td.num { (parts::size(row.bytes)) }
                td { @if let Some(error) = &row.error { (parts::said(error)) } }
            }
        }
    };
    html! {
        h2 { "Runs" }
        (parts::table("Runs", &["Began", "Ended", "Deleted", "Size", "Error"], &rows))
        @for PolicyRun { row, skipped } in runs.iter().filter(|run| !run.skipped.is_empty()) {
            details {
                summary { "Skipped by the run of " (dates::time(row.started_at)) ": " (skipped.len()) }
                ul { @for one in skipped.iter().take(SHOWN) { li { (parts::said(&one.package)) " " (parts::short(&one.version)) ": " (parts::said(&one.because)) } } }
            }
        }
    }
}

async fn act(seat: Arc<Seat>) -> Answer {
    let id = seat.named("id");
    let policy = retention::find(&seat.actor, id).await?;
    let mode = |enforced| retention::PolicyRequest { enforced: Some(enforced), ..Default::default() };
    let done = match seat.form.text("do") {
        "save" if seat.form.has("filter") => return shown(&seat, &policy, None, None).await,
        "preview" => {
            let preview = retention::preview(&seat.actor, id).await?;
            let policy = retention::find(&seat.actor, id).await?;
            return shown(&seat, &policy, Some(&preview), None).await;
        }
        "enforce" => retention::change(&seat.actor, id, mode(true)).await.map(drop),
        "pause" => retention::change(&seat.actor, id, mode(false)).await.map(drop),
        "run" => retention::run(&seat.actor, id).await.map(drop),
        "delete" => {
            retention::remove(&seat.actor, id).await?;
            return Ok(see_other(&format!("{PATH}?done=deleted")));
        }
        _ => save(&seat, id, &policy).await,
    };
    match done {
        Ok(()) => Ok(see_other(&format!("{}?done=saved", seat.path))),
        Err(error) => shown(&seat, &policy, None, Some(&visit::wrong(&seat, error)?)).await,
    }
}

/// A name alone pauses nothing.
async fn save(seat: &Seat, id: &str, policy: &Policy) -> Result<(), ApiError> {
    let mut request = forms::retention_change(body(&seat.form))?;
    let rule = &policy.rule;
    let same = request.repositories.as_ref() == Some(&rule.repositories)
        && request.matching.as_ref() == Some(&rule.matching)
        && request.delete.as_ref() == Some(&rule.delete)
        && request.keep.as_ref() == Some(&rule.keep)
        && request.max_deletes == Some(rule.max_deletes);
    if same {
        request = retention::PolicyRequest { name: request.name, ..Default::default() };
    }
    retention::change(&seat.actor, id, request).await.map(drop)
}
