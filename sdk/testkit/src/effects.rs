//! What a repository holds, as text: what a write did can be read at a glance, and compared.

use std::fmt;

/// Records, blobs and versions of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Keys and values, in the order of the keys.
    pub records: Vec<(String, Vec<u8>)>,
    /// Digests and sizes of the blobs that it holds, in their order.
    pub blobs: Vec<(String, u64)>,
    /// `NAME VERSION PATH DIGEST` of each file that is shown, in their order; without path and digest where a version has
    /// no file.
    pub shown: Vec<String>,
}

impl fmt::Display for Effects {
    /// A line each: `record KEY VALUE`, `blob DIGEST SIZE`, `shown …`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, value) in &self.records {
            writeln!(out, "record {key} {}", String::from_utf8_lossy(value))?;
        }
        self.blobs.iter().try_for_each(|(digest, size)| writeln!(out, "blob {digest} {size}"))?;
        self.shown.iter().try_for_each(|line| writeln!(out, "shown {line}"))
    }
}
