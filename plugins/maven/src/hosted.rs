//! Reads of a hosted repository: files, their checksums, metadata, listings.

use crate::answer::{document_response, missing};
use crate::checksum::Algorithm;
use crate::layout::{FileKind, FilePath, METADATA, PREFIXES, PathTarget, VersionFile, join};
use crate::records::{self, FileRecord};
use crate::{index, listing, media, sums};
use packhouse_sdk::{Context, Failure, Repository, Request, Response, percent_encode};

/// Serves a read from a hosted repository.
pub(crate) fn get(
    cx: &Context,
    repository: &Repository,
    request: &Request,
    target: &PathTarget,
) -> Result<Response, Failure> {
    match target {
        PathTarget::Folder(folder) => listing::folder(repository, request, folder),
        PathTarget::Metadata(folder) => {
            let document =
                index::metadata(repository, folder)?.ok_or_else(|| missing(&join(folder, METADATA)))?;
            document_response(cx, document, "text/xml")
        }
        PathTarget::Prefixes => {
            let document = index::prefixes(repository)?.ok_or_else(|| missing(PREFIXES))?;
            document_response(cx, document, "text/plain; charset=utf-8")
        }
        PathTarget::Checksum(of, algorithm) => checksum(cx, repository, of, *algorithm),
        PathTarget::File(file) => match find(repository, file)? {
            Some(found) => file_response(repository, file, found),
            None if is_folder(repository, &file.path)? => Ok(redirect_to_folder(request)),
            None => Err(missing(&file.path)),
        },
    }
}

/// Returns the record of the file at exactly this path.
pub(crate) fn record(repository: &Repository, path: &str) -> Result<Option<FileRecord>, Failure> {
    Ok(repository.get_json(&records::file(path))?.map(|entry| entry.value))
}

/// Finds the file at this path. If `lib-1.0-SNAPSHOT.jar` does not exist, finds the file of the
/// newest build.
fn find(repository: &Repository, file: &FilePath) -> Result<Option<FileRecord>, Failure> {
    if let Some(found) = record(repository, &file.path)? {
        return Ok(Some(found));
    }
    let Some(item @ VersionFile { kind: FileKind::Moving, .. }) = &file.item else { return Ok(None) };
    let newest = index::newest(repository, file.folder())?;
    let Some(build) = newest.of(&item.tail) else { return Ok(None) };
    let base = item.version.strip_suffix("SNAPSHOT").unwrap_or_default();
    let name = format!("{}-{base}{}{}", item.artifact, build.qualifier(), item.tail);
    record(repository, &join(file.folder(), &name))
}

fn file_response(repository: &Repository, file: &FilePath, record: FileRecord) -> Result<Response, Failure> {
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

/// Serves a checksum, which always matches the bytes that are served. For an uploaded checksum, the
/// response has the uploaded text. Any other checksum is computed.
fn checksum(
    cx: &Context,
    repository: &Repository,
    of: &PathTarget,
    algorithm: Algorithm,
) -> Result<Response, Failure> {
    let text = match of {
        PathTarget::File(file) => match find(repository, file)? {
            Some(found) => match found.stated(algorithm) {
                Some(text) => Some(text.to_owned()),
                None => Some(file_sum(repository, &found, algorithm)?),
            },
            None => None,
        },
        PathTarget::Metadata(folder) => match index::metadata(repository, folder)? {
            Some(document) => Some(sums::of(cx, &document.bytes, algorithm)?),
            None => None,
        },
        PathTarget::Prefixes => match index::prefixes(repository)? {
            Some(document) => Some(sums::of(cx, &document.bytes, algorithm)?),
            None => None,
        },
        PathTarget::Checksum(..) | PathTarget::Folder(_) => None,
    };
    let text = text.ok_or_else(|| {
        Failure::not_found(format!(
            "There is no {} of this file, because the file is not stored",
            algorithm.name()
        ))
    })?;
    Ok(Response::text(text).revalidate())
}

/// A file's checksum in hex, from its record or computed from its bytes.
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

/// Returns true if anything is stored below this path.
pub(crate) fn is_folder(repository: &Repository, path: &str) -> Result<bool, Failure> {
    Ok(repository.keys(records::files_in(path)).page(1).next().transpose()?.is_some())
}

/// Redirects to the folder's address with a slash at its end. Without the slash, the relative links
/// of the listing would be wrong.
fn redirect_to_folder(request: &Request) -> Response {
    let path: Vec<String> = request.path.iter().map(|segment| percent_encode(segment)).collect();
    Response::redirect(request.link(&format!("{}/", path.join("/"))))
}
