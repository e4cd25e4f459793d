//! Reads of a proxy: what the upstream registry has, as the host fetches and keeps it.
//!
//! What is named by its digest never changes and is fetched once; a tag is asked for by HEAD, which upstreams do not count.
//! Parts of an index and layers are fetched when somebody asks for them.

pub(crate) mod lists;
mod parts;
mod statements;

use crate::manifest::{ACCEPT, is_one};
use crate::name::Reference;
use crate::records::Referrer;
use crate::settings::LibraryPrefix;
use crate::statements::{is_of_signatures, subject_of_tag};
use crate::{LAYER_LIMIT, MANIFEST_LIMIT, answer};
use packhouse_sdk::{
    Blob, Content, Context, Digest, Error, Failure, Fetch, Freshness, ReadAt, Reply, Repository, Request,
    Response, Settings,
};
use parts::Owner;
use serde_json::json;

/// Bytes of a list of tags.
const LIST_LIMIT: u64 = 4 << 20;

/// Until when a manifest that is named by its digest is fresh: for good. It is no file to the host, which keeps files at once, but
/// something that is read here first: a page in its place is thrown away.
const FOR_GOOD: Freshness = Freshness::Seconds(u32::MAX);

/// The manifest, or none where the upstream has none.
///
/// # Errors
/// 413 `MANIFEST_INVALID` with `scan_block_size_cap` for one over 4 MiB, and 502 where a group is asked; 502 where the upstream cannot be
/// asked, or sends something else.
pub(crate) fn manifest(
    cx: &Context,
    proxy: &Repository,
    image: &str,
    reference: &Reference,
) -> Result<Option<Response>, Failure> {
    let asked = ManifestRequest::new(cx, proxy, image, reference)?;
    let must_be_old = asked.must_be_old;
    let tag = match reference {
        Reference::Digest(digest) => return asked.by_digest(digest),
        Reference::Tag(tag) => tag,
    };
    let Some(newest) = asked.newest(tag, None)? else { return Ok(None) };
    let found = asked.what_is_told(tag, &newest.told)?;
    if found.is_some() || !newest.kept || must_be_old {
        return Ok(found);
    }
    // The upstream has no longer what it named a while ago, so the tag has moved since, or what named it was wrong.
    match asked.newest(tag, Some(Freshness::Never))? {
        Some(now) if now.told != newest.told => asked.what_is_told(tag, &now.told),
        _ => Ok(None),
    }
}

/// What the upstream says of a tag.
struct TagHead {
    /// The manifest's digest; none where it says that there is one, not which.
    told: Option<Digest>,
    /// Whether it said so a while ago.
    kept: bool,
}

/// What refers to a manifest; where policies judge the proxy, each is noted as a part of the same versions.
///
/// # Errors
/// 502 where the upstream cannot be asked.
pub(crate) fn referrers(
    cx: &Context,
    proxy: &Repository,
    image: &str,
    subject: &Digest,
) -> Result<Vec<Referrer>, Failure> {
    let found = lists::referrers(cx, proxy, image, subject)?;
    let reference = Reference::Digest(subject.clone());
    let asked = ManifestRequest::new(cx, proxy, image, &reference)?;
    if asked.is_judged {
        let digests = found.iter().map(|one| one.digest.clone()).take(parts::MOST_PARTS);
        let digests: Vec<Digest> = digests.collect();
        parts::note_parts(proxy, image, &digests, &parts::owners(&asked, subject)?)?;
    }
    Ok(found)
}

/// The path under which a version's manifest is shown.
fn shown_path(image: &str, version: &str) -> String {
    format!("{image}/manifests/{version}")
}

