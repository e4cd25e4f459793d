//! `/retention` and the page of each policy: its rule, a preview, and the results of its past runs.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::PageRequest;
use packhouse_api::operations::retention::{self, Policy, PolicyRun, Preview, Reach, Rule};
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_identity::permissions::{RepositoryAction, RepositoryPermission};
use packhouse_store::{PolicyId, RepositoryId};
use serde_json::{Map, Value, json};

use super::Routes;
use super::repositories::{ROWS, after};
use super::tokens::{choice, reachable};
use crate::field::{Choice, Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, dates, fault, parts};

/// Path of the list of retention policies.
const PATH: &str = "/retention";
/// Maximum rows of a preview.
const MAX_ROWS: usize = 200;
/// Maximum number of past runs on the page of a policy.
const RUNS: u32 = 10;
/// Maximum number of policies on other pages.
const POLICIES: u32 = 100;

pub(super) fn routes() -> Routes {
    vec![
        (PATH, visit::page(list).merge(visit::form(create))),
        ("/retention/{id}", visit::page(show).merge(visit::form(act))),
    ]
}

/// Builds the section about retention on other pages. It lists the policies that apply to the
/// repository `of`, or all policies without it.
pub(super) async fn section(ctx: &PageContext, of: Option<RepositoryId>) -> Result<Markup, ApiError> {
    if !manages_some(ctx) {
        return Ok(Markup::default());
    }
    let listed = retention::list(&ctx.actor, PageRequest { limit: POLICIES, after: None }).await?;
    let holds = |policy: &&Policy| match (&policy.rule.repositories, of) {
        (Reach::Only(ids), Some(of)) => ids.contains(&of),
        _ => true,
    };
    let policies: Vec<&Policy> = listed.rows.iter().filter(holds).collect();
    Ok(html! {
        h2 { "Retention" }
        div.card {
            @if policies.is_empty() { p { "No retention policy applies here." } } @else { (rows(ctx, &policies)) }
            p { a href=(PATH) { "Manage retention policies" } }
        }
    })
}

fn rows(ctx: &PageContext, policies: &[&Policy]) -> Markup {
    html! {
        ul.rows {
            @for policy in policies {
                li {
                    div.what {
                        a href={ (PATH) "/" (policy.row.id) } { (parts::isolated(&policy.row.name)) }
                        p.meta { (parts::tag(mode(policy))) span { "created by " (parts::isolated(&policy.row.created_by)) " " (dates::time(policy.row.created_at)) } }
                    }
                    (parts::action_button(ctx, &format!("{PATH}/{}", policy.row.id), &[("do", "preview")],
                        &html! { button type="submit" { "Preview " (parts::isolated(&policy.row.name)) } }))
                }
            }
        }
    }
}

fn mode(policy: &Policy) -> &'static str {
    if policy.row.enforced { "enforced" } else { "paused" }
}

async fn list(ctx: Arc<PageContext>) -> PageResult {
    listed(&ctx, None).await
}

async fn listed(ctx: &PageContext, wrong: Option<&ApiError>) -> PageResult {
    let page = PageRequest { limit: ROWS, after: after::<PolicyId>(ctx)? };
    let listed = retention::list(&ctx.actor, page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|policy| policy.row.id.to_string());
    let policies: Vec<&Policy> = listed.rows.iter().collect();
    let filled = Filled::new(&ctx.form, wrong);
    let fields = rule_fields(&filled, &hosted(ctx).await?);
    let body = html! {
        @if policies.is_empty() {
            div.card.empty {
                h2 { "No retention policies yet" }
                p { "A policy deletes old or unused versions every hour. You preview it before you enforce it, and you can restore deleted versions from the repository's trash." }
            }
        } @else {
            (parts::list_length(ctx, policies.len(), listed.more, "policy", "policies"))
            (rows(ctx, &policies))
        }
        (parts::next_page_link(PATH, &[], next.as_deref()))
        form.card method="post" action=(PATH) {
            h2 { "New policy" }
            (parts::form_tokens(ctx))
            (parts::hidden("sent", "yes"))
            (filled.with_error(html! { (fields) button.go type="submit" { "Create policy" } }))
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, ..Sheet::of("Retention policies") }, &body))
}

/// Returns the repositories to choose from: policies apply only to hosted ones, and need the right
/// to manage each.
async fn hosted(ctx: &PageContext) -> Result<Vec<Choice>, ApiError> {
    let rows = reachable(ctx).await?;
    Ok(rows.iter().filter(|row| row.kind == "hosted" && ctx.actor.manages(row)).map(choice).collect())
}

/// Returns whether the member may manage all repositories or some of them.
fn manages_some(ctx: &PageContext) -> bool {
    let manages = |one: &RepositoryPermission| one.actions.contains(&RepositoryAction::Manage);
    ctx.holds(ManageRepositories) || ctx.actor.permissions().repositories.iter().any(manages)
}

