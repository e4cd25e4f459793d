//! A proxy: files of an upstream, and its folders where it lists them as this format does.

use crate::checksum::{Algorithm, line, told};
use crate::page::{Level, Page};
use crate::{FILE_LIMIT, media, path};
use packhouse_sdk::{
    Content, Context, Digest, Error, Failure, Fetch, Freshness, ReadAt, Reply, Repository, Request, Response,
    Timestamp, percent_encode,
};
use serde::Deserialize;

/// Bytes of an upstream's listing: of a thousand names.
const LISTING: u64 = 8 << 20;

/// How pages end.
const PAGES: [&str; 4] = ["html", "htm", "xhtml", "shtml"];

/// The format's own setting.
#[derive(Deserialize)]
struct Own {
    immutable: bool,
}

/// The upstream's file at this path; else, where the path names a checksum, that of its file.
pub(crate) fn file(
    cx: &Context,
    proxy: &Repository,
    request: &Request,
    path: &str,
) -> Result<Option<Response>, Failure> {
    let method = if request.method == "HEAD" { "HEAD" } else { "GET" };
    let Some((reply, headers)) = found_file(ask(cx, proxy, method, path)?.start(proxy)?, path)? else {
        return checksum(cx, proxy, path);
    };
    let mut response = Response::ok().content_type(media::of(path)).revalidate();
    if let Some(date) = header(&headers, "last-modified") {
        // The host compares the date of what is kept with what a client has of it.
        response = match Timestamp::parse_http(date).and_then(Timestamp::to_ms) {
            Some(at) if method == "GET" && header(&headers, "age").is_some() => response.modified(at),
            _ => response.header("last-modified", date),
        };
    }
    if method == "HEAD" {
        let length = header(&headers, "content-length");
        return Ok(Some(
            length.into_iter().fold(response, |response, length| response.header("content-length", length)),
        ));
    }
    let (body, sums) = checked(reply, &headers)?;
    let response = sums.iter().fold(response, |response, (algorithm, hex)| told(response, *algorithm, hex));
    Ok(Some(response.content(Content::Blob(body))))
}

/// What is kept was compared when it came; of what comes now the host holds the end back until it is as the upstream states.
fn checked(
    mut reply: Reply,
    headers: &[(String, String)],
) -> Result<(packhouse_sdk::Blob, Vec<(Algorithm, String)>), Error> {
    let stated = |one: Algorithm| Some((one, one.read(header(headers, &one.header())?)?));
    let sums: Vec<(Algorithm, String)> = Algorithm::ALL.into_iter().filter_map(stated).collect();
    if header(headers, "age").is_none()
        && let Some((algorithm, hex)) = sums.last()
    {
        reply.expect(&Digest::new(algorithm.name(), hex)?);
    }
    Ok((reply.body()?, sums))
}

/// A checksum that the upstream has no file of: it is made of the file.
fn checksum(cx: &Context, proxy: &Repository, path: &str) -> Result<Option<Response>, Failure> {
    let Some((of, algorithm)) = Algorithm::split(path) else { return Ok(None) };
    let Some((reply, headers)) = found_file(ask(cx, proxy, "GET", of)?.start(proxy)?, of)? else {
        return Ok(None);
    };
    let (body, _) = checked(reply, &headers)?;
    let hex = body.digest(algorithm.name())?;
    Ok(Some(Response::text(line(hex.hex(), path::split(of).1)).revalidate()))
}

fn ask(cx: &Context, proxy: &Repository, method: &str, path: &str) -> Result<Fetch, Failure> {
    let id = path::id(path);
    let fetch = cx.upstream(method, &encoded(path)).limit(FILE_LIMIT).show_as(&id.name, &id.version, path);
    let immutable = proxy.settings::<Own>()?.immutable;
    Ok(if immutable { fetch.fresh(Freshness::Immutable) } else { fetch })
}

/// A path as a target below the upstream's address.
fn encoded(path: &str) -> String {
    let segments: Vec<String> = path.split('/').map(percent_encode).collect();
    format!("/{}", segments.join("/"))
}

type Headers = Vec<(String, String)>;

/// An upstream's answer; none where it has nothing there.
fn found(reply: Reply) -> Result<Option<(Reply, Headers)>, Failure> {
    let Some(reply) = reply.found()? else { return Ok(None) };
    let headers = reply.headers()?;
    Ok(Some((reply, headers)))
}

/// A file of an upstream's; none where it has nothing there.
fn found_file(reply: Reply, path: &str) -> Result<Option<(Reply, Headers)>, Failure> {
    let Some((reply, headers)) = found(reply)? else { return Ok(None) };
    // It is not taken in, and so not kept.
    if is_page(&headers, path, &reply.address()?) {
        return Err(Failure::unusable_upstream(format!(
            "it sent a page for people, as to sign in, for {path}"
        )));
    }
    Ok(Some((reply, headers)))
}

/// Whether a page came in the place of a file of another kind, or from another address than that of a file whose kind nobody knows: some
/// servers send one with 200 to whoever is to sign in first.
fn is_page(headers: &[(String, String)], path: &str, address: &str) -> bool {
    let kind = header(headers, "content-type").unwrap_or_default().trim_start().to_ascii_lowercase();
    if !kind.starts_with("text/html") && !kind.starts_with("application/xhtml") {
        return false;
    }
    let (_, name) = path::split(path);
    let came_from = address.split(['?', '#']).next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((_, ending)) => !PAGES.iter().any(|page| ending.eq_ignore_ascii_case(page)),
        None => !name.is_empty() && !came_from.ends_with(&encoded(path)),
    }
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
}

/// One level of an upstream that lists its folders as this format does; none of another, whose lists are for people.
pub(crate) fn level(
    cx: &Context,
    proxy: &Repository,
    folder: &str,
    after: &str,
    limit: usize,
) -> Result<Option<Level>, Failure> {
    let slash = if folder.is_empty() { "" } else { "/" };
    let target = format!("{}{slash}?limit={limit}&after={}", encoded(folder), percent_encode(after));
    let asked = cx
        .upstream("GET", &target)
        .header("accept", "application/json")
        .limit(LISTING)
        .metadata()
        .start(proxy)?;
    let Some((reply, headers)) = found(asked)? else { return Ok(None) };
    let kind = header(&headers, "content-type").unwrap_or_default();
    if kind.split(';').next().unwrap_or_default().trim() != "application/json" {
        return Ok(None);
    }
    let bytes = reply.body()?.read_all(LISTING)?;
    let Ok(page) = serde_json::from_slice::<Page>(&bytes) else { return Ok(None) };
    let mut level = page.into_level();
    let below = |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    let names = level.entries.iter().filter(|entry| entry.is_folder()).map(|entry| below(&entry.name));
    let names: Vec<String> = names.chain([path::package(folder).to_owned()]).collect();
    let withheld = proxy.withheld(&names)?;
    let own = withheld.contains(path::package(folder));
    level
        .entries
        .retain(|entry| if entry.is_folder() { !withheld.contains(&below(&entry.name)) } else { !own });
    Ok(Some(level))
}
