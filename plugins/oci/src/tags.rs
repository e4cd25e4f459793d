//! The list of an image's tags, in the order of their bytes, a page at a time.

use crate::proxy::lists::{self, Tags};
use crate::{failure, name, records};
use packhouse_sdk::{Context, Failure, Intent, Params, Repository, Request, Response};
use serde::Serialize;
use std::collections::BTreeSet;

/// Tags of one page: with the longest names they make less than the MiB that an answer may have.
const PAGE: usize = 5_000;

#[derive(Serialize)]
struct List<'a> {
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
    let (wanted, last) = page(request)?;
    let (mut tags, mut end) = (BTreeSet::new(), None);
    let all = cx.all(|repository| {
        // One more than wanted tells whether there is another page.
        if repository.is_proxy() {
            lists::tags(cx, repository, &image, wanted + 1, last)
        } else {
            stored(repository, &image, wanted + 1, last)
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
    // Behind the last that is known of one member, what another has would hide what that one has there.
    tags.retain(|tag| end.as_ref().is_none_or(|end| tag <= end));
    let page: Vec<&str> = tags.iter().map(String::as_str).take(wanted).collect();
    let more = tags.len() > wanted || end.is_some();
    let link = page.last().filter(|_| more).map(|last| next(request, &image, wanted, last));
    let name = format!("repositories/{}/{image}", name::repository(request));
    let answer = Response::json(&List { name, tags: page })?.revalidate();
    Ok(match link {
        Some(link) => answer.header("link", link),
        None => answer,
    })
}

/// How many are wanted, after which.
fn page<'a>(request: &'a Request) -> Result<(usize, &'a str), Failure> {
    let wanted = match request.query("n") {
        // More digits than a number here may have is more than a page in any case.
        Some(n) if !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()) => {
            n.parse().unwrap_or(usize::MAX).min(PAGE)
        }
        Some(_) => return Err(failure::bad_page()),
        None => PAGE,
    };
    let last = request.query("last").unwrap_or_default();
    if last.len() > 256 || last.contains(char::is_control) {
        Err(failure::bad_page())
    } else {
        Ok((wanted, last))
    }
}

fn stored(repository: &Repository, image: &str, limit: usize, last: &str) -> Result<Option<Tags>, Failure> {
    let prefix = records::tags(image);
    let page = u32::try_from(limit).unwrap_or(u32::MAX);
    let keys = repository.keys(prefix.as_str()).after(format!("{prefix}{last}")).page(page);
    let tags = keys.take(limit).map(|key| Ok(key?.strip_prefix(&prefix).unwrap_or_default().to_owned()));
    let tags: BTreeSet<String> = tags.collect::<Result<_, Failure>>()?;
    // An image whose tags are all gone still is one.
    let known = !tags.is_empty() || holds(repository, image)?;
    Ok(known.then_some(Tags { more: tags.len() == limit, tags }))
}

/// Whether a hosted repository has anything of an image.
fn holds(repository: &Repository, image: &str) -> Result<bool, Failure> {
    Ok(repository.keys(records::manifests(image)).page(1).next().transpose()?.is_some())
}

/// A tag is made of characters that need no encoding.
fn next(request: &Request, image: &str, wanted: usize, last: &str) -> String {
    let path = name::location(request, image, "tags/list");
    format!("<{path}?n={wanted}&last={last}>; rel=\"next\"")
}