/// A manifest that is asked for.
struct ManifestRequest<'a> {
    cx: &'a Context,
    proxy: &'a Repository,
    upstream: Upstream,
    image: &'a str,
    reference: &'a Reference,
    must_be_old: bool,
    /// What a tag names is judged by what is signed of it.
    judged_by_provenance: bool,
    /// Any policy judges the proxy.
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
            upstream: Upstream::of(proxy, image)?,
            image,
            reference,
            // The host judges the age of what is shown as a version.
            must_be_old: proxy.needs_age(image)?,
            judged_by_provenance: settings.judged_by_provenance,
            is_judged: settings.judged_by_policies,
        })
    }

    fn fetch(&self, method: &str, reference: &str) -> Fetch {
        accepting(self.cx.upstream(method, &self.upstream.path(&format!("manifests/{reference}"))))
    }

    fn newest(&self, tag: &str, freshness: Option<Freshness>) -> Result<Option<TagHead>, Failure> {
        let head = self.fetch("HEAD", tag).metadata();
        let head = if let Some(freshness) = freshness { head.fresh(freshness) } else { head };
        let reply = head.start(self.proxy).map_err(unreachable)?;
        if !is_there(&reply)? {
            return Ok(None);
        }
        // Of a page that tells a digest, as those of some gateways do, the digest is the page's.
        if header(&reply, "content-type")?.is_some() {
            media_type(&reply)?;
        }
        let told = header(&reply, "docker-content-digest")?;
        let told = told.and_then(|told| crate::name::digest(&told).ok());
        Ok(Some(TagHead { told, kept: header(&reply, "age")?.is_some() }))
    }

    fn what_is_told(&self, tag: &str, told: &Option<Digest>) -> Result<Option<Response>, Failure> {
        let is_judged = self.judged_by_provenance && !is_of_signatures(tag);
        let digest = match told {
            Some(digest) => digest.clone(),
            // What the tag names from one moment to the next, nobody can say how old it is.
            None if self.must_be_old => return Ok(None),
            None if is_judged => match statements::named_untold(self, tag)? {
                Some(digest) => digest,
                None => return Ok(None),
            },
            // An upstream that does not tell digests is asked for the manifest itself.
            None => return self.judged(self.fetch("GET", tag), None),
        };
        if is_judged {
            statements::state(self, tag, &digest)?;
        }
        self.by_digest(&digest)
    }

    fn by_digest(&self, digest: &Digest) -> Result<Option<Response>, Failure> {
        let fetch = self.fetch("GET", digest.as_str()).fresh(FOR_GOOD).expect(digest);
        self.judged(fetch, Some(digest))
    }

    /// The answer to a fetch of what the request names, judged as the versions that it belongs to.
    fn judged(&self, fetch: Fetch, digest: Option<&Digest>) -> Result<Option<Response>, Failure> {
        let show = |version: &str| shown_path(self.image, version);
        let owners = match self.reference {
            Reference::Tag(tag) if !(self.judged_by_provenance && is_of_signatures(tag)) => {
                let fetch = fetch.show_as(self.image, tag, &show(tag));
                let own = digest.map(|digest| Owner::of_tag(tag, digest));
                return self.answer(fetch, digest, own.into_iter().collect());
            }
            // A signature is no version that would have to be signed itself: it is judged as what it is about.
            Reference::Tag(tag) => self.owners(subject_of_tag(tag).as_ref())?,
            Reference::Digest(digest) => self.owners(Some(digest))?,
        };
        // What is too young by its tag is so by its digest.
        let own = match self.reference {
            Reference::Tag(tag) => tag.clone(),
            Reference::Digest(digest) => digest.to_string(),
        };
        let is_own = owners.iter().all(|owner| owner.version == own);
        let fetch = if self.must_be_old && is_own {
            fetch.show_as(self.image, &own, &show(&own))
        } else {
            parts::judged(fetch, self.image, &owners)
        };
        self.answer(fetch, digest, owners)
    }

    fn owners(&self, digest: Option<&Digest>) -> Result<Vec<Owner>, Failure> {
        match digest.filter(|_| self.is_judged) {
            Some(digest) => parts::owners(self, digest),
            None => Ok(Vec::new()),
        }
    }

    fn answer(
        &self,
        fetch: Fetch,
        digest: Option<&Digest>,
        owners: Vec<Owner>,
    ) -> Result<Option<Response>, Failure> {
        let reply = fetch.limit(MANIFEST_LIMIT).start(self.proxy).map_err(unreachable)?;
        if !is_there(&reply)? {
            return Ok(None);
        }
        let (media_type, kept) = (media_type(&reply)?, header(&reply, "age")?.is_some());
        let failed = |error| self.failed(error);
        let body = reply.body().map_err(failed)?;
        // A client that sees the head of an answer relies on it: the limit is judged before.
        body.size().map_err(failed)?;
        // What is kept was read when it came.
        if !kept && !is_one(&body.read_all(MANIFEST_LIMIT).map_err(failed)?, &media_type) {
            return Err(unusable("it sent what is no manifest"));
        }
        let own = body.sha256().map_err(failed)?;
        let digest = digest.unwrap_or(&own);
        self.note_parts(digest, &body, owners)?;
        let answer = Response::blob(body).content_type(media_type);
        Ok(Some(answer::manifest(answer, digest, self.reference)))
    }
}

