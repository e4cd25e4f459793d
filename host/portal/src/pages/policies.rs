//! `/policies` and the page of each policy: its rule, a preview, its failures, and its exceptions
//! with author, reason and end.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::PageRequest;
use packhouse_api::operations::policies::{
    self, ListedComponent, Preview, Rule, RuleChangeRequest, RuledVersion,
};
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::{ExceptionRow, RuleId, RuleMode};
use serde_json::{Value, json};

mod recordings;

use super::Routes;
use super::repositories::{ROWS, after};
use super::tokens::choices;
use crate::field::{self, Choice, Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, dates, fault, parts};

/// Path of the list of policies.
const PATH: &str = "/policies";
/// Maximum rows of a preview.
const MAX_ROWS: usize = 200;
/// Maximum number of exceptions on the page.
const EXCEPTIONS: u32 = 200;
/// Default duration of an exception in days.
const DAYS: i64 = 30;

pub(super) fn routes() -> Routes {
    vec![
        (PATH, visit::page(list).merge(visit::form(create))),
        ("/policies/{id}", visit::page(show).merge(visit::form(act))),
    ]
}

/// Builds the rulings about a version on its page, with links to create an exception.
pub(super) fn rulings(ruled: &[RuledVersion], package: &str, version: &str) -> Markup {
    let rows = html! {
        @for one in ruled {
            tr {
                th scope="row" { a href={ (PATH) "/" (one.rule) } { (parts::isolated(&one.name)) } }
                td { (parts::tag(if one.ruling == "policy_unavailable" { "not checked" } else { one.ruling })) }
                td { (parts::isolated(&one.reason)) }
                td { @if let Some(at) = one.until { (dates::time(at)) } }
                td {
                    @if one.ruling != "warned" {
                        @let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("package", package).append_pair("version", version).finish();
                        a href={ (PATH) "/" (one.rule) "?" (query) "#exception" } { "Add exception" }
                    }
                }
            }
        }
    };
    html! {
        (parts::table("Policy rulings", &["Policy", "Ruling", "Reason", "Until", "Exception"], &rows))
        p { "Members with the permission manage-repositories can add an exception for a year at most." }
    }
}

fn rows(rules: &[Rule]) -> Markup {
    html! {
        ul.rows {
            @for Rule { row, failure } in rules {
                li {
                    div.what {
                        a href={ (PATH) "/" (row.id) } { (parts::isolated(&row.name)) }
                        p.meta {
                            (parts::tag(row.mode.word())) @if failure.is_some() { (parts::tag("failing")) }
                            span { (parts::short(&row.text.component)) ", created by " (parts::isolated(&row.created_by)) " " (dates::time(row.created_at)) }
                        }
                    }
                }
            }
        }
    }
}

async fn list(ctx: Arc<PageContext>) -> PageResult {
    listed(&ctx, None).await
}

async fn listed(ctx: &PageContext, wrong: Option<&ApiError>) -> PageResult {
    let page = PageRequest { limit: ROWS, after: after::<RuleId>(ctx)? };
    let listed = policies::list(&ctx.actor, page).await?;
    let components = policies::components(&ctx.actor).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|rule| rule.row.id.to_string());
    let filled = Filled::new(&ctx.form, wrong);
    let fields = rule_fields(&filled, &components, &choices(ctx).await?);
    let body = html! {
        @if listed.rows.is_empty() {
            div.card.empty {
                h2 { "No policies yet" }
                p { "A policy checks versions before they are published and before they are served through a proxy: their provenance, licence, name or age. You can enforce it after you have previewed its effect." }
            }
        } @else {
            (parts::list_length(ctx, listed.rows.len(), listed.more, "policy", "policies"))
            (rows(&listed.rows))
        }
        (parts::next_page_link(PATH, &[], next.as_deref()))
        form.card method="post" action=(PATH) {
            h2 { "New policy" }
            (parts::form_tokens(ctx))
            (parts::hidden("sent", "yes"))
            (filled.with_error(html! { (fields) button.go type="submit" { "Create policy" } }))
        }
        (described(&components))
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, ..Sheet::of("Policies") }, &body))
}

