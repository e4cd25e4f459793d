//! What a zip's directory says of one file.

/// How a file is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Stored,
    Deflated,
}

/// A file or a folder of an archive.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// A folder's ends with a slash.
    pub(super) name: String,
    pub(super) method: Method,
    pub(super) flags: u64,
    pub(super) crc: u32,
    /// Bytes in the archive.
    pub(super) packed: u64,
    /// Bytes unpacked.
    pub(super) size: u64,
    /// Where its header begins.
    pub(super) header: u64,
    /// Where its data begin.
    pub(super) data: u64,
}
