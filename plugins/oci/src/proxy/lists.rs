//! An upstream's lists: tags, and what refers to a manifest. Each comes in pages of the upstream's own size.
//!
//! The next page is asked for at the address of this one, with the query that the upstream's `Link` names: a link leads
//! nowhere else. One call follows so many pages and no more; of tags, the client is told to ask for the rest.

use super::{LIST_LIMIT, Upstream, header, is_there, unreachable, unusable};
use crate::MANIFEST_LIMIT;
use crate::manifest;
use crate::records::Referrer;
use packhouse_sdk::{Context, Digest, Failure, ReadAt, Reply, Repository};
use serde::Deserialize;
use std::collections::BTreeSet;

/// Pages of one list that one call follows.
const PAGES: usize = 20;
/// Tags of one page: some registries refuse to be asked for more.
const PAGE: usize = 1_000;
/// Bytes of all pages of a list of referrers.
const REFERRERS_LIMIT: u64 = 8 << 20;
/// Bytes of a link's query.
const QUERY_LIMIT: usize = 2_048;

/// Tags of an image, in their order.
pub(crate) struct Tags {
    pub(crate) tags: BTreeSet<String>,
    /// Whether there are more behind the last of them.
    pub(crate) more: bool,
}

#[derive(Deserialize)]
struct TagPage {
    tags: Option<Vec<String>>,
}

/// Tags after `last`, at most so many; none where the upstream does not know the image.
///
/// # Errors
/// 502 where the upstream cannot be asked, or its list does not come on.
pub(crate) fn tags(
    cx: &Context,
    proxy: &Repository,
    image: &str,
    limit: usize,
    last: &str,
) -> Result<Option<Tags>, Failure> {
    let upstream = Upstream::of(proxy, image)?;
    // What cannot be a tag's beginning is left out of the upstream's address; the answer is cut below in any case.
    let after = if crate::name::tag(last).is_ok() { format!("&last={last}") } else { String::new() };
    let mut next = Some(format!("n={}{after}", limit.min(PAGE)));
    let mut found = Tags { tags: BTreeSet::new(), more: false };
    for page in 0..PAGES {
        let Some(query) = next.take() else { return Ok(Some(found)) };
        let target = upstream.path(&format!("tags/list?{query}"));
        let reply =
            cx.upstream("GET", &target).limit(LIST_LIMIT).metadata().start(proxy).map_err(unreachable)?;
        if !is_there(&reply)? {
            return if page == 0 { Ok(None) } else { Err(unusable("its list of tags breaks off")) };
        }
        next = next_page(&reply)?;
        let bytes = reply.body().map_err(unreachable)?.read_all(LIST_LIMIT).map_err(unreachable)?;
        let list: TagPage =
            serde_json::from_slice(&bytes).map_err(|_| unusable("its list of tags is none"))?;
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
        Err(unusable("its list of tags does not come on"))
    } else {
        Ok(Some(found))
    }
}

#[derive(Deserialize)]
struct Index {
    manifests: Option<Vec<Referrer>>,
}

/// What refers to a manifest: as the upstream lists it, and as clients list it under the tag `sha256-…` where they find no such list. A registry
/// that came to know lists later may still have what was pushed before under the tag alone.
///
/// # Errors
/// 502 where the upstream cannot be asked, or its list is too long.
pub(crate) fn referrers(
    cx: &Context,
    proxy: &Repository,
    image: &str,
    subject: &Digest,
) -> Result<Vec<Referrer>, Failure> {
    let upstream = Upstream::of(proxy, image)?;
    let listed = listed(cx, proxy, &upstream, subject);
    let tagged = tagged(cx, proxy, &upstream, subject);
    match (listed, tagged) {
        // The list is the upstream's own word, whatever becomes of the tag.
        (Ok(Some(listed)), tagged) => {
            let mut tagged = tagged.unwrap_or_default();
            tagged.retain(|one| !listed.iter().any(|known| known.digest == one.digest));
            Ok(listed.into_iter().chain(tagged).collect())
        }
        (Ok(None), tagged) => tagged,
        // That there are no lists is not kept as long as what lies under the tag.
        (Err(_), Ok(tagged)) if !tagged.is_empty() => Ok(tagged),
        (Err(failure), _) => Err(failure),
    }
}

/// The upstream's list; none where it knows no such lists.
fn listed(
    cx: &Context,
    proxy: &Repository,
    upstream: &Upstream,
    subject: &Digest,
) -> Result<Option<Vec<Referrer>>, Failure> {
    let path = upstream.path(&format!("referrers/{subject}"));
    let (mut found, mut bytes) = (Vec::new(), 0);
    let mut next = Some(String::new());
    for page in 0..PAGES {
        let Some(query) = next.take() else { return Ok(Some(found)) };
        let target = if query.is_empty() { path.clone() } else { format!("{path}?{query}") };
        let Some(reply) = index_at(cx, proxy, &target)? else {
            return if page == 0 { Ok(None) } else { Err(breaks_off()) };
        };
        next = next_page(&reply)?;
        found.extend(entries(reply, &mut bytes)?);
    }
    if next.is_some() { Err(unusable("its list of referrers does not end")) } else { Ok(Some(found)) }
}

/// The index under the tag `sha256-…`, as the specification has it for registries without such lists.
fn tagged(
    cx: &Context,
    proxy: &Repository,
    upstream: &Upstream,
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
    let index: Index =
        serde_json::from_slice(&bytes).map_err(|_| unusable("its list of referrers is none"))?;
    Ok(index.manifests.unwrap_or_default())
}

fn breaks_off() -> Failure {
    unusable("its list of referrers breaks off")
}

/// The query of the page behind this one.
fn next_page(reply: &Reply) -> Result<Option<String>, Failure> {
    let link = header(reply, "link")?;
    match link.as_deref().and_then(next_query) {
        Some(query) if query.len() <= QUERY_LIMIT => Ok(Some(query.to_owned())),
        Some(_) => Err(unusable("the address of its list's next page is too long")),
        None => Ok(None),
    }
}

/// Of the link with the relation `next` (RFC 8288) what stands behind its question mark.
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
    fn of_a_link_only_the_next_pages_query_counts() {
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
