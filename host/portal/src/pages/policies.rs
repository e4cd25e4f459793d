//! `/organization/policies` and the page of each policy: what it says, what it would do, what went wrong with it, and what passes it
//! nevertheless, with who said so, why and until when.

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
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, dates, fault, parts};

/// Where the policies are.
const PATH: &str = "/organization/policies";
/// Versions of a preview that are shown.
const SHOWN: usize = 200;
/// Exceptions that are shown.
const EXCEPTIONS: u32 = 200;
/// Days that an exception lasts unless somebody says otherwise.
const DAYS: i64 = 30;

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![
        (PATH, visit::page(list).merge(visit::form(create))),
        ("/organization/policies/{id}", visit::page(show).merge(visit::form(act))),
    ]
}

/// The policies on a page of something else.
pub(super) async fn section(seat: &Seat) -> Result<Markup, ApiError> {
    if !seat.holds(ManageRepositories) {
        return Ok(Markup::default());
    }
    let listed = policies::list(&seat.actor, PageRequest { limit: ROWS, after: None }).await?;
    Ok(html! {
        h2 { "Policies" }
        div.card {
            @if listed.rows.is_empty() { p { "No policy judges what is published and what comes through proxies." } } @else { (rows(&listed.rows)) }
            p { a href=(PATH) { "Policies over versions" } }
        }
    })
}

/// What policies say of a version, on its page, with the way to an exception.
pub(super) fn ruled(ruled: &[RuledVersion], package: &str, version: &str) -> Markup {
    let rows = html! {
        @for one in ruled {
            tr {
                th scope="row" { a href={ (PATH) "/" (one.rule) } { (parts::said(&one.name)) } }
                td { (parts::tag(if one.ruling == "policy_unavailable" { "not judged" } else { one.ruling })) }
                td { (parts::said(&one.because)) }
                td { @if let Some(at) = one.until { (dates::time(at)) } }
                td {
                    @if one.ruling != "warned" {
                        @let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("package", package).append_pair("version", version).finish();
                        a href={ (PATH) "/" (one.rule) "?" (query) "#exception" } { "Except it" }
                    }
                }
            }
        }
    };
    html! {
        (parts::table("What policies say of it", &["Policy", "Ruling", "Because", "Until", "Exception"], &rows))
        p { "Members with manage-repositories may except it, for a year at most." }
    }
}

fn rows(rules: &[Rule]) -> Markup {
    html! {
        ul.rows {
            @for Rule { row, failure } in rules {
                li {
                    div.what {
                        a href={ (PATH) "/" (row.id) } { (parts::said(&row.name)) }
                        p.meta {
                            (parts::tag(row.mode.word())) @if failure.is_some() { (parts::tag("failing")) }
                            span { (parts::short(&row.text.component)) ", made by " (parts::said(&row.created_by)) " " (dates::time(row.created_at)) }
                        }
                    }
                }
            }
        }
    }
}

async fn list(seat: Arc<Seat>) -> Answer {
    listed(&seat, None).await
}

async fn listed(seat: &Seat, wrong: Option<&ApiError>) -> Answer {
    let page = PageRequest { limit: ROWS, after: after::<RuleId>(seat)? };
    let listed = policies::list(&seat.actor, page).await?;
    let components = policies::components(&seat.actor).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|rule| rule.row.id.to_string());
    let filled = Filled::new(&seat.form, wrong);
    let fields = rule_fields(&filled, &components, &choices(seat).await?);
    let body = html! {
        @if listed.rows.is_empty() {
            div.card.empty {
                h2 { "None yet" }
                p { "A policy judges versions before they are published and before they come through a proxy: their provenance, licence, name or age. It is enforced once you have seen what it would do." }
            }
        } @else { (rows(&listed.rows)) }
        (parts::further(PATH, &[], next.as_deref()))
        form.card method="post" action=(PATH) {
            h2 { "New policy" }
            (parts::guard(seat))
            (parts::hidden("sent", "yes"))
            (filled.told(html! { (fields) button.go type="submit" { "Create policy" } }))
        }
        (described(&components))
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    let crumbs = html! { p.crumbs { a href="/organization" { "Organization" } } };
    Ok(frame::page(seat, Sheet { status, crumbs, ..Sheet::of("Policies") }, &body))
}

