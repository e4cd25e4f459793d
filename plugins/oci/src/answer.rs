//! What the answers with a manifest have in common, wherever the manifest comes from.

use crate::name::Reference;
use packhouse_sdk::{Digest, Response};

/// Adds what clients read in the head of a manifest's answer. What is named by its digest never changes; a tag may move.
pub(crate) fn manifest(answer: Response, digest: &Digest, reference: &Reference) -> Response {
    let answer = answer.header("docker-content-digest", digest.as_str());
    match reference {
        Reference::Digest(_) => answer.immutable(),
        Reference::Tag(_) => answer.revalidate(),
    }
}
