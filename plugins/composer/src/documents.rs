//! `packages.json`, which has the addresses of all other documents, and the lists of packages.

use crate::records::{ALL_FETCHED, ALL_VERSIONS};
use packhouse_sdk::{Context, Failure, Intent, Output, Params, Repository, Request, Response};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;

/// Maximum number of names that `packages.json` lists. If a repository has more packages, the list
/// is missing, and Composer requests the metadata of every package that it looks for.
const MAX_LISTED: usize = 5_000;
/// The size limit of Composer's report of installed packages, in bytes.
const REPORT_LIMIT: u64 = 1 << 20;

pub(crate) fn plan_many(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().many_packages())
}

pub(crate) fn plan_notify(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().many_packages().body(REPORT_LIMIT))
}

/// `GET` of the repository's own address. A successful response shows users that their credential
/// works.
pub(crate) fn root(_cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let address = request.address();
    Ok(Response::text(format!(
        "A Composer repository: composer config repositories.NAME composer {address}/\n"
    )))
}

/// `GET /packages.json`.
pub(crate) fn packages(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let mut document = json!({
        "packages": [],
        "metadata-url": request.link("p2/%package%.json"),
        "notify-batch": request.link("downloads"),
        "search": request.link("search.json?q=%query%&type=%type%"),
        "list": request.link("packages/list.json"),
        "security-advisories": {
            "metadata": false, "api-url": request.link("security-advisories"),
        },
    });
    if cx.proxies()?.is_empty() {
        let names = package_names(cx)?;
        if names.len() <= MAX_LISTED
            && let Some(members) = document.as_object_mut()
        {
            members.insert("available-packages".to_owned(), json!(names));
        }
    }
    response(cx, &document)
}

/// The names of all packages. A proxy lists only packages of which it fetched a file.
fn package_names(cx: &Context) -> Result<BTreeSet<String>, Failure> {
    let mut found = BTreeSet::new();
    for repository in cx.sources()? {
        let prefix = if repository.is_proxy() { ALL_FETCHED } else { ALL_VERSIONS };
        let mut own = Vec::new();
        for vendor in repository.keys(prefix).delimiter("/") {
            for key in repository.keys(vendor?).delimiter("/") {
                let key = key?;
                let name = key.strip_prefix(prefix).unwrap_or(&key);
                own.push(name.trim_end_matches('/').to_owned());
            }
        }
        found.extend(visible(repository, own)?);
    }
    Ok(found)
}

/// Removes the names of packages that must not be requested from the repository's upstream.
fn visible(repository: &Repository, mut names: Vec<String>) -> Result<Vec<String>, Failure> {
    if repository.is_proxy() {
        let withheld = repository.withheld(&names)?;
        names.retain(|name| !withheld.contains(name));
    }
    Ok(names)
}

/// `GET /packages/list.json`, with a pattern in `filter`.
pub(crate) fn list(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let mut names = package_names(cx)?;
    if let Some(filter) = request.query("filter") {
        names.retain(|name| matches_pattern(filter, name));
    }
    response(cx, &json!({"packageNames": names}))
}

/// True if a name matches a pattern. `*` stands for any text.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

/// `GET /search.json?q=`.
pub(crate) fn search(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let (mut names, mut total) = (Vec::new(), 0);
    for repository in cx.sources()? {
        let matches = repository.search(request.query("q").unwrap_or_default(), 0, 100)?;
        total += matches.total;
        for name in visible(repository, matches.names)? {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let result = |name| json!({"name": name, "url": "", "repository": "", "downloads": 0, "favers": 0});
    let results: Vec<_> = names.into_iter().map(result).collect();
    response(cx, &json!({"results": results, "total": total}))
}

/// `POST /downloads`: the packages that Composer installed. The plugin discards the report, because
/// the host itself counts the files that it sends.
pub(crate) fn notify(_cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    drop(request.take_body());
    Ok(Response::json(&json!({"status": "success"}))?)
}

fn response(cx: &Context, document: &impl Serialize) -> Result<Response, Failure> {
    let mut out = Output::new(cx);
    out.json(document)?;
    let content = out.finish()?;
    Ok(Response::ok().content_type("application/json").revalidate().content(content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_filter_is_a_pattern() {
        for (pattern, name) in
            [("acme/*", "acme/demo"), ("*/demo", "acme/demo"), ("*", "a/b"), ("a*/b*c", "ax/bxc")]
        {
            assert!(matches_pattern(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("acme/*", "other/demo"), ("acme", "acme/demo"), ("a*b*b", "ab")] {
            assert!(!matches_pattern(pattern, name), "{pattern} {name}");
        }
    }

    proptest! {
        #[test]
        fn any_pattern_is_read(pattern in "[a*/]{0,8}", name in "[a/]{0,8}") {
            let _ = matches_pattern(&pattern, &name);
        }
    }
}
