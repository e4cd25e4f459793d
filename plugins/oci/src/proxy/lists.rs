//! An upstream's lists of tags and referrers. The upstream decides how long the pages of a list
//! are.
//!
//! The plugin requests the next page at the path of the current page, and takes only the query from
//! the upstream's `Link`. A link therefore cannot lead elsewhere. One call requests a limited
//! number of pages. If an image has further tags, the client gets a link to them.

use super::{LIST_LIMIT, UpstreamImage, header, is_there, unreachable, unusable};
use crate::MANIFEST_LIMIT;
use crate::manifest;
use crate::records::Referrer;
use packhouse_sdk::{Context, Digest, Failure, ReadAt, Reply, Repository};
use serde::Deserialize;
use std::collections::BTreeSet;

/// Maximum number of pages of one list that one call requests.
const MAX_PAGES: usize = 20;
/// Maximum number of tags that the plugin requests in one page. Some registries refuse a higher
/// number.
const PAGE_LIMIT: usize = 1_000;
/// Maximum size of a list of referrers, in bytes of all its pages.
const REFERRERS_LIMIT: u64 = 8 << 20;
/// Maximum size of a link's query, in bytes.
const QUERY_LIMIT: usize = 2_048;

/// A sorted part of the tags of an image.
pub(crate) struct TagList {
    pub(crate) tags: BTreeSet<String>,
    /// True if the image has more tags after the last one in `tags`.
    pub(crate) more: bool,
}

#[derive(Deserialize)]
struct TagPage {
    tags: Option<Vec<String>>,
}

/// At most `limit` tags after `last`. `None` if the upstream does not know the image.
///
/// # Errors
/// 502 if the upstream cannot be reached, or if its pages contain no further tags.
pub(crate) fn tags(
    cx: &Context,
    proxy: &Repository,
    image: &str,
    limit: usize,
    last: &str,
) -> Result<Option<TagList>, Failure> {
    let upstream = UpstreamImage::of(proxy, image)?;
    // The plugin sends `last` to the upstream only if it is a valid tag. The loop below drops the
    // tags up to `last` in any case.
    let after = if crate::name::tag(last).is_ok() { format!("&last={last}") } else { String::new() };
    let mut next = Some(format!("n={}{after}", limit.min(PAGE_LIMIT)));
    let mut found = TagList { tags: BTreeSet::new(), more: false };
    for page in 0..MAX_PAGES {
        let Some(query) = next.take() else { return Ok(Some(found)) };
        let target = upstream.path(&format!("tags/list?{query}"));
        let reply =
            cx.upstream("GET", &target).limit(LIST_LIMIT).metadata().start(proxy).map_err(unreachable)?;
        if !is_there(&reply)? {
            return if page == 0 { Ok(None) } else { Err(unusable("its list of tags is truncated")) };
        }
        next = next_page(&reply)?;
        let bytes = reply.body().map_err(unreachable)?.read_all(LIST_LIMIT).map_err(unreachable)?;
        let list: TagPage =
            serde_json::from_slice(&bytes).map_err(|_| unusable("its list of tags is malformed"))?;
        let mut tags = list.tags.unwrap_or_default();
        let listed = tags.len();
        tags.retain(|tag| crate::name::tag(tag).is_ok());
        cx.log().left_out(image, "versions", listed - tags.len());
        found.tags.extend(tags.into_iter().filter(|tag| tag.as_str() > last));
        if found.tags.len() >= limit {
            found.more = found.tags.len() > limit || next.is_some();
            while found.tags.len() > limit {
                found.tags.pop_last();
            }
            return Ok(Some(found));
        }
    }
    found.more = next.is_some();
    if found.more && found.tags.is_empty() {
        Err(unusable("its list of tags has too many empty pages"))
    } else {
        Ok(Some(found))
    }
}

#[derive(Deserialize)]
struct ReferrersIndex {
    manifests: Option<Vec<Referrer>>,
}

/// Returns the referrers of a manifest from two sources: the upstream's list of referrers, and the
/// index under the tag `sha256-…`. Clients maintain this index if a registry does not support lists
/// of referrers. A registry that supports lists now may still have older referrers under the tag
/// alone.
///
/// # Errors
/// 502 if the upstream cannot be reached, or if its list is too long.
pub(crate) fn referrers(
    cx: &Context,
    proxy: &Repository,
    image: &str,
    subject: &Digest,
) -> Result<Vec<Referrer>, Failure> {
    let upstream = UpstreamImage::of(proxy, image)?;
    let listed = listed(cx, proxy, &upstream, subject);
    let tagged = tagged(cx, proxy, &upstream, subject);
    match (listed, tagged) {
        // The upstream's own list is enough, even if the tag cannot be fetched.
        (Ok(Some(listed)), tagged) => {
            let mut tagged = tagged.unwrap_or_default();
            tagged.retain(|one| !listed.iter().any(|known| known.digest == one.digest));
            Ok(listed.into_iter().chain(tagged).collect())
        }
        (Ok(None), tagged) => tagged,
        // If the upstream replied that it has no list, the host caches this reply for a shorter
        // time than the index under the tag. If the plugin then cannot request the list again, the
        // cached index is enough.
        (Err(_), Ok(tagged)) if !tagged.is_empty() => Ok(tagged),
        (Err(failure), _) => Err(failure),
    }
}

