//! Reads of a proxy. The host fetches and caches the content of the upstream registry.
//!
//! Content that is requested by digest never changes and is fetched once. The proxy resolves a tag
//! with HEAD, because upstreams do not count HEAD against their rate limits. It fetches layers and
//! the parts of an index when a client requests them.

pub(crate) mod lists;
mod parts;
mod statements;

use crate::manifest::{ACCEPT, is_manifest};
use crate::name::Reference;
use crate::records::Referrer;
use crate::settings::LibraryPrefix;
use crate::statements::{is_signature_tag, subject_of_tag};
use crate::{LAYER_LIMIT, MANIFEST_LIMIT, answer};
use packhouse_sdk::{
    Blob, Content, Context, Digest, Error, Failure, Fetch, Freshness, ReadAt, Reply, Repository, Request,
    Response, Settings,
};
use parts::OwningVersion;
use serde_json::json;

/// Bytes of the largest page of a list of tags.
const LIST_LIMIT: u64 = 4 << 20;

/// Freshness of a manifest that is requested by digest: it never expires. It is not
/// [`Freshness::Immutable`], because the host caches an immutable body as soon as it arrives. The
/// plugin must parse the body before that, because an upstream may send a web page in place of a
/// manifest.
const FOREVER: Freshness = Freshness::Seconds(u32::MAX);

/// The response with a manifest. `None` if the upstream does not have it.
///
/// # Errors
/// For a manifest over 4 MiB: 413 `MANIFEST_INVALID` with the detail code `scan_block_size_cap`, or
/// 502 if the client's request is to a group. Also 502 if the upstream cannot be reached, or sends
/// anything but a manifest.
pub(crate) fn manifest(
    cx: &Context,
    proxy: &Repository,
    image: &str,
    reference: &Reference,
) -> Result<Option<Response>, Failure> {
    let request = ManifestRequest::new(cx, proxy, image, reference)?;
    let must_be_old = request.must_be_old;
    let tag = match reference {
        Reference::Digest(digest) => return request.by_digest(digest),
        Reference::Tag(tag) => tag,
    };
    let Some(newest) = request.newest(tag, None)? else { return Ok(None) };
    let found = request.resolved(tag, &newest.digest)?;
    if found.is_some() || !newest.cached || must_be_old {
        return Ok(found);
    }
    // The upstream no longer has the manifest that the cached HEAD response names. Either the tag
    // has moved since, or the response was wrong. The proxy therefore asks the upstream again.
    match request.newest(tag, Some(Freshness::Never))? {
        Some(now) if now.digest != newest.digest => request.resolved(tag, &now.digest),
        _ => Ok(None),
    }
}

/// The upstream's response to HEAD of a tag.
struct TagHead {
    /// The digest of the manifest. `None` if the response does not state it.
    digest: Option<Digest>,
    /// True for a response from the cache.
    cached: bool,
}

/// Returns the referrers of a manifest. If policies judge the proxy, records each referrer as a
/// part of the versions that the manifest belongs to.
///
/// # Errors
/// 502 if the upstream cannot be reached.
pub(crate) fn referrers(
    cx: &Context,
    proxy: &Repository,
    image: &str,
    subject: &Digest,
) -> Result<Vec<Referrer>, Failure> {
    let found = lists::referrers(cx, proxy, image, subject)?;
    let reference = Reference::Digest(subject.clone());
    let request = ManifestRequest::new(cx, proxy, image, &reference)?;
    if request.is_judged {
        let digests = found.iter().map(|one| one.digest.clone()).take(parts::MAX_PARTS);
        let digests: Vec<Digest> = digests.collect();
        parts::record_parts(proxy, image, &digests, &parts::owners(&request, subject)?)?;
    }
    Ok(found)
}

/// The path under which a version's manifest is listed.
fn listed_path(image: &str, version: &str) -> String {
    format!("{image}/manifests/{version}")
}

/// A request for a manifest of the upstream.
struct ManifestRequest<'a> {
    cx: &'a Context,
    proxy: &'a Repository,
    upstream: UpstreamImage,
    image: &'a str,
    reference: &'a Reference,
    /// True if the host requires a minimum age of versions.
    must_be_old: bool,
    /// True if a policy judges versions by their signed statements.
    judged_by_provenance: bool,
    /// True if any policy judges the proxy.
    is_judged: bool,
}

