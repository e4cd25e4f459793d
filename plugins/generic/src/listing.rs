//! Folder listings: HTML for people and JSON for tools. A listing shows one level of a folder, one
//! page at a time. The listing of a group merges the folders of all members.

use crate::page::{Level, ListingEntry, ListingPage};
use crate::records::{self, FileRecord};
use crate::{missing, proxy};
use packhouse_sdk::{Accept, Context, Failure, Output, Repository, Request, Response};
use std::collections::BTreeMap;

/// Number of entries of a page if the client does not set a limit.
const PAGE: usize = 500;
/// Maximum number of entries of a page.
const MAX_PAGE: usize = 1000;

/// Returns the listing of a folder, or 404 if nothing is stored below it. The top folder always
/// exists.
pub(crate) fn folder(cx: &Context, request: &Request, folder: &str) -> Result<Response, Failure> {
    let (limit, after) = (limit(request)?, request.query("after").unwrap_or_default());
    let levels = cx.all(|source| {
        if source.is_proxy() {
            proxy::level(cx, source, folder, after, limit)
        } else {
            stored(source, folder, after, limit).map(Some)
        }
    })?;
    let (entries, next) = merged(levels, limit);
    if entries.is_empty() && after.is_empty() && !folder.is_empty() {
        return Err(missing(&format!("{folder}/")));
    }
    let path = if folder.is_empty() { "/".to_owned() } else { format!("/{folder}/") };
    let page = ListingPage { path, entries, next };
    let mut out = Output::new(cx);
    let media_type = if prefers_json(request.header("accept").unwrap_or_default()) {
        out.json(&page)?;
        "application/json"
    } else {
        page.html(limit).split_inclusive('\n').try_for_each(|line| out.push(line))?;
        "text/html; charset=utf-8"
    };
    let response = Response::ok().content_type(media_type).content(out.finish()?);
    Ok(response.header("vary", "accept").revalidate())
}

fn limit(request: &Request) -> Result<usize, Failure> {
    let Some(limit) = request.query("limit") else { return Ok(PAGE) };
    let valid = limit.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
    valid.ok_or_else(|| Failure::invalid(format!("`limit` must be a number from 1 to {MAX_PAGE}")))
}

fn stored(repository: &Repository, folder: &str, after: &str, limit: usize) -> Result<Level, Failure> {
    let prefix = records::files_in(folder);
    let keys =
        repository.keys(&prefix).delimiter("/").after(format!("{prefix}{after}")).page(limit as u32 + 1);
    let mut keys: Vec<String> = keys.take(limit + 1).collect::<Result<_, _>>()?;
    let more = keys.len() > limit;
    keys.truncate(limit);
    let mut entries = Vec::with_capacity(keys.len());
    for key in &keys {
        let name = key.get(prefix.len()..).unwrap_or_default();
        match name.strip_suffix('/') {
            Some(name) => entries.push(ListingEntry::folder(name)),
            None => {
                // The listing leaves out a file that was deleted after its key was read.
                let record = repository.get_json::<FileRecord>(key)?.map(|entry| entry.value);
                entries.extend(
                    record.map(|record| {
                        ListingEntry::file(name, record.size, record.time, record.sha256.hex())
                    }),
                );
            }
        }
    }
    let last = keys.last().and_then(|key| key.get(prefix.len()..)).map(str::to_owned);
    Ok(Level { entries, until: last.filter(|_| more) })
}

/// Merges the levels of all members into one page. Also returns the value of `after` that requests
/// the next page, or `None` on the last page. If several members have an entry with the same key,
/// the page has the first member's entry. The page ends at the earliest `until`, because the member
/// of that level may have more entries after this key.
fn merged(levels: Vec<Level>, limit: usize) -> (Vec<ListingEntry>, Option<String>) {
    let until = levels.iter().filter_map(|level| level.until.clone()).min();
    let mut all: BTreeMap<String, ListingEntry> = BTreeMap::new();
    for entry in levels.into_iter().flat_map(|level| level.entries) {
        let key = entry.key();
        if until.as_ref().is_none_or(|until| key <= *until) {
            all.entry(key).or_insert(entry);
        }
    }
    let cut = all.keys().nth(limit.saturating_sub(1)).cloned().filter(|_| all.len() > limit);
    let next = cut.or(until);
    (all.into_values().take(limit).collect(), next)
}

/// Returns true if `Accept` names JSON and does not prefer HTML.
fn prefers_json(accept: &str) -> bool {
    let accept = Accept::parse(accept);
    let quality = |media_type: &str| accept.named(media_type).unwrap_or_default();
    quality("application/json") > quality("text/html")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(names: &[&str], until: Option<&str>) -> Level {
        let entries = names.iter().map(|name| match name.strip_suffix('/') {
            Some(name) => ListingEntry::folder(name),
            None => ListingEntry::file(name, 1, 0, ""),
        });
        Level { entries: entries.collect(), until: until.map(str::to_owned) }
    }

    #[test]
    fn levels_are_merged_up_to_the_end_of_the_shortest() {
        let names = |levels: Vec<Level>, limit| {
            let (entries, next) = merged(levels, limit);
            (entries.iter().map(ListingEntry::key).collect::<Vec<_>>().join(" "), next)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            names(vec![level(&["a", "c/"], None), level(&["a", "b"], None)], 9),
            ("a b c/".into(), None)
        );
        assert_eq!(names(vec![level(&["a", "c"], None), level(&["b"], None)], 2), ("a b".into(), some("b")));
        let cut = vec![level(&["a", "b"], Some("b")), level(&["c", "d"], None)];
        assert_eq!(names(cut, 2), ("a b".into(), some("b")));
        assert_eq!(names(vec![level(&[], Some("q"))], 2), (String::new(), some("q")));
    }

    #[test]
    fn browsers_get_html_and_tools_json() {
        assert!(prefers_json("application/json") && prefers_json("text/html;q=0.5, application/json"));
        assert!(!prefers_json("text/html,*/*;q=0.8") && !prefers_json("*/*") && !prefers_json(""));
    }
}
