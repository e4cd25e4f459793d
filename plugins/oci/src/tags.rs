//! The list of an image's tags, ordered by bytes and in pages.

use crate::proxy::lists::{self, TagList};
use crate::{failure, name, records};
use packhouse_sdk::{Context, Failure, Intent, Params, Repository, Request, Response};
use serde::Serialize;
use std::collections::BTreeSet;

/// Maximum number of tags in one page. Even if all tags have the maximum length, a page stays below
/// the 1 MiB that a response may have.
const PAGE_LIMIT: usize = 5_000;

#[derive(Serialize)]
struct TagsDocument<'a> {
    name: String,
    tags: Vec<&'a str>,
}

pub(crate) fn plan(request: &Request, params: &Params) -> Result<Intent, Failure> {
    let image = name::image(request, params)?;
    page(request)?;
    Ok(Intent::read().subject(image.as_str()).about_package(image))
}

pub(crate) fn list(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    let image = name::image(request, params)?;
    let (limit, last) = page(request)?;
    let (mut tags, mut end) = (BTreeSet::new(), None);
    let all = cx.all(|repository| {
        // One tag more than the limit shows whether there is another page.
        if repository.is_proxy() {
            lists::tags(cx, repository, &image, limit + 1, last)
        } else {
            stored(repository, &image, limit + 1, last)
        }
    })?;
    if all.is_empty() {
        return Err(failure::unknown_image());
    }
    for found in all {
        if let Some(last) = found.tags.last().filter(|_| found.more) {
            end = Some(end.map_or(last.clone(), |end: String| end.min(last.clone())));
        }
        tags.extend(found.tags);
    }
    // If `end` is set, one member has listed only its tags up to `end`. This page must then end
    // there for all members. Otherwise the next page could skip later tags of this member.
    tags.retain(|tag| end.as_ref().is_none_or(|end| tag <= end));
    let page: Vec<&str> = tags.iter().map(String::as_str).take(limit).collect();
    let more = tags.len() > limit || end.is_some();
    let link = page.last().filter(|_| more).map(|last| next(request, &image, limit, last));
    let name = format!("repositories/{}/{image}", name::repository(request));
    let answer = Response::json(&TagsDocument { name, tags: page })?.revalidate();
    Ok(match link {
        Some(link) => answer.header("link", link),
        None => answer,
    })
}

/// The limit of a page, and the tag after which it begins.
fn page<'a>(request: &'a Request) -> Result<(usize, &'a str), Failure> {
    let limit = match request.query("n") {
        // A number with too many digits to parse is above the limit in any case.
        Some(n) if !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()) => {
            n.parse().unwrap_or(usize::MAX).min(PAGE_LIMIT)
        }
        Some(_) => return Err(failure::bad_page()),
        None => PAGE_LIMIT,
    };
    let last = request.query("last").unwrap_or_default();
    if last.len() > 256 || last.contains(char::is_control) {
        Err(failure::bad_page())
    } else {
        Ok((limit, last))
    }
}

fn stored(
    repository: &Repository,
    image: &str,
    limit: usize,
    last: &str,
) -> Result<Option<TagList>, Failure> {
    let prefix = records::tags(image);
    let page = u32::try_from(limit).unwrap_or(u32::MAX);
    let keys = repository.keys(prefix.as_str()).after(format!("{prefix}{last}")).page(page);
    let tags = keys.take(limit).map(|key| Ok(key?.strip_prefix(&prefix).unwrap_or_default().to_owned()));
    let tags: BTreeSet<String> = tags.collect::<Result<_, Failure>>()?;
    // An image without tags still exists.
    let known = !tags.is_empty() || has_manifests(repository, image)?;
    Ok(known.then_some(TagList { more: tags.len() == limit, tags }))
}

/// Returns true if a hosted repository has any manifest of an image.
fn has_manifests(repository: &Repository, image: &str) -> Result<bool, Failure> {
    Ok(repository.keys(records::manifests(image)).page(1).next().transpose()?.is_some())
}

/// The link to the next page. The characters of a tag need no encoding.
fn next(request: &Request, image: &str, limit: usize, last: &str) -> String {
    let path = name::location(request, image, "tags/list");
    format!("<{path}?n={limit}&last={last}>; rel=\"next\"")
}
