//! Operations of the management API on versions: deleting, deprecating and restoring.

use crate::records::{self, ChartRecord};
use crate::{Helm, api, busy, delete, name, upload};
use packhouse_sdk::{Context, Expectation, Failure, Upkeep, VersionId};

impl Upkeep for Helm {
    fn delete_version(cx: &Context, id: &VersionId) -> Result<(), Failure> {
        if delete::remove(cx.target()?, &id.name, &id.version)? {
            Ok(())
        } else {
            Err(api::missing(&id.name, &id.version))
        }
    }

    fn mark_version(cx: &Context, id: &VersionId, state: &str, reason: &str) -> Result<(), Failure> {
        let deprecated = match state {
            "deprecated" => Some(reason.to_owned()),
            "" => None,
            other => {
                let text = format!("A chart can only be deprecated; Helm does not know the state {other}");
                return Err(Failure::new(405, "not_supported", text));
            }
        };
        if reason.chars().count() > 1000 || reason.chars().any(char::is_control) {
            return Err(Failure::invalid("The reason must be a single line of at most 1,000 characters"));
        }
        let missing = || api::missing(&id.name, &id.version);
        if !name::is_name(&id.name) || name::version(&id.version).is_none() {
            return Err(missing());
        }
        let (repository, key) = (cx.target()?, records::version(&id.name, &id.version));
        repository.update(busy, |change| {
            let existing = repository.get_json::<ChartRecord>(&key)?.ok_or_else(missing)?;
            let record = ChartRecord { deprecated: deprecated.clone(), ..existing.value };
            change.put_json(&key, &record, Expectation::Revision(existing.revision), &record.blobs())?;
            upload::list_version(change, &record);
            Ok(())
        })?;
        Ok(())
    }
}
