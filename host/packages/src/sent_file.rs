//! Which stored file a response is.

use packhouse_runtime::Content;
use packhouse_store::{Algorithm, RepositoryId, Sha256, SmallBlob};

/// A stored file as the content of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentFile {
    /// Where it was read, as in the member of a group; none of what has just come from an upstream.
    pub repository: Option<RepositoryId>,
    /// Of its bytes, where that is known.
    pub sha256: Option<Sha256>,
    /// By which it is read again, where it is small.
    pub small: Option<SmallBlob>,
}

impl SentFile {
    /// The file that this content is; none of what was made for the answer.
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
