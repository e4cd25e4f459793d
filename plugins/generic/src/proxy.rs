//! Proxy repositories. They serve the files of an upstream. They also list its folders if the
//! upstream answers with the JSON of [`ListingPage`].

use crate::checksum::{Algorithm, line, with_checksum};
use crate::page::{Level, ListingPage};
use crate::{FILE_LIMIT, media, path};
use packhouse_sdk::{
    Blob, Content, Context, Digest, Error, Failure, Fetch, Freshness, ReadAt, Reply, Repository, Request,
    Response, Timestamp, percent_encode,
};
use serde::Deserialize;

/// Maximum number of bytes of an upstream's listing, which has up to a thousand names.
const LISTING: u64 = 8 << 20;

/// Size in bytes up to which the plugin fetches a file even for a `HEAD`. The host waits until it
/// has received such a file, so that the response has the validators that the host derives from the
/// bytes.
const SMALL: u64 = 256 << 10;

/// Extensions of archives, packages, programs, scripts, disk images, documents, media, data, keys,
/// certificates, checksums and signatures. A file with such an extension is never HTML, so an HTML
/// response is a page that the upstream sent instead of the file.
const NEVER_HTML: [&str; 125] = [
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

/// Words in the address of a sign-in page.
const SIGN_IN: [&str; 5] = ["login", "logon", "signin", "sign-in", "sign_in"];

/// The setting that proxies read.
#[derive(Deserialize)]
struct ProxySettings {
    immutable: bool,
}

/// Returns the upstream's file at this path. If there is no such file and the path names a checksum
/// file, such as `tool.zip.sha256`, returns the checksum of `tool.zip`.
pub(crate) fn file(
    cx: &Context,
    proxy: &Repository,
    request: &Request,
    path: &str,
) -> Result<Option<Response>, Failure> {
    let Some((reply, headers)) = found_file(request_file(cx, proxy, path)?.start(proxy)?, path)? else {
        return checksum(cx, proxy, path);
    };
    let is_cached = header(&headers, "age").is_some();
    let sums = stated(&headers);
    let response = Response::ok().content_type(media::of(path)).revalidate();
    let mut response =
        sums.iter().fold(response, |response, (algorithm, hex)| with_checksum(response, *algorithm, hex));
    if let Some(date) = header(&headers, "last-modified") {
        // `modified` lets the host answer a conditional request from the cached file. Without a
        // cached file, the client only gets the upstream's date.
        response = match Timestamp::parse_http(date).and_then(Timestamp::to_ms) {
            Some(at) if is_cached => response.modified(at),
            _ => response.header("last-modified", date),
        };
    }
    let length = header(&headers, "content-length");
    let is_small = length.and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length <= SMALL);
    if request.method == "HEAD" && !is_cached && !is_small {
        // The plugin does not read the body of a large file for a `HEAD`, so the host does not
        // fetch it. The response then lacks the headers that the host derives from the bytes.
        return Ok(Some(
            length.into_iter().fold(response, |response, length| response.header("content-length", length)),
        ));
    }
    Ok(Some(response.content(Content::Blob(checked(reply, is_cached, &sums)?))))
}

/// Returns the checksums that the upstream states for a file, the strongest one last.
fn stated(headers: &[(String, String)]) -> Vec<(Algorithm, String)> {
    let stated = |one: Algorithm| Some((one, one.read(header(headers, &one.header())?)?));
    Algorithm::ALL.into_iter().filter_map(stated).collect()
}

/// Returns the body of the reply. Cached bodies were verified when they arrived. While a new body
/// streams, the host withholds its last bytes until it has verified the strongest stated checksum.
fn checked(mut reply: Reply, is_cached: bool, sums: &[(Algorithm, String)]) -> Result<Blob, Error> {
    if !is_cached && let Some((algorithm, hex)) = sums.last() {
        reply.expect(&Digest::new(algorithm.name(), hex)?);
    }
    reply.body()
}

/// Returns a checksum file that the upstream does not have, computed from the upstream's file.
/// Returns `None` if the upstream does not have that file either.
fn checksum(cx: &Context, proxy: &Repository, path: &str) -> Result<Option<Response>, Failure> {
    let Some((file, algorithm)) = Algorithm::split(path) else { return Ok(None) };
    let Some((reply, headers)) = found_file(request_file(cx, proxy, file)?.start(proxy)?, file)? else {
        return Ok(None);
    };
    let body = checked(reply, header(&headers, "age").is_some(), &stated(&headers))?;
    let hex = body.digest(algorithm.name())?;
    Ok(Some(Response::text(line(hex.hex(), path::split(file).1)).revalidate()))
}

