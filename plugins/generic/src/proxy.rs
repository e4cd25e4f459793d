//! A proxy: files of an upstream, and its folders where it lists them as this format does.

use crate::checksum::{Algorithm, line, told};
use crate::page::{Level, Page};
use crate::{FILE_LIMIT, media, path};
use packhouse_sdk::{
    Blob, Content, Context, Digest, Error, Failure, Fetch, Freshness, ReadAt, Reply, Repository, Request,
    Response, Timestamp, percent_encode,
};
use serde::Deserialize;

/// Bytes of an upstream's listing: of a thousand names.
const LISTING: u64 = 8 << 20;

/// The largest file, in bytes, that is fetched for a `HEAD` as well: the host waits for as much before it
/// answers.
const SMALL: u64 = 256 << 10;

/// Endings of archives, packages, programs, scripts, disk images, documents, media, data, keys, certificates,
/// checksums and signatures. HTML under such a name is a page in the place of the file.
const NO_PAGES: [&str; 125] = [
    "7z", "a", "aab", "aar", "apk", "appimage", "ar", "asc", "avi", "avif", "bash", "bin", "bmp", "br",
    "bz2", "cab", "cer", "class", "conda", "crate", "crt", "csv", "db", "deb", "dll", "dmg", "doc", "docx",
    "dylib", "ear", "egg", "elf", "exe", "flac", "flatpak", "gem", "gif", "gpg", "gz", "ico", "img", "ipa",
    "iso", "jar", "jpeg", "jpg", "js", "json", "key", "lz", "lz4", "lzma", "m4a", "md5", "minisig", "mkv",
    "mov", "mp3", "mp4", "msi", "msix", "npy", "nupkg", "o", "odt", "ogg", "onnx", "otf", "ova", "parquet",
    "pdf", "pem", "pkg", "png", "ppt", "pptx", "ps1", "pub", "py", "pyd", "qcow2", "rar", "rb", "rpm", "sh",
    "sha1", "sha256", "sha512", "sig", "sigstore", "snap", "so", "sqlite", "sys", "tar", "tbz2", "tgz",
    "tif", "tiff", "toml", "ttf", "txz", "vdi", "vhd", "vhdx", "vmdk", "vsix", "war", "wasm", "wav", "webm",
    "webp", "whl", "woff", "woff2", "xls", "xlsx", "xml", "xpi", "xz", "yaml", "yml", "z", "zip", "zst",
];

/// Words in the address of a page where people sign in.
const SIGN_IN: [&str; 5] = ["login", "logon", "signin", "sign-in", "sign_in"];

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
    let Some((reply, headers)) = found_file(ask(cx, proxy, path)?.start(proxy)?, path)? else {
        return checksum(cx, proxy, path);
    };
    let is_kept = header(&headers, "age").is_some();
    let sums = stated(&headers);
    let response = Response::ok().content_type(media::of(path)).revalidate();
    let mut response =
        sums.iter().fold(response, |response, (algorithm, hex)| told(response, *algorithm, hex));
    if let Some(date) = header(&headers, "last-modified") {
        // The host compares the date of what is kept with what a client has of it.
        response = match Timestamp::parse_http(date).and_then(Timestamp::to_ms) {
            Some(at) if is_kept => response.modified(at),
            _ => response.header("last-modified", date),
        };
    }
    let length = header(&headers, "content-length");
    let is_small = length.and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length <= SMALL);
    if request.method == "HEAD" && !is_kept && !is_small {
        // The body is not fetched if nobody reads it. From bytes that it has, the host makes more headers.
        return Ok(Some(
            length.into_iter().fold(response, |response, length| response.header("content-length", length)),
        ));
    }
    Ok(Some(response.content(Content::Blob(checked(reply, is_kept, &sums)?))))
}

/// The checksums that the upstream states of a file.
fn stated(headers: &[(String, String)]) -> Vec<(Algorithm, String)> {
    let stated = |one: Algorithm| Some((one, one.read(header(headers, &one.header())?)?));
    Algorithm::ALL.into_iter().filter_map(stated).collect()
}

/// The file. What is kept was compared with its checksums when it came; of what comes now, the host holds
/// the end back until the file is as the upstream states.
fn checked(mut reply: Reply, is_kept: bool, sums: &[(Algorithm, String)]) -> Result<Blob, Error> {
    if !is_kept && let Some((algorithm, hex)) = sums.last() {
        reply.expect(&Digest::new(algorithm.name(), hex)?);
    }
    reply.body()
}

/// A checksum that the upstream has no file of: it is made of the file.
fn checksum(cx: &Context, proxy: &Repository, path: &str) -> Result<Option<Response>, Failure> {
    let Some((of, algorithm)) = Algorithm::split(path) else { return Ok(None) };
    let Some((reply, headers)) = found_file(ask(cx, proxy, of)?.start(proxy)?, of)? else {
        return Ok(None);
    };
    let body = checked(reply, header(&headers, "age").is_some(), &stated(&headers))?;
    let hex = body.digest(algorithm.name())?;
    Ok(Some(Response::text(line(hex.hex(), path::split(of).1)).revalidate()))
}

/// A `GET` of a file. A `HEAD` is answered from it too: then both have the headers of the same kept bytes.
fn ask(cx: &Context, proxy: &Repository, path: &str) -> Result<Fetch, Failure> {
    let id = path::id(path);
    let fetch = cx.upstream("GET", &encoded(path)).limit(FILE_LIMIT).show_as(&id.name, &id.version, path);
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

/// Whether a page for people came in the place of a file, as some servers send one with 200 to whoever is
/// to sign in first. HTML is a file like any other, unless the file's ending says that it is something
/// else, or it came by a redirect to a folder, to where people sign in or to a file of another kind.
fn is_page(headers: &[(String, String)], path: &str, address: &str) -> bool {
    let kind = header(headers, "content-type").unwrap_or_default().trim_start().to_ascii_lowercase();
    if !kind.starts_with("text/html") && !kind.starts_with("application/xhtml") {
        return false;
    }
    let own = ending(path);
    if own.as_deref().is_some_and(|own| NO_PAGES.contains(&own)) {
        return true;
    }
    let came_from = address.split(['?', '#']).next().unwrap_or_default();
    if came_from.ends_with(&encoded(path)) {
        return false;
    }
    let (_, name) = path::split(came_from);
    let name = name.to_ascii_lowercase();
    own.is_none() || ending(&name) != own || SIGN_IN.iter().any(|word| name.contains(*word))
}

/// The ending of a path's name in lower case, without its dot.
fn ending(path: &str) -> Option<String> {
    let (_, name) = path::split(path);
    name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase())
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
    let listed = page.entries.len();
    let mut level = page.into_level();
    cx.log().left_out(path::package(folder), "files", listed - level.entries.len());
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
