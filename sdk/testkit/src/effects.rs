//! Contents of a repository as text, so that tests can compare the effects of a write.

use std::fmt;

/// Records, blobs and versions of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Keys and values, in key order.
    pub records: Vec<(String, Vec<u8>)>,
    /// Digests and sizes of the stored blobs, in digest order.
    pub blobs: Vec<(String, u64)>,
    /// `NAME VERSION PATH DIGEST` of each listed file, in order. A version without files has no
    /// path and digest.
    pub shown: Vec<String>,
}

impl fmt::Display for Effects {
    /// Writes a line for each item: `record KEY VALUE`, `blob DIGEST SIZE`, `shown …`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, value) in &self.records {
            writeln!(out, "record {key} {}", String::from_utf8_lossy(value))?;
        }
        self.blobs.iter().try_for_each(|(digest, size)| writeln!(out, "blob {digest} {size}"))?;
        self.shown.iter().try_for_each(|line| writeln!(out, "shown {line}"))
    }
}