/// What there is to judge with, and the settings of each.
fn described(components: &[ListedComponent]) -> Markup {
    html! {
        h2 { "Components" }
        @for component in components {
            details {
                summary { (parts::said(&component.name)) " " (component.version) ": " (parts::said(&component.summary)) }
                @if let Some(error) = &component.error { (parts::alert(error)) }
                @if !component.component.is_empty() && component.component != component.name { p { code { (component.component) } } }
                @if let Some(Value::Object(settings)) = component.settings.get("properties") {
                    ul { @for (name, schema) in settings {
                        li { code { (name) } ": " (parts::said(schema.get("description").and_then(Value::as_str).unwrap_or_default())) }
                    } }
                }
            }
        }
    }
}

/// The fields of a rule.
fn rule_fields(filled: &Filled<'_>, components: &[ListedComponent], repositories: &[Choice]) -> Markup {
    let named = components.iter().filter(|component| !component.component.is_empty());
    let choice = |component: &ListedComponent| Choice {
        value: component.component.clone(),
        label: format!("{} {}", component.name, component.version),
    };
    let named: Vec<Choice> = named.map(choice).collect();
    html! {
        (filled.text(Text { label: "Name", name: "name", required: true, hint: "Whoever is refused reads it.", ..Text::default() }))
        (filled.select("Component", "component", &named, ""))
        (filled.lines("Settings", "settings", "A JSON object; what each component knows stands at the end of the list of policies.", "{}"))
        (filled.check("Every repository, also later ones", "every", false))
        (filled.checks("Repositories", "repositories", repositories, "A group is judged by its members."))
        (filled.lines("Packages", "packages", "Patterns, one to a line, in which * stands for any text; empty: any.", ""))
    }
}

/// What the form says, as the body of the call.
fn body(form: &Fields) -> Value {
    let packages: Vec<&str> =
        form.text("packages").lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let settings = form.text("settings");
    json!({
        "name": form.text("name"),
        "component": form.text("component"),
        // What is no JSON is told as what is no object.
        "settings": serde_json::from_str::<Value>(settings).unwrap_or_else(|_| settings.into()),
        "repositories": if form.has("every") { json!("*") } else { form.list("repositories") },
        "packages": if packages.is_empty() { Value::Null } else { json!(packages) },
    })
}

/// A rule as its form was filled in.
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

async fn create(seat: Arc<Seat>) -> Answer {
    if seat.form.has("filter") {
        return listed(&seat, None).await;
    }
    let made = async { policies::create(&seat.actor, forms::policy(body(&seat.form))?).await };
    match made.await {
        Ok(rule) => Ok(see_other(&format!("{PATH}/{}?done=created", rule.row.id))),
        Err(error) if seat.holds(ManageRepositories) => {
            listed(&seat, Some(&visit::wrong(&seat, error)?)).await
        }
        Err(error) => Err(error),
    }
}

async fn show(seat: Arc<Seat>) -> Answer {
    let rule = policies::find(&seat.actor, seat.named("id")).await?;
    shown(&seat, &rule, None, None).await
}

