//! Companion files of a distribution file. A companion has the name of the file and an additional
//! extension.

use crate::listed_name::ListedKind;

/// The file that a request addresses: the distribution file itself or a companion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilePart {
    File,
    Metadata,
    Signature,
    Provenance,
}

impl FilePart {
    const BESIDE: [(&'static str, Self); 3] =
        [(".metadata", Self::Metadata), (".asc", Self::Signature), (".provenance", Self::Provenance)];

    /// Splits a requested name into the name of the distribution file and the part.
    pub(crate) fn of(name: &str) -> (&str, Self) {
        let beside = |(end, part)| Some((name.strip_suffix(end)?, part));
        Self::BESIDE.into_iter().find_map(beside).unwrap_or((name, Self::File))
    }
}

/// Returns the `Content-Type` of a file.
pub(crate) fn media_type(filename: &str) -> &'static str {
    ListedKind::of(filename).map_or("application/octet-stream", |kind| kind.media_type)
}
