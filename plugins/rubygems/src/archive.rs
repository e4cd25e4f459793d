//! A gem: a tar archive of `metadata.gz`, `data.tar.gz` and `checksums.yaml.gz`. The plugin reads
//! the tar headers, the metadata and the checksums. The host hashes the files inside the gem, so
//! the plugin never reads `data.tar.gz`.

use crate::spec::{METADATA, Spec};
use packhouse_sdk::{Blob, Error, Failure, ReadAt};
use std::collections::BTreeMap;

/// Size of a block of a tar archive, in bytes.
const BLOCK: u64 = 512;
/// The most files in a gem. A signed gem has six: the three files, and a signature for each.
const FILES: usize = 16;
/// Largest list of checksums, in bytes.
const CHECKSUMS: u64 = 64 << 10;

/// Position of a file within a gem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileSpan {
    start: u64,
    size: u64,
}

/// Returns the specification of a gem. If the gem contains checksums, first verifies its files with
/// them.
///
/// # Errors
/// 422 `invalid_gem`, with a sentence for the publisher, if the gem is invalid or damaged.
pub(crate) fn inspect(gem: &Blob) -> Result<Spec, Failure> {
    let files = walk(gem).map_err(ArchiveError::into_failure)?;
    let at = |name: &str| files.get(name).copied().map(|span| gem.slice(span.start, span.size)).transpose();
    let metadata = at("metadata.gz")?.ok_or_else(|| invalid_gem("It has no metadata.gz"))?;
    let data = at("data.tar.gz")?.ok_or_else(|| invalid_gem("It has no data.tar.gz"))?;
    if let Some(checksums) = at("checksums.yaml.gz")? {
        verify(
            &unpack(&checksums, CHECKSUMS, "checksums.yaml.gz")?,
            &[("metadata.gz", &metadata), ("data.tar.gz", &data)],
        )?;
    }
    Spec::read(&unpack(&metadata, METADATA, "metadata.gz")?).map_err(invalid_gem)
}

fn unpack(file: &Blob, limit: u64, name: &str) -> Result<Vec<u8>, Failure> {
    let text = file.decode("gzip", limit, &[]).map_err(|error| match error {
        Error::TooLarge(_) => invalid_gem(format!("Its {name} unpacks to more than {limit} bytes")),
        Error::Invalid(_) => invalid_gem(format!("Its {name} is not a gzip file, or it is damaged")),
        other => other.into(),
    })?;
    Ok(text.read_all(limit)?)
}

/// Compares the two files with their digests in the list of checksums. The list must have at least
/// one digest for each file.
fn verify(list: &[u8], files: &[(&str, &Blob); 2]) -> Result<(), Failure> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_events: 1_000, max_depth: 8, max_documents: 1 },
    };
    let listed: BTreeMap<String, BTreeMap<String, String>> =
        serde_saphyr::from_slice_with_options(list, options)
            .map_err(|_| invalid_gem("Its checksums.yaml.gz does not contain a list of checksums"))?;
    for (name, file) in files {
        let mut compared = false;
        for (known, algorithm) in [("SHA256", "sha256"), ("SHA512", "sha512"), ("SHA1", "sha1")] {
            let Some(stated) = listed.get(known).and_then(|files| files.get(*name)) else { continue };
            if file.digest(algorithm)?.hex() != stated.to_ascii_lowercase() {
                return Err(invalid_gem(format!("The {known} that it lists for {name} does not match")));
            }
            compared = true;
        }
        if !compared {
            return Err(invalid_gem(format!("It lists no checksum for {name}")));
        }
    }
    Ok(())
}

/// Creates a 422 with a sentence for the publisher, which `gem push` prints.
pub(crate) fn invalid_gem(text: impl Into<String>) -> Failure {
    Failure::new(422, "invalid_gem", format!("This is not a valid gem. {}", text.into()))
}

/// The reason why the plugin refuses an archive, or an error of the host.
#[derive(Debug)]
pub(crate) enum ArchiveError {
    Invalid(&'static str),
    Host(Error),
}

impl ArchiveError {
    fn into_failure(self) -> Failure {
        match self {
            Self::Invalid(text) => invalid_gem(text),
            Self::Host(error) => error.into(),
        }
    }
}

impl From<Error> for ArchiveError {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}

/// Finds the position of each file in a gem, by name. Accepts only plain files with short names,
/// because RubyGems writes only such files.
pub(crate) fn walk(gem: &(impl ReadAt + ?Sized)) -> Result<BTreeMap<String, FileSpan>, ArchiveError> {
    let size = gem.size()?;
    let mut files = BTreeMap::new();
    let mut at = 0;
    while at + BLOCK <= size {
        let header = gem.read_exact_at(at, BLOCK)?;
        if header.iter().all(|byte| *byte == 0) {
            return Ok(files);
        }
        let (name, length) = entry(&header)
            .ok_or(ArchiveError::Invalid("It is not a tar archive of plain files, or it is damaged"))?;
        at += BLOCK;
        if length > size - at {
            return Err(ArchiveError::Invalid("It is truncated"));
        }
        if files.insert(name, FileSpan { start: at, size: length }).is_some() {
            return Err(ArchiveError::Invalid("It contains the same file twice"));
        }
        if files.len() > FILES {
            return Err(ArchiveError::Invalid("It contains more than 16 files"));
        }
        at += length.next_multiple_of(BLOCK);
    }
    Err(ArchiveError::Invalid("It is truncated"))
}

/// Reads the name and size of a plain file from its header. Returns `None` for any other entry, and
/// for an invalid header.
fn entry(header: &[u8]) -> Option<(String, u64)> {
    let kind = *header.get(156)?;
    let name = header.get(..100)?.split(|byte| *byte == 0).next()?;
    let checksum = octal(header.get(148..156)?)?;
    let sum: u64 = header
        .iter()
        .enumerate()
        .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) })
        .sum();
    if !matches!(kind, b'0' | 0) || name.is_empty() || checksum != sum {
        return None;
    }
    Some((String::from_utf8(name.to_vec()).ok()?, octal(header.get(124..136)?)?))
}

fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    u64::from_str_radix(text, 8).ok().filter(|_| text.len() <= 12)
}

#[cfg(test)]
mod tests {
    use super::*;
    use packhouse_testkit::tar_archive;
    use proptest::prelude::*;

    #[test]
    fn the_files_of_a_gem_are_found() {
        let gem = tar_archive(&[("metadata.gz", b'0', b"one"), ("data.tar.gz", b'0', &[7; 600])], 1024);
        let files = walk(gem.as_slice()).unwrap();
        assert_eq!(files["metadata.gz"], FileSpan { start: 512, size: 3 });
        assert_eq!(files["data.tar.gz"], FileSpan { start: 1536, size: 600 });
        for bad in [
            tar_archive(&[("a", b'0', b"x"), ("a", b'0', b"y")], 1024),
            tar_archive(&[("a", b'5', b"")], 1024),
            tar_archive(&[("a", b'0', b"x")], 0),
            b"nonsense".repeat(100),
            gem[..1600].to_vec(),
        ] {
            assert!(walk(bad.as_slice()).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_walked(bytes in prop::collection::vec(any::<u8>(), 0..1500)) {
            let _ = walk(bytes.as_slice());
        }
    }
}
