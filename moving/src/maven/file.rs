//! Files of a Maven tree that a search has found, and the channel that passes them to the transfer.

use jiff::Timestamp;
use tokio::sync::mpsc::Sender;

use crate::digests::Digests;
use crate::origin::Origin;

/// File extensions of checksum files, with their algorithms.
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

/// Channel for the files that were found.
pub(crate) type FileSender = Sender<MavenFile>;

/// Sends a file to the channel. If the receiver is closed, the file is dropped: the transfer has
/// failed and reports the reason.
pub(crate) async fn send_file(found: &FileSender, file: MavenFile) {
    let _ = found.send(file).await;
}

/// Reports whether a file is the checksum of another one.
pub(crate) fn is_checksum(path: &str) -> bool {
    CHECKSUMS.iter().any(|(ending, _)| path.ends_with(ending))
}
