//! Operations of the management API on versions: deleting, deprecating and restoring.

use crate::delete::{self, key_of, missing};
use crate::records::{self, PackageRecord};
use crate::{Composer, busy};
use packhouse_sdk::{Context, Expectation, Failure, Upkeep, VersionId};

impl Upkeep for Composer {
    fn delete_version(cx: &Context, id: &VersionId) -> Result<(), Failure> {
        delete::remove(cx.target()?, &id.name, &id.version)
    }

    fn mark_version(cx: &Context, id: &VersionId, state: &str, reason: &str) -> Result<(), Failure> {
        let deprecated = match state {
            "deprecated" => Some(reason.to_owned()),
            "" => None,
            other => {
                let text = format!(
                    "A version of a package can only be deprecated, which Composer calls abandoned; \
                     Composer does not know the state {other}"
                );
                return Err(Failure::new(405, "not_supported", text));
            }
        };
        if reason.chars().count() > 1000 || reason.chars().any(char::is_control) {
            return Err(Failure::invalid("The reason must be a single line of at most 1,000 characters"));
        }
        let repository = cx.target()?;
        let key = key_of(&id.name, &id.version)?;
        repository.update(busy, |change| {
            let existing = records::find(repository, &id.name, &key, &id.version)?;
            let existing = existing.ok_or_else(|| missing(&id.name, &id.version))?;
            let record = PackageRecord { deprecated: deprecated.clone(), ..existing.value };
            let blobs = std::slice::from_ref(&record.sha256);
            change.put_json(&existing.key, &record, Expectation::Revision(existing.revision), blobs)?;
            change.show(&record.listed_version());
            Ok(())
        })?;
        Ok(())
    }
}