/// Lists the installed policy components with the settings of each.
fn described(components: &[ListedComponent]) -> Markup {
    html! {
        h2 { "Components" }
        @for component in components {
            details {
                summary { (parts::isolated(&component.name)) " " (component.version) ": " (parts::isolated(&component.summary)) }
                @if let Some(error) = &component.error { (parts::alert(error)) }
                @if !component.component.is_empty() && component.component != component.name { p { code { (component.component) } } }
                @if let Some(Value::Object(settings)) = component.settings.get("properties") {
                    ul { @for (name, schema) in settings {
                        li { code { (name) } ": " (parts::isolated(schema.get("description").and_then(Value::as_str).unwrap_or_default())) }
                    } }
                }
            }
        }
    }
}

/// Builds the fields of a rule.
fn rule_fields(filled: &Filled<'_>, components: &[ListedComponent], repositories: &[Choice]) -> Markup {
    let named = components.iter().filter(|component| !component.component.is_empty());
    let choice = |component: &ListedComponent| Choice {
        value: component.component.clone(),
        label: format!("{} {}", component.name, component.version),
    };
    let named: Vec<Choice> = named.map(choice).collect();
    html! {
        (filled.text(Text { label: "Name", name: "name", required: true, hint: "Shown to users whose request is blocked.", ..Text::default() }))
        (filled.select("Component", "component", &named, ""))
        (filled.lines("Settings", "settings", "A JSON object. The page that lists all policies describes the settings of each component.", "{}"))
        (filled.check("All repositories, including future ones", "every", false))
        (filled.checks("Repositories", "repositories", repositories, "To check a group, choose its members."))
        (filled.lines("Packages", "packages", "Patterns, one per line; * matches any text. If empty, the policy applies to all packages.", ""))
    }
}

/// Converts the form to the body of the API call.
fn body(form: &Fields) -> Value {
    let packages: Vec<&str> =
        form.text("packages").lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let settings = form.text("settings");
    json!({
        "name": form.text("name"),
        "component": form.text("component"),
        // A text that is not JSON is passed on as a string, which the API refuses.
        "settings": serde_json::from_str::<Value>(settings).unwrap_or_else(|_| settings.into()),
        "repositories": if form.has("every") { json!("*") } else { form.list("repositories") },
        "packages": if packages.is_empty() { Value::Null } else { json!(packages) },
    })
}

/// Converts a rule to the fields of its form.
fn fields(rule: &Rule) -> Fields {
    let text = &rule.row.text;
    let mut fields = vec![
        ("sent".to_owned(), "yes".to_owned()),
        ("name".to_owned(), rule.row.name.clone()),
        ("component".to_owned(), text.component.clone()),
        ("settings".to_owned(), text.settings.clone()),
    ];
    match &text.repositories {
        None => fields.push(("every".to_owned(), "yes".to_owned())),
        Some(ids) => fields.extend(ids.iter().map(|id| ("repositories".to_owned(), id.to_string()))),
    }
    fields.extend(text.packages.as_ref().map(|packages| ("packages".to_owned(), packages.join("\n"))));
    Fields(fields)
}

async fn create(ctx: Arc<PageContext>) -> PageResult {
    if ctx.form.has("filter") {
        return listed(&ctx, None).await;
    }
    let made = async { policies::create(&ctx.actor, forms::policy(body(&ctx.form))?).await };
    match made.await {
        Ok(rule) => Ok(see_other(&format!("{PATH}/{}?done=created", rule.row.id))),
        Err(error) if ctx.holds(ManageRepositories) => {
            listed(&ctx, Some(&visit::form_error(&ctx, error)?)).await
        }
        Err(error) => Err(error),
    }
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    let rule = policies::find(&ctx.actor, ctx.named("id")).await?;
    detail_page(&ctx, &rule, None, None).await
}

