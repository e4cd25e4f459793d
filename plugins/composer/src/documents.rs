//! `packages.json`, by which Composer finds everything else, and the lists.

use crate::records;
use packhouse_sdk::{Context, Failure, Intent, Params, Request, Response};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Names that `packages.json` lists; where there are more, Composer asks for each.
const LISTED: usize = 5_000;
/// Bytes of what Composer says that it installed.
const NOTE: u64 = 1 << 20;

pub(crate) fn plan_many(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().many_packages())
}

pub(crate) fn plan_notify(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().many_packages().body(NOTE))
}

/// `GET` of the address itself: what tells that a credential works.
pub(crate) fn root(_cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let text =
        format!("A Composer repository: composer config repositories.NAME composer {}/\n", request.address);
    Ok(Response::text(text))
}

/// `GET /packages.json`.
pub(crate) fn packages(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let Value::Object(mut document) = json!({
        "packages": [],
        "metadata-url": request.link("p2/%package%.json"),
        "notify-batch": request.link("downloads"),
        "search": request.link("search.json?q=%query%&type=%type%"),
        "list": request.link("packages/list.json"),
    }) else {
        return Err(Failure::internal("an object that is none"));
    };
    if cx.proxies()?.is_empty() {
        let names = names(cx)?;
        if names.len() <= LISTED {
            document.insert("available-packages".to_owned(), json!(names));
        }
    }
    Ok(Response::json(&document)?.revalidate())
}

/// Names of all packages; a proxy's are those of which it has a file.
fn names(cx: &Context) -> Result<BTreeSet<String>, Failure> {
    let mut found = BTreeSet::new();
    for repository in cx.sources()? {
        let prefix = if repository.is_proxy() { "p/" } else { records::ALL };
        let mut own = Vec::new();
        for vendor in repository.keys(prefix).delimiter("/") {
            for package in repository.keys(vendor?).delimiter("/") {
                let package = package?;
                own.push(package.get(prefix.len()..).unwrap_or_default().trim_end_matches('/').to_owned());
            }
        }
        if repository.is_proxy() {
            let withheld = repository.withheld(&own)?;
            own.retain(|name| !withheld.contains(name));
        }
        found.extend(own);
    }
    Ok(found)
}

/// `GET /packages/list.json`, with a pattern in `filter`.
pub(crate) fn list(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let mut names = names(cx)?;
    if let Some(filter) = request.query("filter") {
        names.retain(|name| fits(filter, name));
    }
    Ok(Response::json(&json!({"packageNames": names}))?.revalidate())
}

/// Whether a name is as a pattern says, in which `*` stands for any text.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let (between, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in between.split('*') {
        match name.split_once(part) {
            Some((_, after)) => name = after,
            None => return false,
        }
    }
    name.ends_with(last)
}

/// `GET /search.json?q=`.
pub(crate) fn search(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let text = request.query("q").unwrap_or_default();
    let (mut names, mut known, mut total) = (Vec::new(), BTreeSet::new(), 0);
    for repository in cx.sources()? {
        let matches = repository.search(text, 0, 100)?;
        total += matches.total;
        let withheld =
            if repository.is_proxy() { repository.withheld(&matches.names)? } else { BTreeSet::new() };
        let own = matches.names.into_iter().filter(|name| !withheld.contains(name));
        names.extend(own.filter(|name| known.insert(name.clone())));
    }
    let found = names
        .iter()
        .map(|name| json!({"name": name, "url": "", "repository": "", "downloads": 0, "favers": 0}));
    let found: Vec<Value> = found.collect();
    Ok(Response::json(&json!({"results": found, "total": total}))?.revalidate())
}

/// `POST /downloads`: what Composer installed. The host counts what it sends, so that nothing is to be noted.
pub(crate) fn notify(_cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    drop(request.take_body());
    Ok(Response::json(&json!({"status": "success"}))?)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_filter_is_a_pattern() {
        assert!(
            fits("acme/*", "acme/demo")
                && fits("*/demo", "acme/demo")
                && fits("*", "a/b")
                && fits("a*/b*c", "ax/bxc")
        );
        assert!(!fits("acme/*", "other/demo") && !fits("acme", "acme/demo"));
    }
}
