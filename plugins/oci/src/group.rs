//! Reads of one repository or of a group's members in their order. Which members may serve an image is the host's to say.

use crate::records;
use packhouse_sdk::{Context, Failure, Repository};

/// Whether a hosted repository has anything of an image.
///
/// # Errors
/// The host's.
pub(crate) fn holds(repository: &Repository, image: &str) -> Result<bool, Failure> {
    Ok(repository.keys(records::manifests(image)).page(1).next().transpose()?.is_some())
}

/// The first that one of the repositories answers. A member that cannot be asked ends it, because a later one must not stand in
/// for it; but where the digest is `named`, it is the same wherever it comes from, and the others are asked first.
///
/// # Errors
/// A member's own.
pub(crate) fn first<T>(
    cx: &Context,
    named: bool,
    ask: impl Fn(&Repository) -> Result<Option<T>, Failure>,
) -> Result<Option<T>, Failure> {
    let mut missed = None;
    for repository in cx.sources()? {
        match ask(repository) {
            Ok(Some(answer)) => return Ok(Some(answer)),
            Ok(None) => (),
            Err(failure) if named && failure.status == UNREACHED => missed = missed.or(Some(failure)),
            Err(failure) => return Err(failure),
        }
    }
    missed.map_or(Ok(None), Err)
}

/// The status of an upstream that could not be asked.
const UNREACHED: u16 = 502;
