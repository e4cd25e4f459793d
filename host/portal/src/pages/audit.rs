//! `/audit`: the audit log, with filters, in pages, and exported as a file.

use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::{PageRequest, RowPage, audit};
use packhouse_store::{AuditFilter, AuditRow};
use serde_json::Value;
use tokio::sync::mpsc;

use super::Routes;
use super::repositories::{ROWS, after};
use crate::field::{Choice, Filled, Text};
use crate::frame::{self, Sheet};
use crate::page_context::PageContext;
use crate::visit;
use crate::{PageResult, dates, parts};

/// Number of events that one query reads for an exported file.
const EXPORT_ROWS: u32 = 500;
/// Columns of the CSV file, with the names of the API.
const COLUMNS: [&str; 11] = [
    "id",
    "at",
    "actor",
    "credential",
    "action",
    "subject",
    "address",
    "outcome",
    "code",
    "times",
    "request_id",
];

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
    let filters = ["actor", "action", "credential", "outcome", "since", "until"];
    let query: Vec<(&str, &str)> = filters.iter().map(|name| (*name, ctx.query.text(name))).collect();
    let table = html! { @for row in &rows { (one(row)) } };
    let body = html! {
        (filter_form(&ctx))
        @if rows.is_empty() { p { "No event matches." } }
        @else { (parts::table("Events", &["Time", "Actor", "Action", "Subject", "Address", "Outcome"], &table)) }
        (parts::next_page_link("/audit", &query, next.as_deref()))
    };
    let way = |kind: &str| {
        let mut pairs = url::form_urlencoded::Serializer::new(String::new());
        pairs.extend_pairs(query.iter().filter(|(_, value)| !value.is_empty()));
        pairs.append_pair("as", kind);
        format!("/audit?{}", pairs.finish())
    };
    let beside = html! { p.acts { a.button href=(way("csv")) { "CSV" } a.button href=(way("jsonl")) { "JSON lines" } } };
    Ok(frame::page(&ctx, Sheet { beside, ..Sheet::of("Audit") }, &body))
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

fn one(row: &AuditRow) -> Markup {
    let event = &row.event;
    html! {
        tr {
            td.tight { (dates::time(row.at)) }
            td { (parts::short(&event.actor)) @if !event.credential.is_empty() { " " span.soft.small { (parts::short(&event.credential)) } } }
            td { (event.action) }
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

/// Format of the exported file.
#[derive(Clone, Copy)]
enum ExportFormat {
    Csv,
    JsonLines,
}

/// Streams all matching events as a file.
async fn export(ctx: Arc<PageContext>, filter: AuditFilter, kind: ExportFormat) -> PageResult {
    // Read the first rows before the response starts, so that a refusal becomes an error page.
    let first = audit::list(&ctx.actor, &filter, PageRequest { limit: EXPORT_ROWS, after: None }).await?;
    let (sender, mut receiver) = mpsc::channel::<Result<Bytes, std::io::Error>>(2);
    tokio::spawn(async move {
        let mut page = first;
        if matches!(kind, ExportFormat::Csv)
            && sender.send(Ok(Bytes::from(format!("{}\r\n", COLUMNS.join(","))))).await.is_err()
        {
            return;
        }
        loop {
            let next = page.rows.last().filter(|_| page.more).map(|row| row.id);
            let text: String = page.rows.into_iter().map(|row| line(row, kind)).collect();
            if sender.send(Ok(Bytes::from(text))).await.is_err() || next.is_none() {
                return;
            }
            page = match audit::list(&ctx.actor, &filter, PageRequest { limit: EXPORT_ROWS, after: next })
                .await
            {
                Ok(page) => page,
                Err(error) => {
                    // The error aborts the download, so that the client notices the incomplete
                    // file.
                    let _ = sender.send(Err(std::io::Error::other(error.message().to_owned()))).await;
                    return;
                }
            };
        }
    });
    let (media_type, name) = match kind {
        ExportFormat::Csv => ("text/csv; charset=utf-8", "attachment; filename=\"audit.csv\""),
        ExportFormat::JsonLines => {
            ("application/jsonl; charset=utf-8", "attachment; filename=\"audit.jsonl\"")
        }
    };
    let rows = futures::stream::poll_fn(move |context| receiver.poll_recv(context));
    let answer: Response =
        ([(CONTENT_TYPE, media_type), (CONTENT_DISPOSITION, name)], Body::from_stream(rows)).into_response();
    Ok(answer)
}

fn line(row: AuditRow, kind: ExportFormat) -> String {
    let event = forms::event(row).unwrap_or_default();
    match kind {
        ExportFormat::JsonLines => format!("{event}\n"),
        ExportFormat::Csv => {
            let cell = |name: &&str| cell(event.get(*name).unwrap_or(&Value::Null), *name == "at");
            let cells: Vec<String> = COLUMNS.iter().map(cell).collect();
            format!("{}\r\n", cells.join(","))
        }
    }
}

/// Formats a CSV cell (RFC 4180). A value that a spreadsheet would take for a formula gets a
/// leading quote.
fn cell(value: &Value, is_time: bool) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(at) if is_time => at.as_i64().map(dates::exact).unwrap_or_default(),
        other => other.to_string(),
    };
    let guarded =
        if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) { format!("'{text}") } else { text };
    if guarded.contains(['"', ',', '\r', '\n', ';', '\'']) {
        format!("\"{}\"", guarded.replace('"', "\"\""))
    } else {
        guarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_never_a_formula_and_stays_one_cell() {
        for (text, expected) in [
            ("plain", "plain"),
            ("=HYPERLINK(\"http://evil\")", "\"'=HYPERLINK(\"\"http://evil\"\")\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("\tx", "\"'\tx\""),
            ("a,b\r\nc", "\"a,b\r\nc\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
        ] {
            assert_eq!(cell(&Value::from(text), false), expected, "{text}");
        }
        assert_eq!(cell(&Value::from(0), true), "1970-01-01T00:00:00Z");
        assert_eq!(cell(&Value::Null, false), "");
    }
}
