//! Zip archives: their entries, and the content of single files. The plugin reads only the
//! directory and the headers; the host decodes compressed content, up to a limit.

use crate::entry::{Entry, Method};
use crate::window::Window;
use crate::{ArchiveError, directory, local_headers, most};
use packhouse_sdk::{Blob, Digest, Error, ReadAt};
use std::collections::HashSet;

/// Zip archive whose central directory and local headers agree.
#[derive(Debug)]
pub struct Archive {
    entries: Vec<Entry>,
}

impl Archive {
    /// Reads the directory and returns the archive. Refuses bytes in which two programs could find
    /// different files.
    ///
    /// # Errors
    /// [`ArchiveError::Refused`] if the bytes are not an archive, or are ambiguous.
    pub fn read<R: ReadAt + ?Sized>(bytes: &R) -> Result<Self, ArchiveError> {
        let mut window = Window::new(bytes)?;
        let place = directory::find(&mut window)?;
        let mut entries = directory::entries(&mut window, &place)?;
        let mut names = HashSet::with_capacity(entries.len());
        for entry in &entries {
            if !names.insert(entry.name.trim_end_matches('/')) {
                return Err(ArchiveError::refused(format!("it contains {} twice", entry.name)));
            }
        }
        drop(names);
        local_headers::check(&mut window, &mut entries, place.start)?;
        Ok(Self { entries })
    }

    /// Returns the names of files and folders.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    /// Returns the names of files.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.names().filter(|name| !name.ends_with('/'))
    }

    /// Returns the files and folders.
    pub fn members(&self) -> impl Iterator<Item = Member<'_>> {
        self.entries.iter().map(Member)
    }

    /// Returns the unpacked size of all files together, in bytes.
    pub fn unpacked(&self) -> u64 {
        self.entries.iter().fold(0, |sum, entry| sum.saturating_add(entry.size))
    }

    /// Returns the unpacked size of a file in bytes; `None` if it does not exist.
    pub fn size_of(&self, name: &str) -> Option<u64> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| entry.size)
    }

    /// Refuses an archive that unpacks to far more than `size`, its own size in bytes.
    ///
    /// # Errors
    /// [`ArchiveError::bomb`] if the archive is refused.
    pub fn check_ratio(&self, size: u64) -> Result<(), ArchiveError> {
        if self.unpacked() > most(size) { Err(ArchiveError::bomb()) } else { Ok(()) }
    }

    /// Returns the content of a file if it has at most `limit` bytes.
    ///
    /// # Errors
    /// [`ArchiveError::Refused`] if the file does not exist, is too large or is damaged.
    pub fn content(&self, blob: &Blob, name: &str, limit: u64) -> Result<Vec<u8>, ArchiveError> {
        let entry = self.entries.iter().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| ArchiveError::refused(format!("it has no file {name}")))?;
        if entry.size > limit {
            return Err(ArchiveError::refused(format!("its file {name} has more than {limit} bytes")));
        }
        let part = blob.slice(entry.data, entry.packed)?;
        let damaged = || ArchiveError::refused(format!("its file {name} is damaged"));
        let content = match entry.method {
            Method::Stored => part.read_all(limit)?,
            Method::Deflated => match part.decode("deflate", entry.size, &[]) {
                Ok(unpacked) => unpacked.read_all(limit)?,
                Err(Error::Invalid(_) | Error::TooLarge(_)) => return Err(damaged()),
                Err(error) => return Err(error.into()),
            },
        };
        let whole = content.len() as u64 == entry.size && crc32fast::hash(&content) == entry.crc;
        if whole { Ok(content) } else { Err(damaged()) }
    }
}

/// File or folder of an archive.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a>(&'a Entry);

impl<'a> Member<'a> {
    /// Returns the name; a folder's name ends with a slash.
    pub fn name(&self) -> &'a str {
        &self.0.name
    }

    /// Returns the unpacked size in bytes.
    pub fn size(&self) -> u64 {
        self.0.size
    }

    /// Returns the digest of the content by this algorithm. The host unpacks the content in pieces,
    /// and the plugin reads none of it. `None` if the content exceeds the host's limit for
    /// unpacking.
    ///
    /// # Errors
    /// [`ArchiveError::Refused`] if the content is damaged, or unpacks to another size than stated.
    pub fn digest(&self, blob: &Blob, algorithm: &str) -> Result<Option<Digest>, ArchiveError> {
        let Entry { name, method, packed, size, data, .. } = self.0;
        let part = blob.slice(*data, *packed)?;
        if *method == Method::Stored {
            return Ok(Some(part.digest(algorithm)?));
        }
        match part.decode("deflate", *size, &[algorithm]) {
            Ok(unpacked) if unpacked.size()? == *size => Ok(Some(unpacked.digest(algorithm)?)),
            // The host has its own limit for unpacked bytes. If the host stopped before the stated
            // size, the true size is unknown.
            Err(Error::TooLarge(came)) if came <= *size => Ok(None),
            Ok(_) | Err(Error::TooLarge(_)) => {
                Err(ArchiveError::refused(format!("its file {name} unpacks to another size than stated")))
            }
            Err(Error::Invalid(_)) => Err(ArchiveError::refused(format!("its file {name} is damaged"))),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wheel;
    use proptest::prelude::*;

    fn names(bytes: &[u8]) -> Option<Vec<String>> {
        match Archive::read(bytes) {
            Ok(archive) => Some(archive.names().map(str::to_owned).collect()),
            Err(ArchiveError::Refused(_)) => None,
            Err(ArchiveError::Host(error)) => panic!("reading failed: {error}"),
        }
    }

    proptest! {
        #[test]
        fn packed_files_are_found(
            files in prop::collection::btree_map("[a-z]{1,6}(/[a-z]{1,6})?x", prop::collection::vec(any::<u8>(), 0..200), 0..8),
        ) {
            let given: Vec<(&str, &[u8])> = files.iter().map(|(name, content)| (name.as_str(), content.as_slice())).collect();
            let expected: Vec<String> = files.keys().cloned().collect();
            let packed = wheel::zip(&given);
            prop_assert_eq!(names(&packed), if files.is_empty() { names(&packed) } else { Some(expected) });
        }

        #[test]
        fn an_archive_with_another_byte_is_refused_or_has_files_within_it(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = wheel::wheel("demo", "1.0", "");
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(archive) = Archive::read(&bytes) {
                for entry in &archive.entries {
                    prop_assert!(entry.data + entry.packed <= bytes.len() as u64);
                }
            }
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200), end in any::<bool>()) {
            let bytes = if end { [&bytes[..], b"PK\x05\x06", &bytes].concat() } else { bytes };
            let _ = names(&bytes);
        }
    }
}
