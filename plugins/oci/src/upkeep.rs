//! What the management API asks for: a version of an image is a tag.

use crate::{Oci, untagged};
use packhouse_sdk::{Context, Failure, Upkeep, VersionId};

impl Upkeep for Oci {
    fn delete_version(cx: &Context, id: &VersionId) -> Result<(), Failure> {
        let repository = cx.target()?;
        let missing = |failure: Failure| match failure.status {
            404 => Failure::not_found(format!("There is no {}:{}", id.name, id.version)),
            _ => failure,
        };
        // No tag holds a colon: this is a manifest that lost its tags.
        if let Ok(digest) = id.version.parse() {
            let next = untagged::delete_untagged(repository, &id.name, &digest).map_err(missing)?;
            return untagged::drop_all(repository, &id.name, next);
        }
        // Whoever deletes a version means what it holds, whatever becomes of manifests that lose their tag by a push.
        let left = untagged::delete_tag_wholly(repository, &id.name, &id.version).map_err(missing)?;
        untagged::drop_all(repository, &id.name, left)
    }

    fn mark_version(_cx: &Context, _id: &VersionId, _state: &str, _reason: &str) -> Result<(), Failure> {
        Err(Failure::new(405, "not_supported", "An image's tags have no state to mark"))
    }
}