async fn detail_page(
    ctx: &PageContext,
    rule: &Rule,
    preview: Option<&Preview>,
    wrong: Option<&ApiError>,
) -> PageResult {
    let id = rule.row.id.to_string();
    let page = PageRequest { limit: EXCEPTIONS, after: None };
    let exceptions = policies::exceptions(&ctx.actor, &id, page).await?;
    let components = policies::components(&ctx.actor).await?;
    let recorded = recordings::section(ctx, &id).await?;
    let (done, empty) = (ctx.form.text("do"), Fields::default());
    let (saving, excepting) = (done == "save", done == "except");
    let held = if saving { ctx.form.clone() } else { fields(rule) };
    let filled = Filled::new(&held, wrong.filter(|_| saving));
    let saved = rule_fields(&filled, &components, &choices(ctx).await?);
    let excepted = if excepting { &ctx.form } else { &empty };
    let excepted = Filled::new(excepted, wrong.filter(|_| excepting));
    let mode = rule.row.mode;
    let button = |word: &str, class: &str| html! { button type="submit" class=[(!class.is_empty()).then_some(class)] { (word) } };
    let action = |name: &str, button: Markup| parts::action_button(ctx, &ctx.path, &[("do", name)], &button);
    let body = html! {
        @if let Some(wrong) = wrong.filter(|_| !saving && !excepting) { (parts::alert(wrong.message())) }
        @if let Some(failure) = &rule.failure {
            (parts::alert(&format!("The policy failed {} times on this server. The versions that it could not check were blocked. Last error: {}", failure.times, failure.error)))
        }
        div.card {
            p { (parts::tag(mode.word())) " "
                @match mode {
                    RuleMode::Enforced => "Versions that the policy denies are blocked.",
                    RuleMode::Warn => "Versions that the policy denies are logged but not blocked.",
                    RuleMode::Paused if rule.row.previewed => "The current version was previewed and can be enforced.",
                    RuleMode::Paused => "Preview the current version before you enforce it.",
                }
            }
            div.bar {
                (action("preview", button("Preview", if mode == RuleMode::Paused { "go" } else { "" })))
                @if mode != RuleMode::Paused { (action("pause", button("Pause", ""))) }
                @if mode != RuleMode::Warn { (action("warn", button("Warn only", ""))) }
                @if mode != RuleMode::Enforced && rule.row.previewed { (action("enforce", button("Enforce", "go"))) }
            }
        }
        @if let Some(preview) = preview { (previewed(preview)) }
        (recorded)
        (excepts(ctx, &exceptions.rows))
        form.card method="post" action=(ctx.path) {
            h2 id="exception" { "New exception" }
            p { "Members with the permission manage-repositories can exempt versions for a year at most. The audit log records every exception." }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "except"))
            (excepted.with_error(html! {
                (excepted.text(Text { label: "Package", name: "package", required: true, first: ctx.query.text("package"), hint: "A pattern; * matches any text.", ..Text::default() }))
                (excepted.text(Text { label: "Version", name: "version", required: true, first: if ctx.query.has("version") { ctx.query.text("version") } else { "*" }, hint: "A pattern; * alone matches every version.", ..Text::default() }))
                (excepted.text(Text { label: "Reason", name: "reason", required: true, hint: "Recorded with the exception.", ..Text::default() }))
                (excepted.text(Text { label: "Expires", name: "expires", kind: "date", required: true, first: &dates::day(ctx.actor.now + DAYS * dates::DAY_MS), hint: "The exception ends at the end of this day (UTC).", ..Text::default() }))
                button.go type="submit" { "Create exception" }
            }))
        }
        form.card method="post" action=(ctx.path) {
            h2 { "Rule" }
            p { "Editing the policy pauses it." }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "save"))
            (parts::hidden("sent", "yes"))
            (filled.with_error(html! { (saved) button.go type="submit" { "Save" } }))
        }
        div.card.danger {
            h2 { "Delete" }
            p { "Deletes the policy with its exceptions." }
            (parts::two_step_button(ctx, &ctx.path, &[("do", "delete")], "Delete", ""))
        }
    };
    let crumbs = html! { p.crumbs { a href=(PATH) { "Policies" } } };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, crumbs, ..Sheet::of(&rule.row.name) }, &body))
}