/// The page of one.
async fn shown(seat: &Seat, rule: &Rule, preview: Option<&Preview>, wrong: Option<&ApiError>) -> Answer {
    let id = rule.row.id.to_string();
    let page = PageRequest { limit: EXCEPTIONS, after: None };
    let exceptions = policies::exceptions(&seat.actor, &id, page).await?;
    let components = policies::components(&seat.actor).await?;
    let recorded = recordings::section(seat, &id).await?;
    let (done, empty) = (seat.form.text("do"), Fields::default());
    let (saving, excepting) = (done == "save", done == "except");
    let held = if saving { seat.form.clone() } else { fields(rule) };
    let filled = Filled::new(&held, wrong.filter(|_| saving));
    let saved = rule_fields(&filled, &components, &choices(seat).await?);
    let excepted = if excepting { &seat.form } else { &empty };
    let excepted = Filled::new(excepted, wrong.filter(|_| excepting));
    let mode = rule.row.mode;
    let button = |word: &str, class: &str| html! { button type="submit" class=[(!class.is_empty()).then_some(class)] { (word) } };
    let deed = |name: &str, button: Markup| parts::deed(seat, &seat.path, &[("do", name)], &button);
    let body = html! {
        @if let Some(wrong) = wrong.filter(|_| !saving && !excepting) { (parts::alert(wrong.message())) }
        @if let Some(failure) = &rule.failure {
            (parts::alert(&format!("It failed {} times on this server, and what it could not judge did not pass: {}", failure.times, failure.error)))
        }
        div.card {
            p { (parts::tag(mode.word())) " "
                @match mode {
                    RuleMode::Enforced => "What it denies does not pass.",
                    RuleMode::Warn => "What it denies is told in the log, and passes.",
                    RuleMode::Paused if rule.row.previewed => "It was previewed as it is, and may be enforced.",
                    RuleMode::Paused => "It is enforced only after a preview of it as it is.",
                }
            }
            div.bar {
                (deed("preview", button("Preview", if mode == RuleMode::Paused { "go" } else { "" })))
                @if mode != RuleMode::Paused { (deed("pause", button("Pause", ""))) }
                @if mode != RuleMode::Warn { (deed("warn", button("Only warn", ""))) }
                @if mode != RuleMode::Enforced && rule.row.previewed { (deed("enforce", button("Enforce", "go"))) }
            }
        }
        @if let Some(preview) = preview { (previewed(preview)) }
        (recorded)
        (excepts(seat, &exceptions.rows))
        form.card method="post" action=(seat.path) {
            h2 id="exception" { "New exception" }
            p { "Members with manage-repositories may let versions pass for a year at most. The audit log remembers it." }
            (parts::guard(seat))
            (parts::hidden("do", "except"))
            (excepted.told(html! {
                (excepted.text(Text { label: "Package", name: "package", required: true, first: seat.query.text("package"), hint: "A pattern, in which * stands for any text.", ..Text::default() }))
                (excepted.text(Text { label: "Version", name: "version", required: true, first: if seat.query.has("version") { seat.query.text("version") } else { "*" }, hint: "A pattern.", ..Text::default() }))
                (excepted.text(Text { label: "Reason", name: "reason", required: true, ..Text::default() }))
                (excepted.text(Text { label: "Expires", name: "expires", kind: "date", required: true, first: &dates::day(seat.actor.now + DAYS * dates::DAY_MS), hint: "It lasts to the end of this day, UTC.", ..Text::default() }))
                button.go type="submit" { "Create exception" }
            }))
        }
        form.card method="post" action=(seat.path) {
            h2 { "Rule" }
            p { "A policy that says something else is paused." }
            (parts::guard(seat))
            (parts::hidden("do", "save"))
            (parts::hidden("sent", "yes"))
            (filled.told(html! { (saved) button.go type="submit" { "Save" } }))
        }
        div.card.danger {
            h2 { "Delete" }
            p { "Its exceptions go with it." }
            (parts::deed_in_two_steps(seat, &seat.path, &[("do", "delete")], "Delete", ""))
        }
    };
    let crumbs =
        html! { p.crumbs { a href="/organization" { "Organization" } " " a href=(PATH) { "Policies" } } };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(seat, Sheet { status, crumbs, ..Sheet::of(&rule.row.name) }, &body))
}

