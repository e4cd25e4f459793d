//! `/audit`: who did what, when, from where; filtered, in pages, and as a file.

use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::{Listed, PageRequest, audit};
use packhouse_store::{AuditFilter, AuditRow};
use serde_json::Value;
use tokio::sync::mpsc;

use super::Routes;
use super::repositories::{ROWS, after};
use crate::field::{Choice, Filled, Text};
use crate::frame::{self, Sheet};
use crate::seat::Seat;
use crate::visit;
use crate::{Answer, dates, parts};

/// Events that are read at one time for a file.
const AT_ONCE: u32 = 500;
/// The columns of a table for a spreadsheet, as the API names them.
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

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/audit", visit::page(show))]
}

fn filter(seat: &Seat) -> Result<AuditFilter, ApiError> {
    let text = |name: &str| Some(seat.query.text(name).replace('\0', "")).filter(|text| !text.is_empty());
    let refused = match seat.query.text("outcome") {
        "" => None,
        "allowed" => Some(false),
        "refused" => Some(true),
        _ => return Err(ApiError::invalid("`outcome` is `allowed` or `refused`.")),
    };
    let day = |name: &str| match seat.query.text(name) {
        "" => Ok(None),
        text => dates::end_of_day(text)
            .map(|end| Some(end + 1))
            .ok_or_else(|| ApiError::invalid("A day is written as 2030-01-31.")),
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

async fn show(seat: Arc<Seat>) -> Answer {
    let filter = filter(&seat)?;
    match seat.query.text("as") {
        "csv" => return export(seat, filter, Kind::Csv).await,
        "jsonl" => return export(seat, filter, Kind::JsonLines).await,
        _ => {}
    }
    let page = PageRequest { limit: ROWS, after: after::<i64>(&seat)? };
    let Listed { rows, more } = audit::list(&seat.actor, &filter, page).await?;
    let next = rows.last().filter(|_| more).map(|row| row.id.to_string());
    let asked = ["actor", "action", "credential", "outcome", "since", "until"];
    let query: Vec<(&str, &str)> = asked.iter().map(|name| (*name, seat.query.text(name))).collect();
    let table = html! { @for row in &rows { (one(row)) } };
    let body = html! {
        (filter_form(&seat))
        @if rows.is_empty() { p { "No event matches." } }
        @else { (parts::table("Events", &["When", "Who", "What", "To what", "From", "Outcome"], &table)) }
        (parts::further("/audit", &query, next.as_deref()))
    };
    let way = |kind: &str| {
        let mut pairs = url::form_urlencoded::Serializer::new(String::new());
        pairs.extend_pairs(query.iter().filter(|(_, value)| !value.is_empty()));
        pairs.append_pair("as", kind);
        format!("/audit?{}", pairs.finish())
    };
    let beside = html! { p.acts { a.button href=(way("csv")) { "CSV" } a.button href=(way("jsonl")) { "JSON lines" } } };
    Ok(frame::page(&seat, Sheet { beside, ..Sheet::of("Audit") }, &body))
}

fn filter_form(seat: &Seat) -> Markup {
    let filled = Filled::new(&seat.query, None);
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
            (day("From the day", "since"))
            (day("To the day", "until"))
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

/// Which file.
#[derive(Clone, Copy)]
enum Kind {
    Csv,
    JsonLines,
}

/// All events that match, as a file that is sent while it is read.
async fn export(seat: Arc<Seat>, filter: AuditFilter, kind: Kind) -> Answer {
    // The first page before the head: who may not see it gets a page that says so.
    let first = audit::list(&seat.actor, &filter, PageRequest { limit: AT_ONCE, after: None }).await?;
    let (sender, mut receiver) = mpsc::channel::<Result<Bytes, std::io::Error>>(2);
    tokio::spawn(async move {
        let mut page = first;
        if matches!(kind, Kind::Csv)
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
            page = match audit::list(&seat.actor, &filter, PageRequest { limit: AT_ONCE, after: next }).await
            {
                Ok(page) => page,
                Err(error) => {
                    // A file that breaks off is seen to.
                    let _ = sender.send(Err(std::io::Error::other(error.message().to_owned()))).await;
                    return;
                }
            };
        }
    });
    let (media_type, name) = match kind {
        Kind::Csv => ("text/csv; charset=utf-8", "attachment; filename=\"audit.csv\""),
        Kind::JsonLines => ("application/jsonl; charset=utf-8", "attachment; filename=\"audit.jsonl\""),
    };
    let rows = futures::stream::poll_fn(move |context| receiver.poll_recv(context));
    let answer: Response =
        ([(CONTENT_TYPE, media_type), (CONTENT_DISPOSITION, name)], Body::from_stream(rows)).into_response();
    Ok(answer)
}

fn line(row: AuditRow, kind: Kind) -> String {
    let event = forms::event(row).unwrap_or_default();
    match kind {
        Kind::JsonLines => format!("{event}\n"),
        Kind::Csv => {
            let cell = |name: &&str| cell(event.get(*name).unwrap_or(&Value::Null), *name == "at");
            let cells: Vec<String> = COLUMNS.iter().map(cell).collect();
            format!("{}\r\n", cells.join(","))
        }
    }
}

/// A cell of CSV (RFC 4180). What a spreadsheet would take for a formula gets a quote before it.
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
    fn a_cell_is_no_formula_and_stays_one_cell() {
        for (text, shown) in [
            ("plain", "plain"),
            ("=HYPERLINK(\"http://evil\")", "\"'=HYPERLINK(\"\"http://evil\"\")\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("\tx", "\"'\tx\""),
            ("a,b\r\nc", "\"a,b\r\nc\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
        ] {
            assert_eq!(cell(&Value::from(text), false), shown, "{text}");
        }
        assert_eq!(cell(&Value::from(0), true), "1970-01-01T00:00:00Z");
        assert_eq!(cell(&Value::Null, false), "");
    }
}
