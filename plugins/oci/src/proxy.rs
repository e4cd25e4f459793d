//! Reads of a proxy: what the upstream registry has, as the host fetches and keeps it.
//!
//! What is named by its digest never changes and is fetched once; a tag is asked for by HEAD, which upstreams do not count.
//! Parts of an index and layers are fetched when somebody asks for them.

pub(crate) mod lists;

use crate::manifest::ACCEPT;
use crate::manifests::answered;
use crate::name::Reference;
use crate::settings::Settings;
use crate::{LAYER_LIMIT, MANIFEST_LIMIT};
use packhouse_sdk::{
    Content, Context, Digest, Error, Failure, Fetch, Freshness, Reply, Repository, Request, Response,
};
use serde_json::json;

/// Bytes of a list of tags.
const LIST_LIMIT: u64 = 4 << 20;

/// The manifest, or none where the upstream has none.
///
/// # Errors
/// 413 `MANIFEST_INVALID` with `scan_block_size_cap` for one over 4 MiB; 502 where the upstream cannot be asked.
pub(crate) fn manifest(
    cx: &Context,
    proxy: &Repository,
    image: &str,
    reference: &Reference,
) -> Result<Option<Response>, Failure> {
    let upstream = Upstream::of(proxy, image)?;
    let must_be_old = Settings::of(proxy)?.must_be_old(image);
    let digest = match reference {
        Reference::Digest(digest) => digest.clone(),
        Reference::Tag(tag) => match newest(cx, proxy, &upstream, tag)? {
            Some(Newest::Digest(digest)) => digest,
            // What the tag names from one moment to the next, nobody can say how old it is.
            Some(Newest::Untold) if must_be_old => return Ok(None),
            Some(Newest::Untold) => return untold(cx, proxy, &upstream, tag, reference),
            None => return Ok(None),
        },
    };
    let mut fetch = accepting(cx.upstream("GET", &upstream.path(&format!("manifests/{digest}"))))
        .fresh(Freshness::Immutable)
        .limit(MANIFEST_LIMIT);
    let shown = match reference {
        Reference::Tag(tag) => Some(tag.clone()),
        // What is too young by its tag is so by its digest.
        Reference::Digest(digest) => must_be_old.then(|| digest.to_string()),
    };
    if let Some(version) = shown {
        fetch = fetch.show_as(image, &version, &format!("{image}/manifests/{version}"));
    }
    let reply = fetch.expect(&digest).start(proxy).map_err(unreachable)?;
    if !is_there(&reply)? {
        return Ok(None);
    }
    let media_type = media_type(&reply)?;
    let body = reply.body().map_err(too_large)?;
    // A client that sees the head of an answer relies on it: the limit is judged before.
    let size = body.size().map_err(too_large)?;
    if size > MANIFEST_LIMIT {
        return Err(too_large(Error::TooLarge(size)));
    }
    let answer = Response::blob(body).content_type(media_type);
    Ok(Some(answered(answer, &digest, reference)))
}

/// What the upstream says of a tag.
enum Newest {
    /// The manifest's digest.
    Digest(Digest),
    /// That there is one, not which.
    Untold,
}

fn newest(
    cx: &Context,
    proxy: &Repository,
    upstream: &Upstream,
    tag: &str,
) -> Result<Option<Newest>, Failure> {
    let head = accepting(cx.upstream("HEAD", &upstream.path(&format!("manifests/{tag}"))));
    let reply = head.start(proxy).map_err(unreachable)?;
    if !is_there(&reply)? {
        return Ok(None);
    }
    let told = header(&reply, "docker-content-digest")?;
    Ok(Some(match told.and_then(|told| crate::name::digest(&told).ok()) {
        Some(digest) => Newest::Digest(digest),
        None => Newest::Untold,
    }))
}

