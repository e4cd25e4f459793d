//! Files of a hosted repository, and their checksums.

use crate::checksum::{Algorithm, line, with_checksum};
use crate::records::{self, FileRecord};
use crate::{media, path};
use packhouse_sdk::{Error, Repository, Response};

/// Returns the file at a path. If there is no such file and the path names a checksum file, such as
/// `tool.zip.sha256`, returns the checksum of `tool.zip`.
pub(crate) fn file(repository: &Repository, path: &str) -> Result<Option<Response>, Error> {
    if let Some(found) = FileRecord::find(repository, path)? {
        return stored(repository, path, &found.value).map(Some);
    }
    let Some((file, algorithm)) = Algorithm::split(path) else { return Ok(None) };
    let Some(found) = FileRecord::find(repository, file)? else { return Ok(None) };
    let hex = match found.value.known(algorithm) {
        Some(hex) => hex.to_owned(),
        None => repository.recorded_blob(&found.value.sha256)?.digest(algorithm.name())?.hex().to_owned(),
    };
    Ok(Some(Response::text(line(&hex, path::split(file).1)).revalidate()))
}

/// Returns the response with a stored file. Clients must revalidate it before each use, because the
/// file may have been deleted or replaced.
fn stored(repository: &Repository, path: &str, record: &FileRecord) -> Result<Response, Error> {
    let response = Response::blob(repository.recorded_blob(&record.sha256)?)
        .content_type(media::of(path))
        .modified(record.time)
        .revalidate();
    let known = Algorithm::ALL.into_iter().filter_map(|one| Some((one, record.known(one)?)));
    Ok(known.fold(response, |response, (algorithm, hex)| with_checksum(response, algorithm, hex)))
}

/// Returns true if anything is stored below this path.
pub(crate) fn is_folder(repository: &Repository, path: &str) -> Result<bool, Error> {
    Ok(repository.keys(records::files_in(path)).page(1).next().transpose()?.is_some())
}
