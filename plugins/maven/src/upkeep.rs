//! Operations of the management API on versions: they can be deleted, but not marked.

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
        let text = "Maven versions cannot be marked, because Maven clients would not show the mark";
        Err(Failure::new(405, "not_supported", text))
    }
}