/// A tag of an upstream that does not tell digests: the manifest itself is asked for.
fn untold(
    cx: &Context,
    proxy: &Repository,
    upstream: &Upstream,
    tag: &str,
    reference: &Reference,
) -> Result<Option<Response>, Failure> {
    let fetch =
        accepting(cx.upstream("GET", &upstream.path(&format!("manifests/{tag}")))).limit(MANIFEST_LIMIT);
    let reply = fetch.start(proxy).map_err(unreachable)?;
    if !is_there(&reply)? {
        return Ok(None);
    }
    let media_type = media_type(&reply)?;
    let body = reply.body().map_err(too_large)?;
    let digest = body.sha256().map_err(too_large)?;
    Ok(Some(answered(Response::blob(body).content_type(media_type), &digest, reference)))
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
    if request.method == "HEAD" {
        let reply =
            cx.upstream("HEAD", &target).fresh(Freshness::Immutable).start(proxy).map_err(unreachable)?;
        if !is_there(&reply)? {
            return Ok(None);
        }
        let answer = Response::ok().content_type("application/octet-stream");
        return Ok(Some(match header(&reply, "content-length")? {
            Some(length) => answer.header("content-length", length),
            None => answer,
        }));
    }
    let fetch = cx.upstream("GET", &target).fresh(Freshness::Immutable).limit(LAYER_LIMIT).expect(digest);
    let reply = fetch.start(proxy).map_err(unreachable)?;
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
        let library = is_library(&settings.library_prefix, host) && !image.contains('/');
        let image = if library { format!("library/{image}") } else { image.to_owned() };
        Ok(Self { image, whole: !path.split('/').any(|segment| segment == "v2") })
    }

    fn path(&self, rest: &str) -> String {
        let version = if self.whole { "v2/" } else { "" };
        format!("{version}{}/{rest}", self.image)
    }
}

/// Whether images of one part are below `library/` at this host.
fn is_library(setting: &str, host: &str) -> bool {
    match setting {
        "always" => true,
        "never" => false,
        _ => host == "docker.io" || host.ends_with(".docker.io"),
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

/// Whether the upstream has it. Hubs answer 401 or 403 for images that they do not have, or do not show to everyone.
fn is_there(reply: &Reply) -> Result<bool, Failure> {
    match reply.status().map_err(unreachable)? {
        200 => Ok(true),
        401 | 403 | 404 | 410 => Ok(false),
        status => Err(odd(&format!("it answered {status}"))),
    }
}

fn media_type(reply: &Reply) -> Result<String, Failure> {
    let told = header(reply, "content-type")?.unwrap_or_default();
    let media_type = told.split(';').next().unwrap_or_default().trim();
    match ACCEPT.contains(&media_type) {
        true => Ok(media_type.to_owned()),
        false => Err(odd("it sent what is no manifest")),
    }
}

fn header(reply: &Reply, name: &str) -> Result<Option<String>, Failure> {
    let headers = reply.headers().map_err(unreachable)?;
    Ok(headers.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value))
}

fn odd(what: &str) -> Failure {
    Failure::new(502, "UNAVAILABLE", format!("the upstream registry cannot be used: {what}"))
}

fn unreachable(error: Error) -> Failure {
    let told = Failure::from(error);
    match told.status {
        502 => Failure {
            internal: told.internal,
            ..odd("it cannot be reached, or sent something else than expected")
        },
        413 => Failure { internal: told.internal, ..odd("it sent more than is allowed") },
        _ => told,
    }
}

/// Rule R8 of the specification.
fn too_large(error: Error) -> Failure {
    let Error::TooLarge(observed) = error else { return unreachable(error) };
    let sizes = json!({
        "code": "scan_block_size_cap",
        "limit_bytes": MANIFEST_LIMIT,
        "observed_bytes": observed,
    });
    Failure::new(413, "MANIFEST_INVALID", "manifest exceeds maximum size").detail(&sizes)
}

#[cfg(test)]
mod tests {
    use super::{is_library, split};

    #[test]
    fn docker_hub_is_known_by_its_name() {
        for (setting, address, library) in [
            ("auto", "https://registry-1.docker.io", true),
            ("auto", "https://docker.io:443/", true),
            ("auto", "https://notdocker.io", false),
            ("auto", "https://registry.test/docker.io", false),
            ("always", "http://mirror.test:5000/v2", true),
            ("never", "https://registry-1.docker.io", false),
        ] {
            assert_eq!(is_library(setting, split(address).0), library, "{setting} {address}");
        }
    }
}
