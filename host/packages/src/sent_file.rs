//! The stored file that a response consists of.

use packhouse_runtime::Content;
use packhouse_store::{Algorithm, RepositoryId, Sha256, SmallBlob};

/// A stored file as the content of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentFile {
    /// Repository from which the file was read, such as a member of a group. `None` if the file is
    /// arriving from an upstream.
    pub repository: Option<RepositoryId>,
    /// SHA-256 of the file, if known.
    pub sha256: Option<Sha256>,
    /// Location of the bytes in the store, if the file is small.
    pub small: Option<SmallBlob>,
}

impl SentFile {
    /// Returns the file if this content is a stored file. Returns `None` for content that was made
    /// for the answer.
    pub(crate) fn of(content: &Content) -> Option<SentFile> {
        match content {
            Content::Blob(blob) if blob.made_in_memory().is_some() => None,
            Content::Blob(blob) => {
                let sha256 = blob.known(Algorithm::Sha256).and_then(|digest| digest.sha256());
                Some(SentFile { repository: blob.origin(), sha256, small: blob.small() })
            }
            Content::Arriving(_) => Some(SentFile { repository: None, sha256: None, small: None }),
            Content::None | Content::Inline(_) | Content::Joined(_) => None,
        }
    }
}
