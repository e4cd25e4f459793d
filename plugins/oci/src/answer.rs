//! Headers of every response with a manifest, from a hosted repository or from an upstream.

use crate::name::Reference;
use packhouse_sdk::{Digest, Response};

/// Adds the digest and the caching headers. A response by digest never changes; a tag may move.
pub(crate) fn manifest(answer: Response, digest: &Digest, reference: &Reference) -> Response {
    let answer = answer.header("docker-content-digest", digest.as_str());
    match reference {
        Reference::Digest(_) => answer.immutable(),
        Reference::Tag(_) => answer.revalidate(),
    }
}
