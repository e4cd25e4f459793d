//! `GET` and `HEAD`: files, their checksums, metadata, listings.

use crate::checksum::Algorithm;
use crate::index::{self, Document};
use crate::layout::{BadPath, FilePath, Item, Kind, METADATA, Target, join};
use crate::records::{self, FileRecord, Held};
use crate::{group, listing, media, proxy, sums};
use packhouse_sdk::{Blob, Content, Context, Failure, Intent, Params, Repository, Request, Response};

/// Bytes of an answer that need not be a blob.
const INLINE: usize = 1_048_576;

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let target = parse(request)?;
    let packages = target.packages();
    let intent = packages.into_iter().fold(Intent::read().subject(target.subject()), Intent::about_package);
    // A deploy reads metadata before it writes: a credential that may only write can do that much.
    let part_of_publish = match &target {
        Target::Metadata(_) => true,
        Target::Checksum(of, _) => matches!(**of, Target::Metadata(_)),
        _ => false,
    };
    Ok(if part_of_publish { intent.for_publish() } else { intent })
}

pub(crate) fn get(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let repository = cx.target()?;
    let target = parse(request)?;
    match repository.kind().as_str() {
        "proxy" => proxy::get(cx, repository, request, &target),
        "group" => group::get(cx, request, &target),
        _ => match &target {
            Target::Checksum(of, algorithm) => sidecar(cx, repository, request, (&target, of, *algorithm)),
            _ => hosted(cx, repository, request, &target),
        },
    }
}

/// A checksum of a hosted repository that is asked for itself. Before its file is there, it can be read back. `HEAD` tells whether
/// a client put it: Ivy takes one that it did not put for another's file, and publishes no further.
fn sidecar(
    cx: &Context,
    repository: &Repository,
    request: &Request,
    (target, of, algorithm): (&Target, &Target, Algorithm),
) -> Result<Response, Failure> {
    let Target::File(file) = of else { return hosted(cx, repository, request, target) };
    match record(repository, &file.path)? {
        Some(there) if request.method == "HEAD" && !there.is_stated(algorithm) => Err(not_put(algorithm)),
        Some(_) => hosted(cx, repository, request, target),
        None => {
            let held = repository.get_json::<Held>(&records::held(&file.path))?;
            match held.map(|held| held.value.current(cx.now())).as_ref().and_then(|held| held.text(algorithm))
            {
                Some(text) => Ok(Response::text(text).revalidate()),
                None => hosted(cx, repository, request, target),
            }
        }
    }
}

fn not_put(algorithm: Algorithm) -> Failure {
    Failure::not_found(format!("No {} of it was put here; `GET` computes one", algorithm.name()))
}

/// From what is stored in a hosted repository.
pub(crate) fn hosted(
    cx: &Context,
    repository: &Repository,
    request: &Request,
    target: &Target,
) -> Result<Response, Failure> {
    match target {
        Target::Folder(folder) => listing::folder(repository, request, folder),
        Target::Metadata(folder) => {
            let document =
                index::metadata(repository, folder)?.ok_or_else(|| missing(&join(folder, METADATA)))?;
            made(cx, document, "text/xml")
        }
        Target::Prefixes => {
            let document = index::prefixes(repository)?.ok_or_else(|| missing(crate::layout::PREFIXES))?;
            made(cx, document, "text/plain; charset=utf-8")
        }
        Target::Checksum(of, algorithm) => checksum(cx, repository, of, *algorithm),
        Target::File(file) => match find(repository, file)? {
            Some(found) => stored(repository, file, found),
            None if is_folder(repository, &file.path)? => Ok(to_folder(request)),
            None => Err(missing(&file.path)),
        },
    }
}

/// What a request's path names.
pub(crate) fn parse(request: &Request) -> Result<Target, Failure> {
    Target::parse(&request.path).map_err(bad_path)
}

/// 400 for a path that names nothing.
pub(crate) fn bad_path(BadPath(text): BadPath) -> Failure {
    Failure::new(400, "invalid_path", text)
}

/// 404 for a path at which nothing is stored.
pub(crate) fn missing(path: &str) -> Failure {
    Failure::not_found(format!("Nothing is stored at {path}"))
}

/// The record of a file, if there is one by this very name.
pub(crate) fn record(repository: &Repository, path: &str) -> Result<Option<FileRecord>, Failure> {
    Ok(repository.get_json(&records::file(path))?.map(|entry| entry.value))
}

