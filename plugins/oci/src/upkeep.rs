//! The operations of the management API. A version of an image is a tag.

use crate::{Oci, untagged};
use packhouse_sdk::{Context, Failure, Upkeep, VersionId};

impl Upkeep for Oci {
    fn delete_version(cx: &Context, id: &VersionId) -> Result<(), Failure> {
        let repository = cx.target()?;
        let missing = |failure: Failure| match failure.status {
            404 => Failure::not_found(format!("There is no {}:{}", id.name, id.version)),
            _ => failure,
        };
        // A tag contains no colon, so a digest in this place names a manifest without tags.
        if let Ok(digest) = id.version.parse() {
            let next = untagged::delete_untagged(repository, &id.name, &digest).map_err(missing)?;
            return untagged::remove_unreferenced(repository, &id.name, next);
        }
        // The deletion of a version also deletes its content, even if the repository keeps
        // manifests that lose their tag by a push.
        let next = untagged::delete_tag_and_manifests(repository, &id.name, &id.version).map_err(missing)?;
        untagged::remove_unreferenced(repository, &id.name, next)
    }

    fn mark_version(_cx: &Context, _id: &VersionId, _state: &str, _reason: &str) -> Result<(), Failure> {
        Err(Failure::new(405, "not_supported", "Tags of images have no state that can be set"))
    }
}
