//! Gems as hosted repositories have them.

use crate::compact;
use crate::records::{self, GemRecord};
use packhouse_sdk::{Context, Error, Failure, Repository};
use std::collections::BTreeSet;

/// Those of the hosted repositories whose keys begin so, in the order in which they were pushed; of one number in two repositories the
/// first stands. Yanked ones are among them.
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

/// The version that has the file of this stem, unless it is yanked.
pub(crate) fn by_stem(repository: &Repository, stem: &str) -> Result<Option<GemRecord>, Error> {
    Ok(records::by_stem(repository, stem)?.filter(|record| record.yanked.is_none()))
}
