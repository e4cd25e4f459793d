//! The audit log as a file: CSV or JSON lines.

use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use packhouse_api::forms;
use packhouse_api::operations::{PageRequest, audit};
use packhouse_store::{AuditFilter, AuditRow};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::page_context::PageContext;
use crate::{PageResult, dates};

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

/// Format of the exported file.
#[derive(Clone, Copy)]
pub(super) enum ExportFormat {
    Csv,
    JsonLines,
}

/// Streams all matching events as a file.
pub(super) async fn export(ctx: Arc<PageContext>, filter: AuditFilter, kind: ExportFormat) -> PageResult {
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
