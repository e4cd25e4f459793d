//! Operations of the management API on versions: deleting, yanking and restoring.

use crate::{RubyGems, delete};
use packhouse_sdk::{Context, Failure, Upkeep, VersionId};

impl Upkeep for RubyGems {
    fn delete_version(cx: &Context, id: &VersionId) -> Result<(), Failure> {
        if delete::remove(cx.target()?, &id.name, &id.version)? {
            Ok(())
        } else {
            Err(delete::missing(&id.name, &id.version))
        }
    }

    fn mark_version(cx: &Context, id: &VersionId, state: &str, reason: &str) -> Result<(), Failure> {
        let yanked = match state {
            "yanked" => Some(reason.to_owned()),
            "" => None,
            other => {
                let text = format!("A gem can only be yanked; its clients do not know the state {other}");
                return Err(Failure::new(405, "not_supported", text));
            }
        };
        if reason.chars().count() > 1000 || reason.chars().any(char::is_control) {
            return Err(Failure::invalid("The reason must be a single line of at most 1,000 characters"));
        }
        delete::mark(cx.target()?, &id.name, &id.version, yanked).map(|_| ())
    }
}
