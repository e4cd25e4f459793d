//! What the management API asks of the format.

use crate::layout::folder_of;
use crate::{Maven, delete};
use packhouse_sdk::{Context, Failure, Upkeep, VersionId};

impl Upkeep for Maven {
    fn delete_version(cx: &Context, id: &VersionId) -> Result<(), Failure> {
        let missing = || Failure::not_found(format!("There is no version {} of {}", id.version, id.name));
        let folder = folder_of(&id.name, &id.version).ok_or_else(missing)?;
        if delete::folder(cx.target()?, &folder, cx.now())? { Ok(()) } else { Err(missing()) }
    }

    fn mark_version(_cx: &Context, _id: &VersionId, _state: &str, _reason: &str) -> Result<(), Failure> {
        let text = "Maven has no word for a version that should not be used: its clients would not see it";
        Err(Failure::new(405, "not_supported", text))
    }
}
