//! Gems of hosted repositories.

use crate::compact;
use crate::records::{self, GemRecord};
use packhouse_sdk::{Context, Error, Failure, Repository};
use std::collections::BTreeSet;

/// Returns all versions in hosted repositories whose record keys start with `prefix`, in the order
/// of their pushes. Yanked versions are included. If two repositories have the same version of a
/// gem, the result contains the version of the first repository.
pub(crate) fn hosted(cx: &Context, prefix: &str) -> Result<Vec<GemRecord>, Failure> {
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    for repository in cx.hosted()? {
        for entry in repository.scan(prefix) {
            let entry = entry?.json::<GemRecord>()?;
            if known.insert(entry.key) {
                found.push(entry.value);
            }
        }
    }
    compact::sort(&mut found);
    Ok(found)
}

/// Finds the version whose file name has this stem. Returns `None` if the version is yanked.
pub(crate) fn by_stem(repository: &Repository, stem: &str) -> Result<Option<GemRecord>, Error> {
    Ok(records::by_stem(repository, stem)?.filter(|record| record.yanked.is_none()))
}
