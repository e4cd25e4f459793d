//! Entry of a zip's directory.

/// Compression method of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Stored,
    Deflated,
}

/// File or folder of an archive.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Name; a folder's name ends with a slash.
    pub(crate) name: String,
    pub(crate) method: Method,
    pub(crate) flags: u64,
    pub(crate) crc: u32,
    /// Packed size in the archive, in bytes.
    pub(crate) packed: u64,
    /// Unpacked size in bytes.
    pub(crate) size: u64,
    /// Offset of the local header.
    pub(crate) header: u64,
    /// Offset of the packed content.
    pub(crate) data: u64,
}