fn previewed(preview: &Preview) -> Markup {
    let rows = html! {
        @for item in preview.items.iter().take(SHOWN) {
            tr {
                th scope="row" { (parts::said(&item.repository_name)) }
                td { (parts::said(&item.package)) }
                td { (parts::short(&item.version)) }
                td { (parts::tag(if item.ruling == "policy_unavailable" { "not judged" } else { item.ruling })) }
                td { (parts::said(&item.because)) }
                td { @if let Some(at) = item.until { (dates::time(at)) } }
            }
        }
    };
    let count = |ruling: &str| preview.count(ruling);
    html! {
        section role="status" {
            h2 { "Preview" }
            p {
                "Of " strong { (parts::count(preview.versions, "version", "versions")) } " it would deny " (count("denied")) ", hold back " (count("held")) " and warn of " (count("warned")) "."
                @if preview.hidden > 0 { " " (preview.hidden) " of them are in repositories that you may not read." }
                @if count("policy_unavailable") > 0 { " It could not judge " (count("policy_unavailable")) ", which would not pass." }
            }
        }
        @if !preview.items.is_empty() {
            (parts::table("What it would not let pass", &["Repository", "Package", "Version", "Ruling", "Because", "Until"], &rows))
            @if preview.items.len() > SHOWN { p { "These are the first " (SHOWN) "." } }
        }
    }
}

fn excepts(seat: &Seat, exceptions: &[ExceptionRow]) -> Markup {
    if exceptions.is_empty() {
        return Markup::default();
    }
    html! {
        h2 { "Exceptions" }
        ul.rows {
            @for ExceptionRow { id, new, created_at, .. } in exceptions {
                li {
                    div.what {
                        p { (parts::said(&new.package)) " " (parts::said(&new.version)) ": " (parts::said(&new.reason)) }
                        p.meta {
                            (parts::tag(if new.until > seat.actor.now { "active" } else { "expired" }))
                            span { "until " (dates::time(new.until)) ", by " (parts::said(&new.created_by)) " " (dates::time(*created_at)) }
                        }
                    }
                    @if new.until > seat.actor.now {
                        (parts::deed(seat, &seat.path, &[("do", "end"), ("exception", &id.to_string())],
                            &html! { button type="submit" { "End the exception of " (parts::said(&new.package)) } }))
                    }
                }
            }
        }
    }
}

async fn act(seat: Arc<Seat>) -> Answer {
    let id = seat.named("id");
    let rule = policies::find(&seat.actor, id).await?;
    let mode = |mode| RuleChangeRequest { mode: Some(mode), ..RuleChangeRequest::default() };
    let done = match seat.form.text("do") {
        "save" if seat.form.has("filter") => return shown(&seat, &rule, None, None).await,
        "preview" => {
            let preview = policies::preview(&seat.actor, id).await?;
            let rule = policies::find(&seat.actor, id).await?;
            return shown(&seat, &rule, Some(&preview), None).await;
        }
        "enforce" => policies::change(&seat.actor, id, mode(RuleMode::Enforced)).await.map(drop),
        "warn" => policies::change(&seat.actor, id, mode(RuleMode::Warn)).await.map(drop),
        "pause" => policies::change(&seat.actor, id, mode(RuleMode::Paused)).await.map(drop),
        "except" => except(&seat, id).await,
        "record" => policies::record(&seat.actor, id, recordings::WANTED).await.map(drop),
        "forget" => policies::stop_recording(&seat.actor, id).await,
        "end" => policies::end_exception(&seat.actor, id, seat.form.text("exception")).await,
        "delete" => {
            policies::remove(&seat.actor, id).await?;
            return Ok(see_other(&format!("{PATH}?done=deleted")));
        }
        _ => {
            async {
                policies::change(&seat.actor, id, forms::policy_change(body(&seat.form))?).await.map(drop)
            }
            .await
        }
    };
    match done {
        Ok(()) => Ok(see_other(&format!("{}?done=saved", seat.path))),
        Err(error) => shown(&seat, &rule, None, Some(&visit::wrong(&seat, error)?)).await,
    }
}

async fn except(seat: &Seat, id: &str) -> Result<(), ApiError> {
    let form = &seat.form;
    let body = json!({
        "package": form.text("package"), "version": form.text("version"), "reason": form.text("reason"),
        "until": field::expiry(form),
    });
    let request = forms::policy_exception(body, seat.actor.now)?;
    policies::except(&seat.actor, id, request).await.map(drop)
}
