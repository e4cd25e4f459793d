//! Requests of the management API: deleting a version, deprecating it and taking that back.

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
                    "A package's version can be deprecated, which Composer calls abandoned, not \
                     {other}: it knows no other state"
                );
                return Err(Failure::new(405, "not_supported", text));
            }
        };
        if reason.chars().count() > 1000 || reason.chars().any(char::is_control) {
            return Err(Failure::invalid("A reason is one line of at most 1,000 characters"));
        }
        let repository = cx.target()?;
        let key = key_of(&id.name, &id.version)?;
        repository.update(busy, |change| {
            let there = records::find(repository, &id.name, &key, &id.version)?;
            let there = there.ok_or_else(|| missing(&id.name, &id.version))?;
            let record = PackageRecord { deprecated: deprecated.clone(), ..there.value };
            let blobs = std::slice::from_ref(&record.sha256);
            change.put_json(&there.key, &record, Expectation::Revision(there.revision), blobs)?;
            change.show(&record.shown());
            Ok(())
        })?;
        Ok(())
    }
}