impl<'a> ManifestRequest<'a> {
    fn new(
        cx: &'a Context,
        proxy: &'a Repository,
        image: &'a str,
        reference: &'a Reference,
    ) -> Result<Self, Failure> {
        let settings = Settings::of(proxy)?;
        Ok(Self {
            cx,
            proxy,
            upstream: UpstreamImage::of(proxy, image)?,
            image,
            reference,
            // The host judges the age of every fetch that is listed as a version.
            must_be_old: proxy.needs_age(image)?,
            judged_by_provenance: settings.judged_by_provenance,
            is_judged: settings.judged_by_policies,
        })
    }

    fn fetch(&self, method: &str, reference: &str) -> Fetch {
        accepting(self.cx.upstream(method, &self.upstream.path(&format!("manifests/{reference}"))))
    }

    /// Resolves a tag at the upstream. `None` if the tag does not exist.
    fn newest(&self, tag: &str, freshness: Option<Freshness>) -> Result<Option<TagHead>, Failure> {
        let head = self.fetch("HEAD", tag).metadata();
        let head = if let Some(freshness) = freshness { head.fresh(freshness) } else { head };
        let reply = head.start(self.proxy).map_err(unreachable)?;
        if !is_there(&reply)? {
            return Ok(None);
        }
        // Some gateways send a digest with a web page. This digest does not name a manifest, so the
        // media type is checked first.
        if header(&reply, "content-type")?.is_some() {
            media_type(&reply)?;
        }
        let stated = header(&reply, "docker-content-digest")?;
        let digest = stated.and_then(|stated| crate::name::digest(&stated).ok());
        Ok(Some(TagHead { digest, cached: header(&reply, "age")?.is_some() }))
    }

    /// The response with the manifest of a tag that was resolved to this digest.
    fn resolved(&self, tag: &str, digest: &Option<Digest>) -> Result<Option<Response>, Failure> {
        let is_judged = self.judged_by_provenance && !is_signature_tag(tag);
        let digest = match digest {
            Some(digest) => digest.clone(),
            // Without a digest the tag may name another manifest at any moment, so its age is
            // unknown.
            None if self.must_be_old => return Ok(None),
            None if is_judged => match statements::digest_of_body(self, tag)? {
                Some(digest) => digest,
                None => return Ok(None),
            },
            // The upstream does not state digests, so the manifest is fetched by its tag.
            None => return self.judged(self.fetch("GET", tag), None),
        };
        if is_judged {
            statements::update(self, tag, &digest)?;
        }
        self.by_digest(&digest)
    }

    fn by_digest(&self, digest: &Digest) -> Result<Option<Response>, Failure> {
        let fetch = self.fetch("GET", digest.as_str()).fresh(FOREVER).expect(digest);
        self.judged(fetch, Some(digest))
    }

    /// Returns the response with a fetched manifest. To decide about the fetch, the host judges the
    /// versions that the manifest belongs to.
    fn judged(&self, fetch: Fetch, digest: Option<&Digest>) -> Result<Option<Response>, Failure> {
        let path = |version: &str| listed_path(self.image, version);
        let owners = match self.reference {
            Reference::Tag(tag) if !(self.judged_by_provenance && is_signature_tag(tag)) => {
                let fetch = fetch.show_as(self.image, tag, &path(tag));
                let own = digest.map(|digest| OwningVersion::of_tag(tag, digest));
                return self.answer(fetch, digest, own.into_iter().collect());
            }
            // A signature is not a version and need not be signed itself. The host judges the
            // versions of the signed manifest instead.
            Reference::Tag(tag) => self.owners(subject_of_tag(tag).as_ref())?,
            Reference::Digest(digest) => self.owners(Some(digest))?,
        };
        // The minimum age also applies to a request by digest. Otherwise a client could get a
        // manifest by digest while its tag is too young.
        let own = match self.reference {
            Reference::Tag(tag) => tag.clone(),
            Reference::Digest(digest) => digest.to_string(),
        };
        let is_own = owners.iter().all(|owner| owner.version == own);
        let fetch = if self.must_be_old && is_own {
            fetch.show_as(self.image, &own, &path(&own))
        } else {
            parts::judged(fetch, self.image, &owners)
        };
        self.answer(fetch, digest, owners)
    }