fn previewed(preview: &Preview) -> Markup {
    let rows = html! {
        @for item in preview.items.iter().take(MAX_ROWS) {
            tr {
                th scope="row" { (parts::isolated(&item.repository_name)) }
                td { (parts::isolated(&item.package)) }
                td { (parts::short(&item.version)) }
                td { (parts::tag(if item.ruling == "policy_unavailable" { "not checked" } else { item.ruling })) }
                td { (parts::isolated(&item.reason)) }
                td { @if let Some(at) = item.until { (dates::time(at)) } }
            }
        }
    };
    let count = |ruling: &str| preview.count(ruling);
    html! {
        section role="status" {
            h2 { "Preview" }
            p {
                "The policy checked " strong { (parts::count(preview.versions, "version", "versions")) } ". It would deny " (count("denied")) ", hold " (count("held")) " and warn about " (count("warned")) "."
                @if preview.hidden > 0 { " " (preview.hidden) " of these are in repositories that you may not read." }
                @if count("policy_unavailable") > 0 { " It could not check " (count("policy_unavailable")) ", which would be blocked." }
            }
        }
        @if !preview.items.is_empty() {
            (parts::table("Versions with a ruling", &["Repository", "Package", "Version", "Ruling", "Reason", "Until"], &rows))
            @if preview.items.len() > MAX_ROWS { p { "Showing the first " (MAX_ROWS) "." } }
        }
    }
}

fn excepts(ctx: &PageContext, exceptions: &[ExceptionRow]) -> Markup {
    if exceptions.is_empty() {
        return Markup::default();
    }
    html! {
        h2 { "Exceptions" }
        ul.rows {
            @for ExceptionRow { id, new, created_at, .. } in exceptions {
                li {
                    div.what {
                        p { (parts::isolated(&new.package)) " " (parts::isolated(&new.version)) ": " (parts::isolated(&new.reason)) }
                        p.meta {
                            (parts::tag(if new.until > ctx.actor.now { "active" } else { "expired" }))
                            span { "until " (dates::time(new.until)) ", by " (parts::isolated(&new.created_by)) " " (dates::time(*created_at)) }
                        }
                    }
                    @if new.until > ctx.actor.now {
                        (parts::action_button(ctx, &ctx.path, &[("do", "end"), ("exception", &id.to_string())],
                            &html! { button type="submit" { "End exception for " (parts::isolated(&new.package)) } }))
                    }
                }
            }
        }
    }
}

async fn act(ctx: Arc<PageContext>) -> PageResult {
    let id = ctx.named("id");
    let rule = policies::find(&ctx.actor, id).await?;
    let mode = |mode| RuleChangeRequest { mode: Some(mode), ..RuleChangeRequest::default() };
    let done = match ctx.form.text("do") {
        "save" if ctx.form.has("filter") => return detail_page(&ctx, &rule, None, None).await,
        "preview" => {
            let preview = policies::preview(&ctx.actor, id).await?;
            let rule = policies::find(&ctx.actor, id).await?;
            return detail_page(&ctx, &rule, Some(&preview), None).await;
        }
        "enforce" => policies::change(&ctx.actor, id, mode(RuleMode::Enforced)).await.map(drop),
        "warn" => policies::change(&ctx.actor, id, mode(RuleMode::Warn)).await.map(drop),
        "pause" => policies::change(&ctx.actor, id, mode(RuleMode::Paused)).await.map(drop),
        "except" => except(&ctx, id).await,
        "record" => policies::record(&ctx.actor, id, recordings::CALLS).await.map(drop),
        "forget" => policies::stop_recording(&ctx.actor, id).await,
        "end" => policies::end_exception(&ctx.actor, id, ctx.form.text("exception")).await,
        "delete" => {
            policies::remove(&ctx.actor, id).await?;
            return Ok(see_other(&format!("{PATH}?done=deleted")));
        }
        _ => {
            async { policies::change(&ctx.actor, id, forms::policy_change(body(&ctx.form))?).await.map(drop) }
                .await
        }
    };
    match done {
        Ok(()) => Ok(see_other(&format!("{}?done=saved", ctx.path))),
        Err(error) => detail_page(&ctx, &rule, None, Some(&visit::form_error(&ctx, error)?)).await,
    }
}

async fn except(ctx: &PageContext, id: &str) -> Result<(), ApiError> {
    let form = &ctx.form;
    let body = json!({
        "package": form.text("package"), "version": form.text("version"), "reason": form.text("reason"),
        "until": field::expiry(form),
    });
    let request = forms::policy_exception(body, ctx.actor.now)?;
    policies::except(&ctx.actor, id, request).await.map(drop)
}