/// Prepares the `GET` request for a file. The plugin sends it for a client's `HEAD` too, so that
/// both responses describe the same cached bytes.
fn request_file(cx: &Context, proxy: &Repository, path: &str) -> Result<Fetch, Failure> {
    let id = path::id(path);
    let fetch = cx.upstream("GET", &encoded(path)).limit(FILE_LIMIT).show_as(&id.name, &id.version, path);
    let immutable = proxy.settings::<ProxySettings>()?.immutable;
    Ok(if immutable { fetch.fresh(Freshness::Immutable) } else { fetch })
}

/// Returns the percent-encoded path below the upstream's address.
fn encoded(path: &str) -> String {
    let segments: Vec<String> = path.split('/').map(percent_encode).collect();
    format!("/{}", segments.join("/"))
}

type ReplyHeaders = Vec<(String, String)>;

/// Returns the upstream's reply and its headers, or `None` if the upstream has nothing at this
/// path.
fn found(reply: Reply) -> Result<Option<(Reply, ReplyHeaders)>, Failure> {
    let Some(reply) = reply.found()? else { return Ok(None) };
    let headers = reply.headers()?;
    Ok(Some((reply, headers)))
}

/// Returns the upstream's reply to a request for a file, or `None` if the upstream has no such
/// file.
///
/// # Errors
/// 502 if the upstream sent an HTML page instead of the file.
fn found_file(reply: Reply, path: &str) -> Result<Option<(Reply, ReplyHeaders)>, Failure> {
    let Some((reply, headers)) = found(reply)? else { return Ok(None) };
    // The plugin does not read the body of such a page, so the host does not cache it.
    if is_page(&headers, path, &reply.address()?) {
        return Err(Failure::unusable_upstream(format!(
            "it sent an HTML page, such as a sign-in page, instead of the file {path}"
        )));
    }
    Ok(Some((reply, headers)))
}

/// Returns true if the upstream sent an HTML page, such as a sign-in page, instead of the file.
/// Some servers send a sign-in page with status 200. If the requested path has an extension in
/// [`NEVER_HTML`], HTML is never the file. Otherwise HTML is the file if the upstream did not
/// redirect the request to another path. After a redirect, HTML is not the file in three cases: the
/// requested path has no extension, the new path has a different extension, or the new file name
/// contains a word of [`SIGN_IN`].
fn is_page(headers: &[(String, String)], path: &str, address: &str) -> bool {
    let kind = header(headers, "content-type").unwrap_or_default().trim_start().to_ascii_lowercase();
    if !kind.starts_with("text/html") && !kind.starts_with("application/xhtml") {
        return false;
    }
    let requested = extension(path);
    if requested.as_deref().is_some_and(|requested| NEVER_HTML.contains(&requested)) {
        return true;
    }
    let address = address.split(['?', '#']).next().unwrap_or_default();
    if address.ends_with(&encoded(path)) {
        return false;
    }
    let (_, name) = path::split(address);
    let name = name.to_ascii_lowercase();
    requested.is_none() || extension(&name) != requested || SIGN_IN.iter().any(|word| name.contains(*word))
}

/// The extension of a path's file name, in lower case and without its dot.
fn extension(path: &str) -> Option<String> {
    let (_, name) = path::split(path);
    name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase())
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
}

/// Returns one page of an upstream's folder, without the names that the host withholds. Returns
/// `None` if the upstream has no such folder, or if it does not answer with the JSON of
/// [`ListingPage`].
pub(crate) fn level(
    cx: &Context,
    proxy: &Repository,
    folder: &str,
    after: &str,
    limit: usize,
) -> Result<Option<Level>, Failure> {
    let slash = if folder.is_empty() { "" } else { "/" };
    let target = format!("{}{slash}?limit={limit}&after={}", encoded(folder), percent_encode(after));
    let reply = cx
        .upstream("GET", &target)
        .header("accept", "application/json")
        .limit(LISTING)
        .metadata()
        .start(proxy)?;
    let Some((reply, headers)) = found(reply)? else { return Ok(None) };
    let kind = header(&headers, "content-type").unwrap_or_default();
    if kind.split(';').next().unwrap_or_default().trim() != "application/json" {
        return Ok(None);
    }
    let bytes = reply.body()?.read_all(LISTING)?;
    let Ok(page) = serde_json::from_slice::<ListingPage>(&bytes) else { return Ok(None) };
    let listed = page.entries.len();
    let mut level = page.into_level();
    cx.log().left_out(path::package(folder), "files", listed - level.entries.len());
    let below = |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    let names = level.entries.iter().filter(|entry| entry.is_folder()).map(|entry| below(&entry.name));
    let names: Vec<String> = names.chain([path::package(folder).to_owned()]).collect();
    let withheld = proxy.withheld(&names)?;
    let withholds_files = withheld.contains(path::package(folder));
    level.entries.retain(|entry| {
        if entry.is_folder() { !withheld.contains(&below(&entry.name)) } else { !withholds_files }
    });
    Ok(Some(level))
}
