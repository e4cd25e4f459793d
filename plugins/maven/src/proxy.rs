//! A proxy: files that are fetched once and checked against the upstream's checksums, metadata that is asked for again.

mod metadata;
mod signed;
mod stated;

use crate::answer::{made, missing};
use crate::checksum::Algorithm;
use crate::layout::{FilePath, METADATA, Target, join};
use crate::{media, sums};
use packhouse_sdk::{
    Context, Failure, Fetch, Freshness, Reply, Repository, Request, Response, percent_encode,
};

use signed::Judged;
use stated::Policy;

pub(crate) use metadata::document;
pub(crate) use stated::{POLICY, policy_setting};

/// Answers a read from the upstream of `proxy`.
pub(crate) fn get(
    cx: &Context,
    proxy: &Repository,
    request: &Request,
    target: &Target,
) -> Result<Response, Failure> {
    match target {
        // What an upstream lists is for people, and what it filters by is not ours to repeat.
        Target::Folder(_) | Target::Prefixes => Err(missing(&target.subject())),
        Target::Metadata(folder) => {
            let document = document(cx, proxy, folder)?.ok_or_else(|| missing(&join(folder, METADATA)))?;
            made(cx, document, "text/xml")
        }
        Target::Checksum(of, algorithm) => checksum(cx, proxy, of, *algorithm),
        Target::File(file) if request.method == "HEAD" => head(cx, proxy, file),
        Target::File(file) => fetch_file(cx, proxy, file),
    }
}

/// A path as a target below the upstream's address.
fn encoded(path: &str) -> String {
    let segments: Vec<String> = path.split('/').map(percent_encode).collect();
    format!("/{}", segments.join("/"))
}

fn ask(cx: &Context, method: &str, file: &FilePath) -> Fetch {
    let fetch = ask_unshown(cx, method, file);
    match &file.item {
        Some(item) => fetch.show_as(&item.name(), &item.version, &file.path),
        None => fetch,
    }
}

/// As [`ask`], of what is not to be shown with its version.
fn ask_unshown(cx: &Context, method: &str, file: &FilePath) -> Fetch {
    let fetch = cx.upstream(method, &encoded(&file.path)).limit(crate::FILE_LIMIT);
    if file.may_change() { fetch } else { fetch.fresh(Freshness::Immutable) }
}

/// A fetch of a file for a client, once what is signed of it is stated where a policy judges by that.
fn asked_for(cx: &Context, proxy: &Repository, method: &str, file: &FilePath) -> Result<Fetch, Failure> {
    Ok(match signed::state(cx, proxy, file)? {
        Judged::AsItIs => ask(cx, method, file),
        Judged::SignatureOf(signed) => {
            let fetch = ask_unshown(cx, method, file);
            match &file.item {
                Some(item) => fetch.part_of(&item.name(), &item.version, &signed),
                None => fetch,
            }
        }
        // Of a HEAD there are no bytes to compare.
        Judged::Signed(_) if method == "HEAD" => ask(cx, method, file),
        Judged::Signed(sha256) => ask(cx, method, file).expect(&sha256),
    })
}

fn head(cx: &Context, proxy: &Repository, file: &FilePath) -> Result<Response, Failure> {
    let reply = asked_for(cx, proxy, "HEAD", file)?.start(proxy)?;
    let headers = good(&reply, &file.path)?;
    let mut response = described(Response::ok(), file, &headers);
    if let Some(length) = header(&headers, "content-length") {
        response = response.header("content-length", length);
    }
    Ok(response)
}

/// A file of the upstream's with its bytes.
pub(crate) fn fetch_file(cx: &Context, proxy: &Repository, file: &FilePath) -> Result<Response, Failure> {
    let mut reply = asked_for(cx, proxy, "GET", file)?.start(proxy)?;
    let headers = good(&reply, &file.path)?;
    // What is kept was checked when it came.
    let is_kept = header(&headers, "age").is_some();
    let policy = Policy::of(proxy)?;
    let stated = if is_kept { None } else { policy.stated(cx, proxy, file, &headers)? };
    if let Some(stated) = stated.as_ref().filter(|_| policy == Policy::Fail) {
        reply.expect(stated);
        let header = format!("x-checksum-{}", stated.algorithm());
        let response = Response::blob(reply.body()?).header(header, stated.hex());
        return Ok(described(response, file, &headers));
    }
    let blob = reply.body()?;
    if let Some(stated) = &stated {
        stated::warn_of_another(cx, proxy, file, stated, &blob)?;
    }
    let mut response = described(Response::ok(), file, &headers);
    if is_kept || stated.is_some() {
        for algorithm in [Algorithm::Sha1, Algorithm::Sha256] {
            response = sums::header(response, algorithm, blob.digest(algorithm.name())?.hex());
        }
    }
    Ok(response.content(packhouse_sdk::Content::Blob(blob)))
}

/// What a file says of itself.
fn described(response: Response, file: &FilePath, headers: &[(String, String)]) -> Response {
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
    of: &Target,
    algorithm: Algorithm,
) -> Result<Response, Failure> {
    let hex = match of {
        Target::File(file) => stated::sum(cx, proxy, file, algorithm)?,
        Target::Metadata(folder) => match document(cx, proxy, folder)? {
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

/// The headers of a success; else what is answered in its place.
fn good(reply: &Reply, path: &str) -> Result<Vec<(String, String)>, Failure> {
    match reply.status()? {
        200 => Some(reply.headers()?).filter(|headers| !is_page(headers, path)).ok_or_else(|| missing(path)),
        404 | 410 => Err(missing(path)),
        status => Err(refused(status, path)),
    }
}

/// Whether it is a page for people, which some servers send with 200 in the place of what they do not have.
fn is_page(headers: &[(String, String)], path: &str) -> bool {
    let html = |kind: &str| kind.trim_start().to_ascii_lowercase().starts_with("text/html");
    header(headers, "content-type").is_some_and(html) && !path.ends_with(".html") && !path.ends_with(".htm")
}

/// 502 for a status by which an upstream says nothing of what it has.
fn refused(status: u16, path: &str) -> Failure {
    Failure::unusable_upstream(format!("the upstream answered with status {status}, for {path}"))
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
}
