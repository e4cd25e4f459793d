//! What a zip's directory says of one file.

/// How a file is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Stored,
    Deflated,
}

/// A file or a folder of an archive.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// A folder's ends with a slash.
    pub(crate) name: String,
    pub(crate) method: Method,
    pub(crate) flags: u64,
    pub(crate) crc: u32,
    /// Bytes in the archive.
    pub(crate) packed: u64,
    /// Bytes unpacked.
    pub(crate) size: u64,
    /// Where its header begins.
    pub(crate) header: u64,
    /// Where its data begin.
    pub(crate) data: u64,
}
