//! The list of a manifest's referrers: signatures, bills of materials, attestations.

use crate::records::{self, Referrer};
use crate::{manifest, name, proxy};
use packhouse_sdk::{
    Context, Digest, Failure, Intent, Params, Repository, Request, Response, percent_encode,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Maximum size of one page, in bytes. A response may have at most 1 MiB.
const PAGE_BYTES: usize = 900 << 10;
/// Maximum number of descriptors in one page.
const PAGE_LIMIT: usize = 1_000;

pub(crate) fn plan(request: &Request, params: &Params) -> Result<Intent, Failure> {
    let image = name::image(request, params)?;
    name::digest(params.segment("digest"))?;
    after(request)?;
    Ok(Intent::read().subject(image.as_str()).about_package(image))
}

/// Returns an index of the referrers. It is empty for a digest without referrers and for an unknown
/// digest.
pub(crate) fn list(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    let image = name::image(request, params)?;
    let subject = name::digest(params.segment("digest"))?;
    let kind = request.query("artifactType").filter(|kind| !kind.is_empty());
    let after = after(request)?;
    let mut found: BTreeMap<String, Referrer> = BTreeMap::new();
    let all = cx.all(|repository| {
        if repository.is_proxy() {
            proxy::referrers(cx, repository, &image, &subject).map(Some)
        } else {
            stored(repository, &image, &subject, kind, after.as_ref()).map(Some)
        }
    })?;
    found.extend(all.into_iter().flatten().map(|referrer| (referrer.digest.to_string(), referrer)));
    let matches = |referrer: &Referrer| {
        kind.is_none_or(|kind| referrer.artifact_type.as_deref() == Some(kind))
            && after.as_ref().is_none_or(|after| referrer.digest > *after)
    };
    let (page, more) = page(found.into_values().filter(|referrer| matches(referrer)))?;
    let link = page.last().filter(|_| more).and_then(|last| last.get("digest")?.as_str()).map(|last| {
        let path = name::location(request, &image, &format!("referrers/{subject}"));
        let filter = kind.map(|kind| format!("artifactType={}&", percent_encode(kind))).unwrap_or_default();
        format!("<{path}?{filter}last={last}>; rel=\"next\"")
    });
    let index = json!({"schemaVersion": 2, "mediaType": manifest::INDEX, "manifests": page});
    let mut answer = Response::json(&index)?.content_type(manifest::INDEX).revalidate();
    if kind.is_some() {
        answer = answer.header("oci-filters-applied", "artifactType");
    }
    Ok(match link {
        Some(link) => answer.header("link", link),
        None => answer,
    })
}

/// The last digest of the previous page.
fn after(request: &Request) -> Result<Option<Digest>, Failure> {
    request.query("last").map(name::digest).transpose()
}

/// Returns the referrers of one page, and one more as a sign that there is another page. They are
/// ordered by digest.
fn stored(
    repository: &Repository,
    image: &str,
    subject: &Digest,
    kind: Option<&str>,
    after: Option<&Digest>,
) -> Result<Vec<Referrer>, Failure> {
    let prefix = records::referrers(image, subject);
    let first = after.map_or_else(|| prefix.clone(), |after| format!("{prefix}{after}"));
    let (mut found, mut bytes) = (Vec::new(), 0);
    for entry in repository.scan(prefix).after(first) {
        let entry = entry?;
        let size = entry.value.len();
        let referrer = entry.json::<Referrer>()?.value;
        if kind.is_some_and(|kind| referrer.artifact_type.as_deref() != Some(kind)) {
            continue;
        }
        found.push(referrer);
        bytes += size;
        if found.len() > PAGE_LIMIT || bytes > PAGE_BYTES {
            break;
        }
    }
    Ok(found)
}

/// Returns the referrers of one page, and true if there are more. The first referrer is always
/// included, even if it exceeds the size of a page.
fn page(referrers: impl Iterator<Item = Referrer>) -> Result<(Vec<Value>, bool), Failure> {
    let (mut page, mut bytes) = (Vec::new(), 0);
    for referrer in referrers {
        let value = serde_json::to_value(&referrer)?;
        bytes += value.to_string().len();
        if !page.is_empty() && (page.len() == PAGE_LIMIT || bytes > PAGE_BYTES) {
            return Ok((page, true));
        }
        page.push(value);
    }
    Ok((page, false))
}
