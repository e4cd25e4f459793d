//! A file of a tree on its way from whoever found it.

use jiff::Timestamp;
use tokio::sync::mpsc::Sender;

use crate::digests::Digests;
use crate::origin::Origin;

/// Endings of files that hold a checksum of another.
pub(super) const CHECKSUMS: [(&str, &str); 4] =
    [(".sha1", "sha1"), (".sha256", "sha256"), (".sha512", "sha512"), (".md5", "md5")];
/// A file of the source.
#[derive(Clone, Debug)]
pub(crate) struct MavenFile {
    pub(crate) path: String,
    pub(crate) origin: Origin,
    pub(crate) stated: Digests,
    pub(crate) size: Option<u64>,
    pub(crate) published: Option<Timestamp>,
}

/// Where found files go.
pub(crate) type Found = Sender<MavenFile>;

/// Hands a file on. That nobody takes it any more is told by who stopped.
pub(crate) async fn hand_on(found: &Found, file: MavenFile) {
    let _ = found.send(file).await;
}

/// Whether a file is a checksum of another.
pub(crate) fn is_checksum(path: &str) -> bool {
    CHECKSUMS.iter().any(|(ending, _)| path.ends_with(ending))
}
