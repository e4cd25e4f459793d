//! A folder's listing: a page for people, JSON for tools; one level, a page at a time; of a group what all members have.

use crate::page::{Entry, Level, Page};
use crate::records::{self, FileRecord};
use crate::{missing, proxy};
use packhouse_sdk::{Accept, Context, Failure, Output, Repository, Request, Response};
use std::collections::BTreeMap;

/// Entries of a page if the client does not say, and at most.
const PAGE: usize = 500;
const MAX_PAGE: usize = 1000;

/// The listing of a folder. 404 where nothing is stored below it; the repository itself is always there.
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
    let page = Page { path, entries, next };
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
    let good = limit.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
    good.ok_or_else(|| Failure::invalid(format!("`limit` is a number from 1 to {MAX_PAGE}")))
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
            Some(name) => entries.push(Entry::folder(name)),
            None => {
                // One that was deleted a moment ago is left out.
                let record = repository.get_json::<FileRecord>(key)?.map(|entry| entry.value);
                entries.extend(
                    record.map(|record| Entry::file(name, record.size, record.time, record.sha256.hex())),
                );
            }
        }
    }
    let last = keys.last().and_then(|key| key.get(prefix.len()..)).map(str::to_owned);
    Ok(Level { entries, until: last.filter(|_| more) })
}

/// All levels as one, each name once, the first that has it; as far as each of them was looked at.
fn merged(levels: Vec<Level>, limit: usize) -> (Vec<Entry>, Option<String>) {
    let until = levels.iter().filter_map(|level| level.until.clone()).min();
    let mut all: BTreeMap<String, Entry> = BTreeMap::new();
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

/// Whether JSON is named in `Accept`, and no page for people before it.
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
            Some(name) => Entry::folder(name),
            None => Entry::file(name, 1, 0, ""),
        });
        Level { entries: entries.collect(), until: until.map(str::to_owned) }
    }

    #[test]
    fn members_are_one_list_as_far_as_each_was_read() {
        let names = |levels: Vec<Level>, limit| {
            let (entries, next) = merged(levels, limit);
            (entries.iter().map(Entry::key).collect::<Vec<_>>().join(" "), next)
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
    fn people_get_a_page_and_tools_json() {
        assert!(prefers_json("application/json") && prefers_json("text/html;q=0.5, application/json"));
        assert!(!prefers_json("text/html,*/*;q=0.8") && !prefers_json("*/*") && !prefers_json(""));
    }
}
