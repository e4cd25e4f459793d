//! `/audit`: the audit log, with filters, in pages, and exported as a file.

mod export;

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::{PageRequest, RowPage, audit};
use packhouse_store::{AuditFilter, AuditRow};
use url::form_urlencoded::Serializer;

use super::Routes;
use super::repositories::{ROWS, after};
use crate::field::{Choice, Filled, Text};
use crate::frame::{self, Sheet};
use crate::page_context::PageContext;
use crate::visit;
use crate::{PageResult, dates, parts};
use export::{ExportFormat, export};

/// Names of the filters in the query string.
const FILTERS: [&str; 6] = ["actor", "action", "credential", "outcome", "since", "until"];

pub(super) fn routes() -> Routes {
    vec![("/audit", visit::page(show))]
}

fn filter(ctx: &PageContext) -> Result<AuditFilter, ApiError> {
    let text = |name: &str| Some(ctx.query.text(name).replace('\0', "")).filter(|text| !text.is_empty());
    let refused = match ctx.query.text("outcome") {
        "" => None,
        "allowed" => Some(false),
        "refused" => Some(true),
        _ => return Err(ApiError::invalid("`outcome` must be `allowed` or `refused`.")),
    };
    let day = |name: &str| match ctx.query.text(name) {
        "" => Ok(None),
        text => dates::end_of_day(text).map(|end| Some(end + 1)).ok_or_else(|| {
            ApiError::invalid("The date must be written as YYYY-MM-DD, for example 2030-01-31.")
        }),
    };
    Ok(AuditFilter {
        actor: text("actor"),
        action: text("action"),
        credential: text("credential"),
        refused,
        since: day("since")?.map(|end| end - dates::DAY_MS),
        until: day("until")?,
    })
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    let filter = filter(&ctx)?;
    match ctx.query.text("as") {
        "csv" => return export(ctx, filter, ExportFormat::Csv).await,
        "jsonl" => return export(ctx, filter, ExportFormat::JsonLines).await,
        _ => {}
    }
    let page = PageRequest { limit: ROWS, after: after::<i64>(&ctx)? };
    let RowPage { rows, more } = audit::list(&ctx.actor, &filter, page).await?;
    let next = rows.last().filter(|_| more).map(|row| row.id.to_string());
    let query: Vec<(&str, &str)> = FILTERS.iter().map(|name| (*name, ctx.query.text(name))).collect();
    let table = html! { @for row in &rows { (one(&ctx, row)) } };
    let body = html! {
        (filter_links(&ctx))
        (filter_form(&ctx))
        @if rows.is_empty() { p { "No event matches." } }
        @else { (parts::table("Events", &["Time", "Actor", "Action", "Subject", "Address", "Outcome"], &table)) }
        (parts::next_page_link("/audit", &query, next.as_deref()))
    };
    let way = |kind: &str| {
        let mut pairs = Serializer::new(String::new());
        pairs.extend_pairs(query.iter().filter(|(_, value)| !value.is_empty()));
        pairs.append_pair("as", kind);
        format!("/audit?{}", pairs.finish())
    };
    let beside = html! { p.acts { a.button href=(way("csv")) { "CSV" } a.button href=(way("jsonl")) { "JSON lines" } } };
    Ok(frame::page(&ctx, Sheet { beside, ..Sheet::of("Audit") }, &body))
}

/// Returns the address of this list with some filters replaced. An empty value removes a filter.
fn link(ctx: &PageContext, changes: &[(&str, &str)]) -> String {
    let mut pairs = Serializer::new(String::new());
    for name in FILTERS {
        let changed = changes.iter().find(|(changed, _)| *changed == name).map(|(_, value)| *value);
        let value = changed.unwrap_or_else(|| ctx.query.text(name));
        if !value.is_empty() {
            pairs.append_pair(name, value);
        }
    }
    match pairs.finish() {
        query if query.is_empty() => "/audit".to_owned(),
        query => format!("/audit?{query}"),
    }
}

/// Builds links to the filters that people use most, and links that remove the other ones.
fn filter_links(ctx: &PageContext) -> Markup {
    let text = |name: &str| ctx.query.text(name);
    let day = |days: i64| dates::day(ctx.actor.now - days * dates::DAY_MS);
    let outcomes = [("", "All"), ("allowed", "Allowed"), ("refused", "Refused")];
    let periods =
        [(String::new(), "Any time"), (day(0), "Today"), (day(6), "Last 7 days"), (day(29), "Last 30 days")];
    let mut chosen = vec!["actor", "action", "credential"];
    chosen.retain(|name| !text(name).is_empty());
    html! {
        nav.filters aria-label="Filters" {
            ul {
                @for (value, word) in outcomes {
                    li { a href=(link(ctx, &[("outcome", value)])) aria-current=[(text("outcome") == value).then_some("true")] { (word) } }
                }
            }
            ul {
                @for (since, word) in &periods {
                    @let is_chosen = text("since") == since && text("until").is_empty();
                    li { a href=(link(ctx, &[("since", since), ("until", "")])) aria-current=[is_chosen.then_some("true")] { (word) } }
                }
            }
            @if !chosen.is_empty() {
                ul {
                    @for name in chosen {
                        li { a href=(link(ctx, &[(name, "")])) { "Remove " (name) " " (parts::short(text(name))) } }
                    }
                }
            }
        }
    }
}

fn filter_form(ctx: &PageContext) -> Markup {
    let filled = Filled::new(&ctx.query, None);
    let text = |label, name| filled.text(Text { label, name, ..Text::default() });
    let day = |label, name| filled.text(Text { label, name, kind: "date", ..Text::default() });
    let outcomes = [("", "any"), ("allowed", "allowed"), ("refused", "refused")]
        .map(|(value, label)| Choice { value: value.to_owned(), label: label.to_owned() });
    html! {
        form.bar method="get" action="/audit" {
            (text("Actor", "actor"))
            (text("Action", "action"))
            (text("Credential", "credential"))
            (filled.select("Outcome", "outcome", &outcomes, ""))
            (day("From", "since"))
            (day("To", "until"))
            button type="submit" { "Filter" }
        }
    }
}

fn one(ctx: &PageContext, row: &AuditRow) -> Markup {
    let event = &row.event;
    html! {
        tr {
            td.tight { (dates::time(row.at)) }
            td { @if !event.actor.is_empty() { a href=(link(ctx, &[("actor", &event.actor)])) { (parts::short(&event.actor)) } } @if !event.credential.is_empty() { " " span.soft.small { (parts::short(&event.credential)) } } }
            td { a href=(link(ctx, &[("action", &event.action)])) { (event.action) } }
            td { (parts::short(&event.subject)) }
            td { (event.address) }
            td {
                @match &row.refused {
                    None => (parts::tag("allowed")),
                    Some(code) => { (parts::tag("refused")) " " (code) @if row.times > 1 { " ×" (row.times) } }
                }
            }
        }
    }
}
