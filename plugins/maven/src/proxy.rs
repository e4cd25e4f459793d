//! Reads through a proxy. The proxy fetches a file once and compares it with the upstream's
//! checksums. Metadata expires and is then requested again.

mod metadata;
mod signed;
mod stated;

use crate::answer::{document_response, missing};
use crate::checksum::Algorithm;
use crate::layout::{FilePath, METADATA, PathTarget, join};
use crate::{media, sums};
use packhouse_sdk::{
    Context, Failure, Fetch, Freshness, Reply, Repository, Request, Response, percent_encode,
};

use signed::SignatureStatus;
use stated::ChecksumPolicy;

pub(crate) use metadata::document;
pub(crate) use stated::{POLICY, policy_setting};

/// Serves a read from the upstream of `proxy`.
pub(crate) fn get(
    cx: &Context,
    proxy: &Repository,
    request: &Request,
    target: &PathTarget,
) -> Result<Response, Failure> {
    match target {
        // The listings of an upstream are pages for people, and its list of groups applies only to
        // the upstream itself. The proxy serves neither.
        PathTarget::Folder(_) | PathTarget::Prefixes => Err(missing(&target.subject())),
        PathTarget::Metadata(folder) => {
            let document = document(cx, proxy, folder)?.ok_or_else(|| missing(&join(folder, METADATA)))?;
            document_response(cx, document, "text/xml")
        }
        PathTarget::Checksum(of, algorithm) => checksum(cx, proxy, of, *algorithm),
        PathTarget::File(file) if request.method == "HEAD" => head(cx, proxy, file),
        PathTarget::File(file) => fetch_file(cx, proxy, file),
    }
}

/// Encodes a path as a request target below the address of the upstream.
fn encoded(path: &str) -> String {
    let segments: Vec<String> = path.split('/').map(percent_encode).collect();
    format!("/{}", segments.join("/"))
}

/// Prepares a fetch of a file. If the file belongs to a version, the host lists it with the
/// version.
fn listed_fetch(cx: &Context, method: &str, file: &FilePath) -> Fetch {
    let fetch = unlisted_fetch(cx, method, file);
    match &file.item {
        Some(item) => fetch.show_as(&item.name(), &item.version, &file.path),
        None => fetch,
    }
}

/// Prepares a fetch of a file that the host does not list.
fn unlisted_fetch(cx: &Context, method: &str, file: &FilePath) -> Fetch {
    let fetch = cx.upstream(method, &encoded(&file.path)).limit(crate::FILE_LIMIT);
    if file.may_change() { fetch } else { fetch.fresh(Freshness::Immutable) }
}

/// Prepares a fetch of a file for a client. If a policy judges by provenance, the plugin first
/// hands the file's signatures to the host.
fn client_fetch(cx: &Context, proxy: &Repository, method: &str, file: &FilePath) -> Result<Fetch, Failure> {
    Ok(match signed::state(cx, proxy, file)? {
        SignatureStatus::NotRequired => listed_fetch(cx, method, file),
        SignatureStatus::SignatureOf(signed) => {
            let fetch = unlisted_fetch(cx, method, file);
            match &file.item {
                Some(item) => fetch.part_of(&item.name(), &item.version, &signed),
                None => fetch,
            }
        }
        // The reply to a HEAD has no bytes to compare.
        SignatureStatus::Signed(_) if method == "HEAD" => listed_fetch(cx, method, file),
        SignatureStatus::Signed(sha256) => listed_fetch(cx, method, file).expect(&sha256),
    })
}

fn head(cx: &Context, proxy: &Repository, file: &FilePath) -> Result<Response, Failure> {
    let reply = client_fetch(cx, proxy, "HEAD", file)?.start(proxy)?;
    let headers = success_headers(&reply, &file.path)?;
    let mut response = with_file_headers(Response::ok(), file, &headers);
    if let Some(length) = header(&headers, "content-length") {
        response = response.header("content-length", length);
    }
    Ok(response)
}

/// Serves a file with its bytes from the upstream.
pub(crate) fn fetch_file(cx: &Context, proxy: &Repository, file: &FilePath) -> Result<Response, Failure> {
    let mut reply = client_fetch(cx, proxy, "GET", file)?.start(proxy)?;
    let headers = success_headers(&reply, &file.path)?;
    // Cached bodies were verified when they arrived.
    let is_cached = header(&headers, "age").is_some();
    let policy = ChecksumPolicy::of(proxy)?;
    let stated = if is_cached { None } else { policy.stated(cx, proxy, file, &headers)? };
    if let Some(stated) = stated.as_ref().filter(|_| policy == ChecksumPolicy::Fail) {
        reply.expect(stated);
        let header = format!("x-checksum-{}", stated.algorithm());
        let response = Response::blob(reply.body()?).header(header, stated.hex());
        return Ok(with_file_headers(response, file, &headers));
    }
    let blob = reply.body()?;
    if let Some(stated) = &stated {
        stated::warn_of_mismatch(cx, proxy, file, stated, &blob)?;
    }
    let mut response = with_file_headers(Response::ok(), file, &headers);
    if is_cached || stated.is_some() {
        for algorithm in [Algorithm::Sha1, Algorithm::Sha256] {
            response = sums::header(response, algorithm, blob.digest(algorithm.name())?.hex());
        }
    }
    Ok(response.content(packhouse_sdk::Content::Blob(blob)))
}

/// Adds the headers that describe a file.
fn with_file_headers(response: Response, file: &FilePath, headers: &[(String, String)]) -> Response {
    let response = response.content_type(media::of(&file.path));
    let response = if file.may_change() { response.revalidate() } else { response.immutable() };
    match header(headers, "last-modified") {
        Some(date) => response.header("last-modified", date),
        None => response,
    }
}

fn checksum(
    cx: &Context,
    proxy: &Repository,
    of: &PathTarget,
    algorithm: Algorithm,
) -> Result<Response, Failure> {
    let hex = match of {
        PathTarget::File(file) => stated::sum(cx, proxy, file, algorithm)?,
        PathTarget::Metadata(folder) => match document(cx, proxy, folder)? {
            Some(document) => Some(sums::of(cx, &document.bytes, algorithm)?),
            None => None,
        },
        _ => None,
    };
    let hex = hex.ok_or_else(|| {
        Failure::not_found(format!("The upstream has no {} of {}", algorithm.name(), of.subject()))
    })?;
    Ok(Response::text(hex).revalidate())
}

/// Returns the headers of a successful reply. Any other reply becomes a failure.
fn success_headers(reply: &Reply, path: &str) -> Result<Vec<(String, String)>, Failure> {
    match reply.status()? {
        200 => Some(reply.headers()?).filter(|headers| !is_page(headers, path)).ok_or_else(|| missing(path)),
        404 | 410 => Err(missing(path)),
        status => Err(refused(status, path)),
    }
}

/// Returns true if a reply is an HTML page. Some servers send one with status 200 for a file that
/// they do not have.
fn is_page(headers: &[(String, String)], path: &str) -> bool {
    let html = |kind: &str| kind.trim_start().to_ascii_lowercase().starts_with("text/html");
    header(headers, "content-type").is_some_and(html) && !path.ends_with(".html") && !path.ends_with(".htm")
}

/// 502: the status does not say whether the upstream has the file.
fn refused(status: u16, path: &str) -> Failure {
    Failure::unusable_upstream(format!("the upstream answered with status {status}, for {path}"))
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}
