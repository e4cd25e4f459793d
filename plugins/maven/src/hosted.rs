//! Reads of a hosted repository: files, their checksums, metadata, listings.

use crate::answer::{made, missing};
use crate::checksum::Algorithm;
use crate::layout::{FilePath, Item, Kind, METADATA, PREFIXES, Target, join};
use crate::records::{self, FileRecord};
use crate::{index, listing, media, sums};
use packhouse_sdk::{Context, Failure, Repository, Request, Response, percent_encode};

/// From what is stored in a hosted repository.
pub(crate) fn get(
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
            let document = index::prefixes(repository)?.ok_or_else(|| missing(PREFIXES))?;
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

fn stored(repository: &Repository, file: &FilePath, record: FileRecord) -> Result<Response, Failure> {
    let mut response = Response::blob(repository.recorded_blob(&record.sha256)?)
        .content_type(media::of(&file.path))
        .modified(record.time);
    for algorithm in Algorithm::ALL {
        if let Some(hex) = record.known(algorithm) {
            response = sums::header(response, algorithm, hex);
        }
    }
    Ok(if file.may_change() { response.revalidate() } else { response.immutable() })
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
        None => Ok(repository.recorded_blob(&record.sha256)?.digest(algorithm.name())?.hex().to_owned()),
    }
}

/// Whether anything is stored below this path.
pub(crate) fn is_folder(repository: &Repository, path: &str) -> Result<bool, Failure> {
    Ok(repository.keys(records::files_in(path)).page(1).next().transpose()?.is_some())
}

/// A folder's own address ends with a slash, or its links would lead elsewhere.
fn to_folder(request: &Request) -> Response {
    let path: Vec<String> = request.path.iter().map(|segment| percent_encode(segment)).collect();
    Response::redirect(request.link(&format!("{}/", path.join("/"))))
}