/// Builds the fields of a rule.
fn rule_fields(filled: &Filled<'_>, repositories: &[Choice]) -> Markup {
    let choice = |value: &str, label: &str| Choice { value: value.to_owned(), label: label.to_owned() };
    let tagged = [choice("", "either"), choice("yes", "tagged"), choice("no", "not tagged")];
    let prerelease = [choice("", "either"), choice("yes", "pre-releases"), choice("no", "releases")];
    let number = |label: &'static str, name: &'static str, hint: &'static str| {
        filled.text(Text { label, name, kind: "number", hint, ..Text::default() })
    };
    html! {
        (filled.text(Text { label: "Name", name: "name", required: true, ..Text::default() }))
        (filled.check("All hosted repositories, including future ones", "every", false))
        (filled.checks("Repositories", "repositories", repositories, ""))
        fieldset {
            legend { "Which versions" }
            (filled.lines("Packages", "packages", "Patterns, one per line; * matches any text. If empty, all packages match.", ""))
            (filled.lines("Versions", "versions", "Patterns, one per line. If empty, all versions match.", ""))
            (filled.select("Tags", "tagged", &tagged, ""))
            (filled.select("Pre-releases", "prerelease", &prerelease, ""))
        }
        fieldset {
            legend { "Delete when" }
            (number("Published before (days)", "published_before_days", "Deletes versions published at least this many days ago; 0 matches any age."))
            (number("Not downloaded (days)", "not_downloaded_days", "Deletes versions without a download for this many days. If both fields are set, both must apply."))
        }
        fieldset {
            legend { "Always keep" }
            (number("Newest", "newest", "Keeps this many of the most recently published versions of each package."))
            (filled.lines("Versions to keep", "kept", "Patterns, one per line.", ""))
        }
        (filled.text(Text { label: "Maximum deletions per run", name: "max_deletes", kind: "number", hint: "A run deletes at most this many versions.", required: true, first: "100", ..Text::default() }))
    }
}

/// Converts the form to the body of the API call.
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

/// Converts a rule to the fields of its form.
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

async fn create(ctx: Arc<PageContext>) -> PageResult {
    if ctx.form.has("filter") {
        return listed(&ctx, None).await;
    }
    let made = async {
        let (name, rule) = forms::retention_policy(body(&ctx.form))?;
        retention::create(&ctx.actor, name, rule).await
    };
    match made.await {
        Ok(policy) => Ok(see_other(&format!("{PATH}/{}?done=created", policy.row.id))),
        Err(error) if manages_some(&ctx) => listed(&ctx, Some(&visit::form_error(&ctx, error)?)).await,
        Err(error) => Err(error),
    }
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    let policy = retention::find(&ctx.actor, ctx.named("id")).await?;
    detail_page(&ctx, &policy, None, None).await
}

async fn detail_page(
    ctx: &PageContext,
    policy: &Policy,
    preview: Option<&Preview>,
    wrong: Option<&ApiError>,
) -> PageResult {
    let page = PageRequest { limit: RUNS, after: None };
    let runs = retention::runs(&ctx.actor, &policy.row.id.to_string(), page).await?;
    let saving = ctx.form.text("do") == "save";
    let held = if saving { ctx.form.clone() } else { fields(&policy.row.name, &policy.rule) };
    let filled = Filled::new(&held, wrong.filter(|_| saving));
    let rule = rule_fields(&filled, &hosted(ctx).await?);
    let button = |word: &str, class: &str| html! { button type="submit" class=[(!class.is_empty()).then_some(class)] { (word) } };
    let action = |name: &str, button: Markup| parts::action_button(ctx, &ctx.path, &[("do", name)], &button);
    let enforced = policy.row.enforced;
    let body = html! {
        @if let Some(wrong) = wrong.filter(|_| !saving) { (parts::alert(wrong.message())) }
        div.card {
            p { (parts::tag(mode(policy))) " " @if enforced { "The policy runs every hour." } @else if policy.row.previewed { "The current version was previewed and can be enforced." } @else { "Preview the current version before you enforce it." } }
            div.bar {
                (action("preview", button("Preview", if enforced { "" } else { "go" })))
                @if enforced { (action("pause", button("Pause", ""))) (action("run", button("Run now", ""))) }
                @else if policy.row.previewed { (action("enforce", button("Enforce", "go"))) }
            }
        }
        @if let Some(preview) = preview { (previewed(preview)) }
        (ran(&runs.rows))
        form.card method="post" action=(ctx.path) {
            h2 { "Rule" }
            p { "Changing the rule pauses the policy." }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "save"))
            (parts::hidden("sent", "yes"))
            (filled.with_error(html! { (rule) button.go type="submit" { "Save" } }))
        }
        div.card.danger {
            h2 { "Delete" }
            p { "Versions that the policy deleted can still be restored from the trash." }
            (parts::two_step_button(ctx, &ctx.path, &[("do", "delete")], "Delete", ""))
        }
    };
    let crumbs = html! { p.crumbs { a href=(PATH) { "Retention policies" } } };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, crumbs, ..Sheet::of(&policy.row.name) }, &body))
}