/// Returns the upstream's list of referrers. `None` if the upstream does not support such lists.
fn listed(
    cx: &Context,
    proxy: &Repository,
    upstream: &UpstreamImage,
    subject: &Digest,
) -> Result<Option<Vec<Referrer>>, Failure> {
    let path = upstream.path(&format!("referrers/{subject}"));
    let (mut found, mut bytes) = (Vec::new(), 0);
    let mut next = Some(String::new());
    for page in 0..MAX_PAGES {
        let Some(query) = next.take() else { return Ok(Some(found)) };
        let target = if query.is_empty() { path.clone() } else { format!("{path}?{query}") };
        let Some(reply) = index_at(cx, proxy, &target)? else {
            return if page == 0 { Ok(None) } else { Err(truncated()) };
        };
        next = next_page(&reply)?;
        found.extend(entries(reply, &mut bytes)?);
    }
    if next.is_some() { Err(unusable("its list of referrers does not end")) } else { Ok(Some(found)) }
}

/// Returns the referrers in the index under the tag `sha256-…`, which the specification defines for
/// registries without lists of referrers.
fn tagged(
    cx: &Context,
    proxy: &Repository,
    upstream: &UpstreamImage,
    subject: &Digest,
) -> Result<Vec<Referrer>, Failure> {
    let tag = subject.as_str().replacen(':', "-", 1);
    match index_at(cx, proxy, &upstream.path(&format!("manifests/{tag}")))? {
        Some(reply) => entries(reply, &mut 0),
        None => Ok(Vec::new()),
    }
}

fn index_at(cx: &Context, proxy: &Repository, target: &str) -> Result<Option<Reply>, Failure> {
    let fetch = cx.upstream("GET", target).header("accept", manifest::INDEX).limit(MANIFEST_LIMIT);
    let reply = fetch.metadata().start(proxy).map_err(unreachable)?;
    Ok(is_there(&reply)?.then_some(reply))
}

fn entries(reply: Reply, before: &mut u64) -> Result<Vec<Referrer>, Failure> {
    let bytes = reply.body().map_err(unreachable)?.read_all(MANIFEST_LIMIT).map_err(unreachable)?;
    *before += bytes.len() as u64;
    if *before > REFERRERS_LIMIT {
        return Err(unusable("its list of referrers is too long"));
    }
    let index: ReferrersIndex =
        serde_json::from_slice(&bytes).map_err(|_| unusable("its list of referrers is malformed"))?;
    Ok(index.manifests.unwrap_or_default())
}

fn truncated() -> Failure {
    unusable("its list of referrers is truncated")
}

/// The query of the next page.
fn next_page(reply: &Reply) -> Result<Option<String>, Failure> {
    let link = header(reply, "link")?;
    match link.as_deref().and_then(next_query) {
        Some(query) if query.len() <= QUERY_LIMIT => Ok(Some(query.to_owned())),
        Some(_) => Err(unusable("the address of the next page of its list is too long")),
        None => Ok(None),
    }
}

/// The query of the link with the relation `next` (RFC 8288).
fn next_query(link: &str) -> Option<&str> {
    let mut links = link.split('<').skip(1).filter_map(|one| one.split_once('>'));
    let (target, _) = links.find(|(_, parameters)| {
        parameters.split([';', ',']).any(|one| matches!(one.trim(), "rel=\"next\"" | "rel=next"))
    })?;
    let (_, query) = target.split_once('?')?;
    let query = query.split('#').next().unwrap_or_default();
    (!query.is_empty()).then_some(query)
}

#[cfg(test)]
mod tests {
    use super::next_query;

    #[test]
    fn only_the_query_of_the_next_link_is_used() {
        for (link, expected) in [
            ("</v2/a/tags/list?n=2&last=b>; rel=\"next\"", Some("n=2&last=b")),
            ("<https://evil.test/x?last=b#c>;rel=next", Some("last=b")),
            ("<?a=1>; rel=\"prev\", </x?b=2,3>; title=\"y\"; rel=\"next\"", Some("b=2,3")),
            ("</v2/a/tags/list>; rel=\"next\"", None),
            ("</v2/a/tags/list?last=b>", None),
            ("</v2/a/tags/list?last=b; rel=\"next\"", None),
            ("", None),
        ] {
            assert_eq!(next_query(link), expected, "{link}");
        }
    }
}