impl ManifestRequest<'_> {
    /// Notes the parts of a manifest that is offered, where policies judge the proxy.
    fn note_parts(&self, digest: &Digest, body: &Blob, mut owners: Vec<Owner>) -> Result<(), Failure> {
        if let Reference::Tag(tag) = self.reference
            && owners.is_empty()
            && !is_of_signatures(tag)
        {
            owners.push(Owner::of_tag(tag, digest));
        }
        if owners.is_empty() || !self.is_judged {
            return Ok(());
        }
        let bytes = body.read_all(MANIFEST_LIMIT).map_err(|error| self.failed(error))?;
        parts::note(self.proxy, self.image, digest, &bytes, &owners)
    }

    /// Why a manifest cannot be had. Rule R8 of the specification: of a proxy that is asked itself, one that is too large is 413. A group
    /// leaves that member out.
    fn failed(&self, error: Error) -> Failure {
        match error {
            Error::UpstreamTooLarge { size, .. } if self.cx.target().is_ok_and(Repository::is_proxy) => {
                too_large(size)
            }
            error => unreachable(error),
        }
    }
}

/// A layer or a config, or none where the upstream has none.
///
/// # Errors
/// 502 where the upstream cannot be asked.
pub(crate) fn layer(
    cx: &Context,
    request: &Request,
    proxy: &Repository,
    image: &str,
    digest: &Digest,
) -> Result<Option<Response>, Failure> {
    let upstream = Upstream::of(proxy, image)?;
    let target = upstream.path(&format!("blobs/{digest}"));
    let judged = |fetch: Fetch| -> Result<Fetch, Failure> {
        if !Settings::of(proxy)?.judged_by_policies {
            return Ok(fetch);
        }
        Ok(parts::judged(fetch, image, &parts::noted(proxy, image, digest)?))
    };
    if request.method == "HEAD" {
        let fetch = judged(cx.upstream("HEAD", &target).fresh(Freshness::Immutable))?;
        let reply = fetch.start(proxy).map_err(unreachable)?;
        if !is_there(&reply)? {
            return Ok(None);
        }
        // Of a page the length would be believed for ever.
        let is_page =
            header(&reply, "content-type")?.is_some_and(|told| told.trim().starts_with("text/html"));
        if is_page && header(&reply, "docker-content-digest")?.as_deref() != Some(digest.as_str()) {
            return Err(unusable("it sent a page in the place of a layer"));
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

/// Where an image is at the upstream.
struct Upstream {
    image: String,
    /// The upstream's address leads to a registry, and not to a place below one.
    whole: bool,
}

impl Upstream {
    fn of(proxy: &Repository, image: &str) -> Result<Self, Failure> {
        let settings = Settings::of(proxy)?;
        let address = settings.upstream.as_deref().unwrap_or_default();
        let (host, path) = split(address);
        let library = is_library(LibraryPrefix::of(proxy)?, host) && !image.contains('/');
        let image = if library { format!("library/{image}") } else { image.to_owned() };
        Ok(Self { image, whole: !path.split('/').any(|segment| segment == "v2") })
    }

    fn path(&self, rest: &str) -> String {
        let version = if self.whole { "v2/" } else { "" };
        format!("{version}{}/{rest}", self.image)
    }
}

/// Whether images of one part are below `library/` at this host.
fn is_library(setting: LibraryPrefix, host: &str) -> bool {
    match setting {
        LibraryPrefix::Always => true,
        LibraryPrefix::Never => false,
        LibraryPrefix::Auto => host == "docker.io" || host.ends_with(".docker.io"),
    }
}

/// The host of an address without its port, and what stands behind it.
fn split(address: &str) -> (&str, &str) {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    (authority.split(':').next().unwrap_or_default(), path)
}

fn accepting(fetch: Fetch) -> Fetch {
    fetch.header("accept", &ACCEPT.join(", "))
}

/// Whether the upstream has it.
fn is_there(reply: &Reply) -> Result<bool, Failure> {
    match reply.status().map_err(unreachable)? {
        200 => Ok(true),
        404 | 410 => Ok(false),
        status => Err(unusable(&format!("it answered with status {status}, for {}", reply.path()))),
    }
}

fn media_type(reply: &Reply) -> Result<String, Failure> {
    let told = header(reply, "content-type")?.unwrap_or_default();
    let media_type = told.split(';').next().unwrap_or_default().trim();
    if ACCEPT.contains(&media_type) {
        Ok(media_type.to_owned())
    } else {
        Err(unusable("it sent what is no manifest"))
    }
}

fn header(reply: &Reply, name: &str) -> Result<Option<String>, Failure> {
    reply.header(name).map_err(unreachable)
}

fn unusable(what: &str) -> Failure {
    Failure::new(502, "UNAVAILABLE", format!("the upstream registry cannot be used: {what}"))
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
    fn docker_hub_is_known_by_its_name() {
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
