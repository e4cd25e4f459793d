//! Deletion of a version. Its number stays marked as used. The deletion of a crate's last version
//! also removes the crate.

use crate::busy;
use crate::name::Name;
use crate::records::{self, VersionRecord, missing_version};
use packhouse_sdk::{Expectation, Failure, Repository, VersionId};

/// Removes a version with its file.
pub(crate) fn version(repository: &Repository, name: &Name, number: &str) -> Result<(), Failure> {
    repository.update(busy, |change| {
        let entry = VersionRecord::find(repository, name, number)?;
        let entry = entry.ok_or_else(|| missing_version(name.as_str(), number))?;
        let a_crate = repository.get(&records::a_crate(name))?;
        let all: Vec<String> =
            repository.keys(records::versions(name)).page(2).take(2).collect::<Result<_, _>>()?;
        change.remove(&entry.key, Expectation::Revision(entry.revision));
        let deleted = entry.key.replacen("v/", "d/", 1);
        change.put(&deleted, b"", Expectation::Anything, &[]);
        if let Some(a_crate) = a_crate {
            // A concurrent publish writes the record of the crate again. This commit is then stale
            // and is tried again.
            let expect = Expectation::Revision(a_crate.revision);
            if all.len() == 1 {
                change.remove(&a_crate.key, expect)
            } else {
                change.require(&a_crate.key, expect)
            };
        }
        change.hide(&VersionId::new(name.as_str(), number));
        Ok(())
    })?;
    Ok(())
}
