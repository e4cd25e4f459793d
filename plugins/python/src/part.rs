//! A file's parts: itself, and what goes with it under its name and an ending.

use crate::listed_name::ListedKind;

/// What a request asks for beside a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    File,
    Metadata,
    Signature,
    Provenance,
}

impl Part {
    const BESIDE: [(&'static str, Self); 3] =
        [(".metadata", Self::Metadata), (".asc", Self::Signature), (".provenance", Self::Provenance)];

    /// The file that a name is about, and which part of it.
    pub(crate) fn of(name: &str) -> (&str, Self) {
        let beside = |(end, part)| Some((name.strip_suffix(end)?, part));
        Self::BESIDE.into_iter().find_map(beside).unwrap_or((name, Self::File))
    }
}

/// The `Content-Type` of a file.
pub(crate) fn media_type(filename: &str) -> &'static str {
    ListedKind::of(filename).map_or("application/octet-stream", |kind| kind.media_type)
}
