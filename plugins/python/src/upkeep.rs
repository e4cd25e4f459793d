//! Changes from the management API: deleting, yanking (PEP 592) and unyanking a version.

use crate::index::key_of;
use crate::records::{self, VersionRecord, Yanked};
use crate::upload::listed_version;
use crate::{Python, busy, delete, name};
use packhouse_sdk::{Context, Expectation, Failure, Upkeep, VersionId};

/// Maximum characters of a reason, which the index repeats for every file of the version.
const REASON: usize = 1000;

impl Upkeep for Python {
    fn delete_version(cx: &Context, id: &VersionId) -> Result<(), Failure> {
        let project = name::project(&id.name).ok_or_else(|| missing(id))?;
        let key = key_of(&id.version);
        if delete::remove_files(cx.target()?, &project, |_, record| key_of(&record.version) == key)? {
            Ok(())
        } else {
            Err(missing(id))
        }
    }

    fn mark_version(cx: &Context, id: &VersionId, state: &str, reason: &str) -> Result<(), Failure> {
        let yanks = match state {
            "yanked" => true,
            "" => false,
            other => {
                let text =
                    format!("A Python version can only be yanked; clients do not know the state {other:?}");
                return Err(Failure::new(405, "not_supported", text));
            }
        };
        if reason.chars().count() > REASON || reason.chars().any(char::is_control) {
            return Err(Failure::invalid("The reason must be one line of at most 1,000 characters"));
        }
        let project = name::project(&id.name).ok_or_else(|| missing(id))?;
        let (repository, key) = (cx.target()?, key_of(&id.version));
        repository.update(busy, |change| {
            let version = repository.get_json::<VersionRecord>(&records::version(&project, &key))?;
            let version = version.ok_or_else(|| missing(id))?;
            change.require(&version.key, Expectation::Revision(version.revision));
            let yanked = records::yanked(&project, &key);
            if yanks {
                change.put_json(&yanked, &Yanked { reason: reason.to_owned() }, Expectation::Anything, &[])?
            } else {
                change.remove(&yanked, Expectation::Anything)
            };
            change.show(&listed_version(&project, &version.value, yanks.then_some(reason)));
            Ok(())
        })?;
        Ok(())
    }
}

fn missing(id: &VersionId) -> Failure {
    Failure::not_found(format!("There is no version {} of {}", id.version, id.name))
}