    fn owners(&self, digest: Option<&Digest>) -> Result<Vec<OwningVersion>, Failure> {
        match digest.filter(|_| self.is_judged) {
            Some(digest) => parts::owners(self, digest),
            None => Ok(Vec::new()),
        }
    }

    fn answer(
        &self,
        fetch: Fetch,
        digest: Option<&Digest>,
        owners: Vec<OwningVersion>,
    ) -> Result<Option<Response>, Failure> {
        let reply = fetch.limit(MANIFEST_LIMIT).start(self.proxy).map_err(unreachable)?;
        if !is_there(&reply)? {
            return Ok(None);
        }
        let (media_type, is_cached) = (media_type(&reply)?, header(&reply, "age")?.is_some());
        let failed = |error| self.failed(error);
        let body = reply.body().map_err(failed)?;
        // The size limit is checked before the headers are sent, because clients rely on the
        // headers of a response.
        body.size().map_err(failed)?;
        // Cached manifests were checked when they arrived.
        if !is_cached && !is_manifest(&body.read_all(MANIFEST_LIMIT).map_err(failed)?, &media_type) {
            return Err(unusable("its response is not a manifest"));
        }
        let own = body.sha256().map_err(failed)?;
        let digest = digest.unwrap_or(&own);
        self.record_parts(digest, &body, owners)?;
        let answer = Response::blob(body).content_type(media_type);
        Ok(Some(answer::manifest(answer, digest, self.reference)))
    }
}

impl ManifestRequest<'_> {
    /// Records the parts of a manifest that is served, if policies judge the proxy.
    fn record_parts(
        &self,
        digest: &Digest,
        body: &Blob,
        mut owners: Vec<OwningVersion>,
    ) -> Result<(), Failure> {
        if let Reference::Tag(tag) = self.reference
            && owners.is_empty()
            && !is_signature_tag(tag)
        {
            owners.push(OwningVersion::of_tag(tag, digest));
        }
        if owners.is_empty() || !self.is_judged {
            return Ok(());
        }
        let bytes = body.read_all(MANIFEST_LIMIT).map_err(|error| self.failed(error))?;
        parts::record(self.proxy, self.image, digest, &bytes, &owners)
    }

    /// Returns the failure for a manifest that cannot be fetched. Rule R8 of the specification: if
    /// the manifest is too large, a request to the proxy itself gets 413. A group leaves out the
    /// proxy instead.
    fn failed(&self, error: Error) -> Failure {
        match error {
            Error::UpstreamTooLarge { size, .. } if self.cx.target().is_ok_and(Repository::is_proxy) => {
                too_large(size)
            }
            error => unreachable(error),
        }
    }
}

/// The response with a layer or a config. `None` if the upstream does not have it.
///
/// # Errors
/// 502 if the upstream cannot be reached.
pub(crate) fn layer(
    cx: &Context,
    request: &Request,
    proxy: &Repository,
    image: &str,
    digest: &Digest,
) -> Result<Option<Response>, Failure> {
    let upstream = UpstreamImage::of(proxy, image)?;
    let target = upstream.path(&format!("blobs/{digest}"));
    let judged = |fetch: Fetch| -> Result<Fetch, Failure> {
        if !Settings::of(proxy)?.judged_by_policies {
            return Ok(fetch);
        }
        Ok(parts::judged(fetch, image, &parts::recorded(proxy, image, digest)?))
    };
    if request.method == "HEAD" {
        let fetch = judged(cx.upstream("HEAD", &target).fresh(Freshness::Immutable))?;
        let reply = fetch.start(proxy).map_err(unreachable)?;
        if !is_there(&reply)? {
            return Ok(None);
        }
        // A web page is refused, because the host would cache its length for ever.
        let is_web_page =
            header(&reply, "content-type")?.is_some_and(|stated| stated.trim().starts_with("text/html"));
        if is_web_page && header(&reply, "docker-content-digest")?.as_deref() != Some(digest.as_str()) {
            return Err(unusable("it sent a web page instead of a layer"));
        }
        let answer = Response::ok().content_type("application/octet-stream");
        return Ok(Some(match header(&reply, "content-length")? {
            Some(length) => answer.header("content-length", length),
            None => answer,
        }));
    }
    let fetch = cx.upstream("GET", &target).fresh(Freshness::Immutable).limit(LAYER_LIMIT).expect(digest);
    let reply = judged(fetch)?.start(proxy).map_err(unreachable)?;
    if !is_there(&reply)? {
        return Ok(None);
    }
    let body = reply.body().map_err(unreachable)?;
    Ok(Some(Response::ok().content_type("application/octet-stream").content(Content::Blob(body))))
}

