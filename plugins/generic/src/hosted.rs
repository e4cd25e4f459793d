//! Files of a hosted repository, and their checksums.

use crate::checksum::{Algorithm, line, told};
use crate::records::{self, FileRecord};
use crate::{media, path};
use packhouse_sdk::{Error, Repository, Response};

/// The file at a path, else the checksum of the file beside it that the path names.
pub(crate) fn file(repository: &Repository, path: &str) -> Result<Option<Response>, Error> {
    if let Some(found) = FileRecord::find(repository, path)? {
        return stored(repository, path, &found.value).map(Some);
    }
    let Some((of, algorithm)) = Algorithm::split(path) else { return Ok(None) };
    let Some(found) = FileRecord::find(repository, of)? else { return Ok(None) };
    let hex = match found.value.known(algorithm) {
        Some(hex) => hex.to_owned(),
        None => repository.recorded_blob(&found.value.sha256)?.digest(algorithm.name())?.hex().to_owned(),
    };
    Ok(Some(Response::text(line(&hex, path::split(of).1)).revalidate()))
}

/// What is deleted or replaced must not be served any more, so that clients ask each time.
fn stored(repository: &Repository, path: &str, record: &FileRecord) -> Result<Response, Error> {
    let response = Response::blob(repository.recorded_blob(&record.sha256)?)
        .content_type(media::of(path))
        .modified(record.time)
        .revalidate();
    let known = Algorithm::ALL.into_iter().filter_map(|one| Some((one, record.known(one)?)));
    Ok(known.fold(response, |response, (algorithm, hex)| told(response, algorithm, hex)))
}

/// Whether anything is stored below this path.
pub(crate) fn is_folder(repository: &Repository, path: &str) -> Result<bool, Error> {
    Ok(repository.keys(records::files_in(path)).page(1).next().transpose()?.is_some())
}
