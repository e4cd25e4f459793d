//! A gem: a tar archive of `metadata.gz`, `data.tar.gz` and `checksums.yaml.gz`. Headers alone are read; what is in the files the host
//! unpacks and hashes where it lies.

use crate::spec::{METADATA, Spec};
use packhouse_sdk::{Blob, Error, Failure, ReadAt};
use std::collections::BTreeMap;

/// Bytes of a block of a tar archive.
const BLOCK: u64 = 512;
/// Files of a gem: those that there are, and a signature for each.
const FILES: usize = 16;
/// Bytes of the list of checksums.
const CHECKSUMS: u64 = 64 << 10;

/// Where a file of a gem lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: u64,
    size: u64,
}

/// What a gem says of itself, once its checksums are those of what it holds.
///
/// # Errors
/// 422 `invalid_gem` for what `gem install` could not unpack, in a sentence.
pub(crate) fn inspect(gem: &Blob) -> Result<Spec, Failure> {
    let files = walk(gem).map_err(Refusal::into_failure)?;
    let at = |name: &str| files.get(name).copied().map(|span| gem.slice(span.start, span.size)).transpose();
    let metadata = at("metadata.gz")?.ok_or_else(|| bad("It has no metadata.gz"))?;
    let data = at("data.tar.gz")?.ok_or_else(|| bad("It has no data.tar.gz"))?;
    if let Some(checksums) = at("checksums.yaml.gz")? {
        verify(
            &unpack(&checksums, CHECKSUMS, "checksums.yaml.gz")?,
            &[("metadata.gz", &metadata), ("data.tar.gz", &data)],
        )?;
    }
    Spec::read(&unpack(&metadata, METADATA, "metadata.gz")?).map_err(bad)
}

fn unpack(file: &Blob, limit: u64, name: &str) -> Result<Vec<u8>, Failure> {
    let text = file.decode("gzip", limit, &[]).map_err(|error| match error {
        Error::TooLarge(_) => bad(format!("Its {name} unpacks to more than {limit} bytes")),
        Error::Invalid(_) => bad(format!("Its {name} is no gzip file, or a damaged one")),
        other => other.into(),
    })?;
    Ok(text.read_all(limit)?)
}

/// Compares each digest that is listed; one at least must be.
fn verify(list: &[u8], files: &[(&str, &Blob); 2]) -> Result<(), Failure> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_events: 1_000, max_depth: 8, max_documents: 1 },
    };
    let listed: BTreeMap<String, BTreeMap<String, String>> =
        serde_saphyr::from_slice_with_options(list, options)
            .map_err(|_| bad("Its checksums.yaml.gz holds no list of checksums"))?;
    for (name, file) in files {
        let mut compared = false;
        for (known, algorithm) in [("SHA256", "sha256"), ("SHA512", "sha512"), ("SHA1", "sha1")] {
            let Some(said) = listed.get(known).and_then(|files| files.get(*name)) else { continue };
            if file.digest(algorithm)?.hex() != said.to_ascii_lowercase() {
                return Err(bad(format!("The {known} that it lists for {name} is another")));
            }
            compared = true;
        }
        if !compared {
            return Err(bad(format!("It lists no checksum for {name}")));
        }
    }
    Ok(())
}

/// 422 with a sentence for who sent the gem; `gem push` prints it.
pub(crate) fn bad(text: impl Into<String>) -> Failure {
    Failure::new(422, "invalid_gem", format!("This is no gem. {}", text.into()))
}

/// Why an archive is not accepted.
#[derive(Debug)]
pub(crate) enum Refusal {
    Bad(&'static str),
    Host(Error),
}

impl Refusal {
    fn into_failure(self) -> Failure {
        match self {
            Self::Bad(text) => bad(text),
            Self::Host(error) => error.into(),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}

/// The files of a gem by name. RubyGems itself writes plain headers, with neither folders nor long names.
pub(crate) fn walk(gem: &(impl ReadAt + ?Sized)) -> Result<BTreeMap<String, Span>, Refusal> {
    let size = gem.size()?;
    let mut files = BTreeMap::new();
    let mut at = 0;
    while at + BLOCK <= size {
        let header = gem.read_exact_at(at, BLOCK)?;
        if header.iter().all(|byte| *byte == 0) {
            return Ok(files);
        }
        let (name, length) =
            entry(&header).ok_or(Refusal::Bad("It is no tar archive of plain files, or a damaged one"))?;
        at += BLOCK;
        if length > size - at {
            return Err(Refusal::Bad("It breaks off"));
        }
        if files.insert(name, Span { start: at, size: length }).is_some() {
            return Err(Refusal::Bad("It holds one file twice"));
        }
        if files.len() > FILES {
            return Err(Refusal::Bad("It holds more than 16 files"));
        }
        at += length.next_multiple_of(BLOCK);
    }
    Err(Refusal::Bad("It breaks off"))
}

/// Name and size of a plain file; none for another kind of entry, and for what is no header.
fn entry(header: &[u8]) -> Option<(String, u64)> {
    let kind = *header.get(156)?;
    let name = header.get(..100)?.split(|byte| *byte == 0).next()?;
    let said = octal(header.get(148..156)?)?;
    let sum: u64 = header
        .iter()
        .enumerate()
        .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) })
        .sum();
    if !matches!(kind, b'0' | 0) || name.is_empty() || said != sum {
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
        assert_eq!(files["metadata.gz"], Span { start: 512, size: 3 });
        assert_eq!(files["data.tar.gz"], Span { start: 1536, size: 600 });
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
