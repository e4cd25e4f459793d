//! Folder listings: HTML for people and JSON for tools. A listing shows one level, one page at a
//! time.

use crate::answer::missing;
use crate::index;
use crate::layout::{METADATA, join};
use crate::records::{self, FileRecord};
use packhouse_sdk::{Accept, Error, Failure, Repository, Request, Response, Timestamp, percent_encode};
use serde::Serialize;
use std::fmt::Write;

/// Entries of a page if the client does not set a limit.
const PAGE: usize = 500;
/// Most entries of a page.
const MAX_PAGE: usize = 1000;

/// One page of a folder listing.
#[derive(Serialize)]
struct ListingPage {
    /// The path below the repository's address, with a slash at both ends.
    path: String,
    entries: Vec<ListingEntry>,
    /// The value of the parameter `after` for the next page; `None` on the last page.
    next: Option<String>,
}

#[derive(Serialize)]
struct ListingEntry {
    name: String,
    kind: EntryKind,
    /// Size of a file in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// Time of the upload of a file, in ms since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum EntryKind {
    Folder,
    File,
}

/// The listing of a folder; 404 if nothing is stored below it.
pub(crate) fn folder(repository: &Repository, request: &Request, folder: &str) -> Result<Response, Failure> {
    let limit = limit(request)?;
    let page = page(repository, folder, request.query("after").unwrap_or_default(), limit)?;
    let page = page.ok_or_else(|| match folder {
        "" => Failure::not_found("Nothing is published in this repository yet"),
        folder => missing(&format!("{folder}/")),
    })?;
    let response =
        if wants_json(request) { Response::json(&page)? } else { Response::html(html(&page, limit)) };
    Ok(response.header("vary", "accept").revalidate())
}

fn limit(request: &Request) -> Result<usize, Failure> {
    let Some(limit) = request.query("limit") else { return Ok(PAGE) };
    let valid = limit.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
    valid.ok_or_else(|| Failure::invalid(format!("`limit` must be a number from 1 to {MAX_PAGE}")))
}

fn page(
    repository: &Repository,
    folder: &str,
    after: &str,
    limit: usize,
) -> Result<Option<ListingPage>, Failure> {
    let prefix = records::files_in(folder);
    let keys =
        repository.keys(&prefix).delimiter("/").after(format!("{prefix}{after}")).page(limit as u32 + 1);
    let keys: Vec<String> = keys.take(limit + 1).collect::<Result<_, _>>()?;
    let mut names: Vec<&str> = keys.iter().filter_map(|key| key.get(prefix.len()..)).collect();
    // The root of the repository has no metadata, and exists only if something is published.
    let metadata = if folder.is_empty() { None } else { index::metadata(repository, folder)? };
    let is_empty = names.is_empty() && metadata.is_none();
    if is_empty && (after.is_empty() || repository.keys(&prefix).page(1).next().transpose()?.is_none()) {
        return Ok(None);
    }
    let stored = |name: &&str| **name == *METADATA;
    if metadata.is_some() && METADATA > after && !names.iter().any(stored) {
        let at = names.partition_point(|name| *name < METADATA);
        names.insert(at, METADATA);
    }
    let more = names.len() > limit;
    names.truncate(limit);
    let next = names.last().filter(|_| more).map(|&name| name.to_owned());
    let entries = names.iter().map(|name| match (*name, &metadata) {
        (METADATA, Some(document)) => Ok(ListingEntry {
            name: METADATA.to_owned(),
            kind: EntryKind::File,
            size: Some(document.bytes.len() as u64),
            modified: Some(document.modified),
        }),
        (name, _) => entry(repository, folder, name),
    });
    let entries = entries.collect::<Result<_, Error>>()?;
    Ok(Some(ListingPage { path: format!("/{}", records::below("", folder)), entries, next }))
}

fn entry(repository: &Repository, folder: &str, name: &str) -> Result<ListingEntry, Error> {
    if let Some(name) = name.strip_suffix('/') {
        return Ok(ListingEntry {
            name: name.to_owned(),
            kind: EntryKind::Folder,
            size: None,
            modified: None,
        });
    }
    let record =
        repository.get_json::<FileRecord>(&records::file(&join(folder, name)))?.map(|entry| entry.value);
    Ok(ListingEntry {
        name: name.to_owned(),
        kind: EntryKind::File,
        size: record.as_ref().map(|record| record.size),
        modified: record.as_ref().map(|record| record.time),
    })
}

/// Returns true if `Accept` names JSON with a higher quality than HTML.
fn wants_json(request: &Request) -> bool {
    prefers_json(request.header("accept").unwrap_or_default())
}

fn prefers_json(accept: &str) -> bool {
    let accept = Accept::parse(accept);
    let quality = |media_type: &str| accept.named(media_type).unwrap_or_default();
    quality("application/json") > quality("text/html")
}

fn html(page: &ListingPage, limit: usize) -> String {
    let title = escape(&page.path);
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{title}</title></head>\n<body>\n\
         <h1>{title}</h1>\n<table>\n<thead><tr><th>Name</th><th>Bytes</th><th>Changed (UTC)</th></tr></thead>\n<tbody>\n"
    );
    if page.path != "/" {
        html.push_str("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
    }
    for entry in &page.entries {
        let slash = if entry.kind == EntryKind::Folder { "/" } else { "" };
        let size = entry.size.map(|size| size.to_string()).unwrap_or_default();
        let changed = entry.modified.map(written).unwrap_or_default();
        let (link, name) = (percent_encode(&entry.name), escape(&entry.name));
        // Writing to a string does not fail.
        let _ = writeln!(
            html,
            "<tr><td><a href=\"./{link}{slash}\">{name}{slash}</a></td><td>{size}</td><td>{changed}</td></tr>"
        );
    }
    html.push_str("</tbody>\n</table>\n");
    if let Some(next) = &page.next {
        let after = percent_encode(next);
        let _ = writeln!(html, "<p><a rel=\"next\" href=\"?after={after}&amp;limit={limit}\">More</a></p>");
    }
    html.push_str("</body>\n</html>\n");
    html
}

/// A time as `2026-11-21 05:01`.
fn written(ms: u64) -> String {
    let Timestamp { year, month, day, hour, minute, .. } = Timestamp::from_ms(ms);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

fn escape(text: &str) -> String {
    quick_xml::escape::escape(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_in_html() {
        let name = "<script>&\"é:".to_owned();
        let entry = ListingEntry { name, kind: EntryKind::File, size: Some(3), modified: Some(0) };
        let page = ListingPage { path: "/a/".into(), entries: vec![entry], next: Some("x/".into()) };
        let html = html(&page, 7);
        assert!(html.contains("href=\"./%3Cscript%3E%26%22%C3%A9%3A\""), "{html}");
        assert!(html.contains("&lt;script&gt;&amp;&quot;é:"), "{html}");
        assert!(html.contains("1970-01-01 00:00") && html.contains("?after=x%2F&amp;limit=7"), "{html}");
        assert!(!html.contains("<script"));
    }

    #[test]
    fn browsers_get_html_and_tools_json() {
        assert!(prefers_json("application/json") && prefers_json("text/html;q=0.5, application/json"));
        assert!(
            !prefers_json("text/html,application/xhtml+xml,*/*;q=0.8")
                && !prefers_json("*/*")
                && !prefers_json("")
        );
        assert!(!prefers_json("application/json;q=0.1, text/html"));
    }
}