/// The file of this name; for `lib-1.0-SNAPSHOT.jar` that is not there, the newest build's.
fn find(repository: &Repository, file: &FilePath) -> Result<Option<FileRecord>, Failure> {
    if let Some(found) = record(repository, &file.path)? {
        return Ok(Some(found));
    }
    let Some(item @ Item { kind: Kind::Moving, .. }) = &file.item else { return Ok(None) };
    let newest = index::newest(repository, file.folder())?;
    let Some(build) = newest.of(&item.tail) else { return Ok(None) };
    let base = item.version.strip_suffix("SNAPSHOT").unwrap_or_default();
    let name = format!("{}-{base}{}{}", item.artifact, build.qualifier(), item.tail);
    record(repository, &join(file.folder(), &name))
}

/// The bytes of a file that has a record.
pub(crate) fn blob(repository: &Repository, record: &FileRecord) -> Result<Blob, Failure> {
    let found = repository.blob(&record.sha256)?;
    found.ok_or_else(|| Failure::internal(format!("a record names {}, which is not held", record.sha256)))
}

fn stored(repository: &Repository, file: &FilePath, record: FileRecord) -> Result<Response, Failure> {
    let mut response =
        Response::blob(blob(repository, &record)?).content_type(media::of(&file.path)).modified(record.time);
    for algorithm in Algorithm::ALL {
        if let Some(hex) = record.known(algorithm) {
            response = sums::header(response, algorithm, hex);
        }
    }
    let moving = file.item.as_ref().is_some_and(|item| item.kind == Kind::Moving);
    Ok(if moving { response.revalidate() } else { response.immutable() })
}

/// A document that the plugin makes, with the checksums that clients ask for next.
pub(crate) fn made(cx: &Context, document: Document, media_type: &str) -> Result<Response, Failure> {
    let blob = sums::blob(cx, &document.bytes)?;
    let mut response = Response::ok().content_type(media_type).revalidate();
    for algorithm in [Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha256] {
        response = sums::header(response, algorithm, blob.digest(algorithm.name())?.hex());
    }
    if document.modified > 0 {
        response = response.modified(document.modified);
    }
    let small = document.bytes.len() <= INLINE;
    Ok(response.content(if small { Content::Inline(document.bytes) } else { Content::Blob(blob) }))
}

/// A checksum is always of the bytes that are served: in the words in which it was put, or computed.
fn checksum(
    cx: &Context,
    repository: &Repository,
    of: &Target,
    algorithm: Algorithm,
) -> Result<Response, Failure> {
    let text = match of {
        Target::File(file) => match find(repository, file)? {
            Some(found) => match found.stated(algorithm) {
                Some(text) => Some(text.to_owned()),
                None => Some(file_sum(repository, &found, algorithm)?),
            },
            None => None,
        },
        Target::Metadata(folder) => match index::metadata(repository, folder)? {
            Some(document) => Some(sums::of(cx, &document.bytes, algorithm)?),
            None => None,
        },
        Target::Prefixes => match index::prefixes(repository)? {
            Some(document) => Some(sums::of(cx, &document.bytes, algorithm)?),
            None => None,
        },
        Target::Checksum(..) | Target::Folder(_) => None,
    };
    let text = text.ok_or_else(|| {
        Failure::not_found(format!("There is no {} of it: the file itself is not stored", algorithm.name()))
    })?;
    Ok(Response::text(text).revalidate())
}

/// A file's checksum in hex: from its record, or by a pass over its bytes.
pub(crate) fn file_sum(
    repository: &Repository,
    record: &FileRecord,
    algorithm: Algorithm,
) -> Result<String, Failure> {
    match record.known(algorithm) {
        Some(hex) => Ok(hex.to_owned()),
        None => Ok(blob(repository, record)?.digest(algorithm.name())?.hex().to_owned()),
    }
}

/// Whether anything is stored below this path.
pub(crate) fn is_folder(repository: &Repository, path: &str) -> Result<bool, Failure> {
    Ok(repository.keys(records::files_in(path)).page(1).next().transpose()?.is_some())
}

/// A folder's own address ends with a slash, or its links would lead elsewhere.
fn to_folder(request: &Request) -> Response {
    let path: Vec<String> = request.path.iter().map(|segment| listing::encode(segment)).collect();
    Response::redirect(request.link(&format!("{}/", path.join("/"))))
}
