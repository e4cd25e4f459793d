//! What the management API asks of the format: deleting a version, yanking it (PEP 592) and taking that back.

use crate::index::key_of;
use crate::records::{self, VersionRecord, Yanked};
use crate::upload::shown;
use crate::{Python, busy, delete, name};
use packhouse_sdk::{Context, Expectation, Failure, Upkeep, VersionId};

/// Characters of a reason: it stands behind every file of the version in the index.
const REASON: usize = 1000;

impl Upkeep for Python {
    fn delete_version(cx: &Context, id: &VersionId) -> Result<(), Failure> {
        let project = name::project(&id.name).ok_or_else(|| missing(id))?;
        let key = key_of(&id.version);
        if delete::files(cx.target()?, &project, |_, record| key_of(&record.version) == key)? {
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
                    format!("A Python version can be yanked, not {other}: its clients know no other state");
                return Err(Failure::new(405, "not_supported", text));
            }
        };
        if reason.chars().count() > REASON || reason.chars().any(char::is_control) {
            return Err(Failure::invalid("A reason is one line of at most 1,000 characters"));
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
            change.show(&shown(&project, &version.value, yanks.then_some(reason)));
            Ok(())
        })?;
        Ok(())
    }
}

fn missing(id: &VersionId) -> Failure {
    Failure::not_found(format!("There is no version {} of {}", id.version, id.name))
}
