//! One level of a folder tree. The plugin renders a level as HTML or JSON, and a proxy reads the
//! JSON of its upstream.

use packhouse_sdk::{Timestamp, percent_encode};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// One page of a folder listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListingPage {
    /// The path below the repository's address, with a slash at both ends.
    pub(crate) path: String,
    pub(crate) entries: Vec<ListingEntry>,
    /// Value of the query parameter `after` for the next page; `None` on the last page.
    pub(crate) next: Option<String>,
}

/// A file or a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListingEntry {
    pub(crate) name: String,
    kind: EntryKind,
    /// Size of a file in bytes; `None` for a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// Time of a file's upload, in ms since 1970; `None` for a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    modified: Option<u64>,
    /// SHA-256 of a file's bytes, in hex; `None` for a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EntryKind {
    Folder,
    File,
}

/// Entries of a folder in one repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) entries: Vec<ListingEntry>,
    /// Key of the last entry if the repository has more entries; `None` if the level is complete.
    pub(crate) until: Option<String>,
}

impl ListingEntry {
    pub(crate) fn folder(name: &str) -> Self {
        Self { name: name.to_owned(), kind: EntryKind::Folder, size: None, modified: None, sha256: None }
    }

    pub(crate) fn file(name: &str, size: u64, modified: u64, sha256: &str) -> Self {
        let sha256 = Some(sha256.to_owned());
        Self {
            name: name.to_owned(),
            kind: EntryKind::File,
            size: Some(size),
            modified: Some(modified),
            sha256,
        }
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.kind == EntryKind::Folder
    }

    /// The sort key: the name, with a slash at its end for a folder.
    pub(crate) fn key(&self) -> String {
        if self.is_folder() { format!("{}/", self.name) } else { self.name.clone() }
    }

    /// Returns true if an upstream's entry has a valid file name, and a valid digest or no digest.
    fn is_valid(&self) -> bool {
        let digest = |hex: &String| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !self.sha256.as_ref().is_none_or(digest) {
            return false;
        }
        let forbidden = |symbol: char| matches!(symbol, '/' | '\\') || symbol.is_control();
        !matches!(self.name.as_str(), "" | "." | "..")
            && self.name.len() <= 1000
            && !self.name.contains(forbidden)
    }
}

impl ListingPage {
    /// Returns the valid entries of an upstream's page, sorted by key.
    pub(crate) fn into_level(self) -> Level {
        let mut entries: Vec<ListingEntry> =
            self.entries.into_iter().filter(ListingEntry::is_valid).collect();
        entries.sort_by_key(ListingEntry::key);
        Level { entries, until: self.next.filter(|next| next.len() <= 1001) }
    }

    /// Renders the page as HTML. `limit` is the number of entries that the link to the next page
    /// requests.
    pub(crate) fn html(&self, limit: usize) -> String {
        let title = escape(&self.path);
        let mut html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{title}</title></head>\n<body>\n\
             <h1>{title}</h1>\n<table>\n<thead><tr><th>Name</th><th>Bytes</th><th>Changed (UTC)</th></tr></thead>\n<tbody>\n"
        );
        if self.path != "/" {
            html.push_str("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
        }
        for entry in &self.entries {
            let slash = if entry.is_folder() { "/" } else { "" };
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
        if let Some(next) = &self.next {
            let after = percent_encode(next);
            let _ =
                writeln!(html, "<p><a rel=\"next\" href=\"?after={after}&amp;limit={limit}\">More</a></p>");
        }
        html.push_str("</body>\n</html>\n");
        html
    }
}

/// Formats a time in UTC, such as `2026-11-21 05:01`.
fn written(ms: u64) -> String {
    let Timestamp { year, month, day, hour, minute, .. } = Timestamp::from_ms(ms);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for symbol in text.chars() {
        match symbol {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            symbol => escaped.push(symbol),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_harmless_in_a_page() {
        let entry = ListingEntry::file("<script>&\"é:", 3, 0, "");
        let page = ListingPage { path: "/a/".into(), entries: vec![entry], next: Some("x/".into()) };
        let html = page.html(7);
        assert!(html.contains("href=\"./%3Cscript%3E%26%22%C3%A9%3A\""), "{html}");
        assert!(html.contains("&lt;script&gt;&amp;&quot;é:"), "{html}");
        assert!(html.contains("1970-01-01 00:00") && html.contains("?after=x%2F&amp;limit=7"), "{html}");
        assert!(!html.contains("<script"));
    }

    #[test]
    fn impossible_names_are_left_out_of_an_upstreams_list() {
        let names = ["..", "a/b", "", "b", "a\u{0}"];
        let entries = names.iter().map(|name| ListingEntry::folder(name)).collect();
        let level = ListingPage { path: "/".into(), entries, next: None }.into_level();
        assert_eq!(level.entries, [ListingEntry::folder("b")]);
    }

    proptest! {
        #[test]
        fn any_list_of_an_upstream_is_read(text in "\\PC{0,200}", names in prop::collection::vec("\\PC{0,8}", 0..8)) {
            let _ = serde_json::from_str::<ListingPage>(&text).map(ListingPage::into_level);
            let entries: Vec<ListingEntry> = names.iter().map(|name| ListingEntry::folder(name)).collect();
            let page = ListingPage { path: "/".into(), entries, next: None };
            let read: ListingPage = serde_json::from_str(&serde_json::to_string(&page).unwrap()).unwrap();
            prop_assert_eq!(&read, &page);
            prop_assert!(read.into_level().entries.is_sorted_by_key(ListingEntry::key));
        }
    }
}