/// The location of an image at the upstream.
struct UpstreamImage {
    image: String,
    /// True if the upstream's address names a whole registry: its path has no segment `v2`.
    is_whole_registry: bool,
}

impl UpstreamImage {
    fn of(proxy: &Repository, image: &str) -> Result<Self, Failure> {
        let settings = Settings::of(proxy)?;
        let address = settings.upstream.as_deref().unwrap_or_default();
        let (host, path) = split(address);
        let library = is_library(LibraryPrefix::of(proxy)?, host) && !image.contains('/');
        let image = if library { format!("library/{image}") } else { image.to_owned() };
        Ok(Self { image, is_whole_registry: !path.split('/').any(|segment| segment == "v2") })
    }

    fn path(&self, rest: &str) -> String {
        let version = if self.is_whole_registry { "v2/" } else { "" };
        format!("{version}{}/{rest}", self.image)
    }
}

/// Returns true if images with a name of one part are below `library/` at this host.
fn is_library(setting: LibraryPrefix, host: &str) -> bool {
    match setting {
        LibraryPrefix::Always => true,
        LibraryPrefix::Never => false,
        LibraryPrefix::Auto => host == "docker.io" || host.ends_with(".docker.io"),
    }
}

/// The host of an address without its port, and the path.
fn split(address: &str) -> (&str, &str) {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    (authority.split(':').next().unwrap_or_default(), path)
}

fn accepting(fetch: Fetch) -> Fetch {
    fetch.header("accept", &ACCEPT.join(", "))
}

/// Returns true if the upstream has the requested content.
fn is_there(reply: &Reply) -> Result<bool, Failure> {
    match reply.status().map_err(unreachable)? {
        200 => Ok(true),
        404 | 410 => Ok(false),
        status => Err(unusable(&format!("it answered with status {status}, for {}", reply.path()))),
    }
}

fn media_type(reply: &Reply) -> Result<String, Failure> {
    let stated = header(reply, "content-type")?.unwrap_or_default();
    let media_type = stated.split(';').next().unwrap_or_default().trim();
    if ACCEPT.contains(&media_type) {
        Ok(media_type.to_owned())
    } else {
        Err(unusable("its response is not a manifest"))
    }
}

fn header(reply: &Reply, name: &str) -> Result<Option<String>, Failure> {
    reply.header(name).map_err(unreachable)
}

fn unusable(problem: &str) -> Failure {
    Failure::new(502, "UNAVAILABLE", format!("the upstream registry cannot be used: {problem}"))
}

fn unreachable(error: Error) -> Failure {
    match error {
        Error::Unavailable(why) | Error::UpstreamTooLarge { why, .. } => unusable(&why),
        other => other.into(),
    }
}

fn too_large(observed: u64) -> Failure {
    let sizes = json!({
        "code": "scan_block_size_cap",
        "limit_bytes": MANIFEST_LIMIT,
        "observed_bytes": observed,
    });
    Failure::new(413, "MANIFEST_INVALID", "manifest exceeds maximum size").detail(&sizes)
}

#[cfg(test)]
mod tests {
    use super::{LibraryPrefix, is_library, split};

    #[test]
    fn docker_hub_is_recognized_by_its_host() {
        for (setting, address, library) in [
            (LibraryPrefix::Auto, "https://registry-1.docker.io", true),
            (LibraryPrefix::Auto, "https://docker.io:443/", true),
            (LibraryPrefix::Auto, "https://notdocker.io", false),
            (LibraryPrefix::Auto, "https://registry.test/docker.io", false),
            (LibraryPrefix::Always, "http://mirror.test:5000/v2", true),
            (LibraryPrefix::Never, "https://registry-1.docker.io", false),
        ] {
            assert_eq!(is_library(setting, split(address).0), library, "{setting:?} {address}");
        }
    }
}