fn previewed(preview: &Preview) -> Markup {
    let Preview { items, hidden, retained, versions, bytes, truncated } = preview;
    let rows = html! {
        @for item in items.iter().take(MAX_ROWS) {
            tr {
                th scope="row" { (parts::isolated(&item.repository_name)) }
                td { (parts::isolated(&item.package)) }
                td { (parts::short(&item.version)) }
                td { @match item.published_at { Some(at) => (dates::time(at)), None => "unknown" } }
                td { @match item.last_downloaded_at { Some(at) => (dates::time(at)), None => "never" } }
                td.num { (parts::size(item.bytes)) }
                td { (item.reason) }
            }
        }
    };
    html! {
        section role="status" {
            h2 { "Preview" }
            p {
                "The policy would delete " strong { (parts::count(*versions, "version", "versions")) } " (" (parts::size(*bytes)) ") and keep " (parts::count(*retained, "other", "others")) "."
                @if *truncated { " The first run would delete " (items.len() as u64 + hidden) " of them." }
                @if *hidden > 0 { " " (hidden) " of them are in repositories that you may not read." }
            }
        }
        @if !items.is_empty() {
            (parts::table("Versions to delete", &["Repository", "Package", "Version", "Published", "Last download", "Size", "Reason"], &rows))
            @if items.len() > MAX_ROWS { p { "Showing the " (MAX_ROWS) " oldest." } }
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
                td { @match row.ended_at { Some(at) => (dates::time(at)), None => "Running" } }
                td.num { (row.deleted) }
                td.num { (parts::size(row.bytes)) }
                td { @if let Some(error) = &row.error { (parts::isolated(error)) } }
            }
        }
    };
    html! {
        h2 { "Runs" }
        (parts::table("Runs", &["Started", "Ended", "Deleted", "Size", "Error"], &rows))
        @for PolicyRun { row, skipped } in runs.iter().filter(|run| !run.skipped.is_empty()) {
            details {
                summary { (parts::count(skipped.len() as u64, "version", "versions")) " skipped by the run of " (dates::time(row.started_at)) }
                ul { @for one in skipped.iter().take(MAX_ROWS) { li { (parts::isolated(&one.package)) " " (parts::short(&one.version)) ": " (parts::isolated(&one.reason)) } } }
            }
        }
    }
}

async fn act(ctx: Arc<PageContext>) -> PageResult {
    let id = ctx.named("id");
    let policy = retention::find(&ctx.actor, id).await?;
    let mode = |enforced| retention::PolicyRequest { enforced: Some(enforced), ..Default::default() };
    let done = match ctx.form.text("do") {
        "save" if ctx.form.has("filter") => return detail_page(&ctx, &policy, None, None).await,
        "preview" => {
            let preview = retention::preview(&ctx.actor, id).await?;
            let policy = retention::find(&ctx.actor, id).await?;
            return detail_page(&ctx, &policy, Some(&preview), None).await;
        }
        "enforce" => retention::change(&ctx.actor, id, mode(true)).await.map(drop),
        "pause" => retention::change(&ctx.actor, id, mode(false)).await.map(drop),
        "run" => retention::run(&ctx.actor, id).await.map(drop),
        "delete" => {
            retention::remove(&ctx.actor, id).await?;
            return Ok(see_other(&format!("{PATH}?done=deleted")));
        }
        _ => save(&ctx, id, &policy).await,
    };
    match done {
        Ok(()) => Ok(see_other(&format!("{}?done=saved", ctx.path))),
        Err(error) => detail_page(&ctx, &policy, None, Some(&visit::form_error(&ctx, error)?)).await,
    }
}

/// Saves the form. If only the name changed, the rule is not sent, because that would pause the
/// policy.
async fn save(ctx: &PageContext, id: &str, policy: &Policy) -> Result<(), ApiError> {
    let mut request = forms::retention_change(body(&ctx.form))?;
    let rule = &policy.rule;
    let same = request.repositories.as_ref() == Some(&rule.repositories)
        && request.matching.as_ref() == Some(&rule.matching)
        && request.delete.as_ref() == Some(&rule.delete)
        && request.keep.as_ref() == Some(&rule.keep)
        && request.max_deletes == Some(rule.max_deletes);
    if same {
        request = retention::PolicyRequest { name: request.name, ..Default::default() };
    }
    retention::change(&ctx.actor, id, request).await.map(drop)
}
