//! A package's zip: its `composer.json`, found by the directory at its end. The host unpacks it, to a limit.

use packhouse_sdk::{Blob, Error, Failure, ReadAt};

/// Bytes of a composer.json.
const COMPOSER_JSON: u32 = 512 << 10;
/// Entries of a zip, and bytes of its directory.
const ENTRIES: u16 = 60_000;
const DIRECTORY: u64 = 12 << 20;
/// Bytes of what ends a zip, with its longest comment.
const END: u64 = 22;
const COMMENT: u64 = 65_535;

/// A file of the zip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    name: String,
    deflated: bool,
    crc: u32,
    packed: u32,
    size: u32,
    header: u32,
}

/// The bytes of a package's own composer.json.
///
/// # Errors
/// 400 `invalid_package` for what Composer could not unpack.
pub(crate) fn composer_json(zip: &Blob) -> Result<Vec<u8>, Failure> {
    let entry = find(zip).map_err(Refusal::into_failure)?;
    let start = content(zip, &entry).map_err(Refusal::into_failure)?;
    let packed = zip.slice(start, u64::from(entry.packed))?;
    let bytes = if entry.deflated {
        let unpacked = packed.decode("deflate", u64::from(entry.size), &[]).map_err(|error| match error {
            Error::TooLarge(_) | Error::Invalid(_) => bad("Its composer.json is damaged"),
            other => other.into(),
        })?;
        unpacked.read_all(u64::from(COMPOSER_JSON))?
    } else {
        packed.read_all(u64::from(COMPOSER_JSON))?
    };
    if bytes.len() as u64 != u64::from(entry.size) || crc32fast::hash(&bytes) != entry.crc {
        return Err(bad("Its composer.json is damaged"));
    }
    Ok(bytes)
}

/// 400 with a sentence for who sent the zip.
pub(crate) fn bad(text: impl Into<String>) -> Failure {
    Failure::new(400, "invalid_package", format!("This is no zip of a Composer package. {}", text.into()))
}

/// Why a zip is not accepted.
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

const BROKEN: Refusal = Refusal::Bad("It is no zip file, or a damaged one");

/// The composer.json at the top, or in the one folder that all is in.
pub(crate) fn find(zip: &(impl ReadAt + ?Sized)) -> Result<Entry, Refusal> {
    let mut found: Option<Entry> = None;
    let mut twice = false;
    for entry in directory(zip)? {
        let parts: Vec<&str> = entry.name.split('/').collect();
        if entry.name.starts_with('/') || entry.name.contains(['\\', '\0']) || parts.contains(&"..") {
            return Err(Refusal::Bad("A name in it leads out of its folder"));
        }
        if !matches!(parts.as_slice(), ["composer.json"] | [_, "composer.json"]) {
            continue;
        }
        let depth = |entry: &Entry| entry.name.matches('/').count();
        match &found {
            Some(there) if depth(there) < depth(&entry) => {}
            Some(there) if depth(there) == depth(&entry) => twice = true,
            _ => (found, twice) = (Some(entry), false),
        }
    }
    let found = found
        .ok_or(Refusal::Bad("It holds no composer.json, neither at its top nor in a folder right below"))?;
    if twice {
        return Err(Refusal::Bad("It holds more than one composer.json that could be the package's own"));
    }
    if found.size > COMPOSER_JSON || found.packed > COMPOSER_JSON {
        return Err(Refusal::Bad("Its composer.json is larger than 512 KiB"));
    }
    Ok(found)
}

fn directory(zip: &(impl ReadAt + ?Sized)) -> Result<Vec<Entry>, Refusal> {
    let size = zip.size()?;
    let length = size.min(END + COMMENT);
    let tail = zip.read_exact_at(size - length, length)?;
    let at = tail.windows(4).rposition(|four| four == b"PK\x05\x06").ok_or(BROKEN)?;
    let end = tail.get(at..).unwrap_or_default();
    let (count, length, start) = (short(end, 10), long(end, 12), long(end, 16));
    let (Some(count), Some(length), Some(start)) = (count, length, start) else { return Err(BROKEN) };
    if count > ENTRIES || u64::from(length) > DIRECTORY {
        return Err(Refusal::Bad("It holds more than 60,000 files"));
    }
    if u64::from(start) + u64::from(length) > size {
        return Err(BROKEN);
    }
    let bytes = zip.read_exact_at(u64::from(start), u64::from(length))?;
    let mut rest = bytes.as_slice();
    let mut entries = Vec::new();
    for _ in 0..count {
        let (entry, after) = entry(rest).ok_or(BROKEN)?;
        entries.push(entry);
        rest = after;
    }
    Ok(entries)
}

/// A header of the directory, and what stands behind it.
fn entry(bytes: &[u8]) -> Option<(Entry, &[u8])> {
    let method = short(bytes, 10)?;
    let (name, extra, comment) = (short(bytes, 28)?, short(bytes, 30)?, short(bytes, 32)?);
    let encrypted = short(bytes, 8)? & 1 == 1;
    if !bytes.starts_with(b"PK\x01\x02") || encrypted || !matches!(method, 0 | 8) {
        return None;
    }
    let name_end = 46 + usize::from(name);
    let entry = Entry {
        name: String::from_utf8_lossy(bytes.get(46..name_end)?).into_owned(),
        deflated: method == 8,
        crc: long(bytes, 16)?,
        packed: long(bytes, 20)?,
        size: long(bytes, 24)?,
        header: long(bytes, 42)?,
    };
    Some((entry, bytes.get(name_end + usize::from(extra) + usize::from(comment)..)?))
}

/// Where a file's content begins. Its own header must name it as the directory does.
pub(crate) fn content(zip: &(impl ReadAt + ?Sized), entry: &Entry) -> Result<u64, Refusal> {
    let at = u64::from(entry.header);
    let size = zip.size()?;
    if at + 30 > size {
        return Err(BROKEN);
    }
    let header = zip.read_exact_at(at, 30)?;
    let (Some(name), Some(extra)) = (short(&header, 26), short(&header, 28)) else { return Err(BROKEN) };
    let start = at + 30 + u64::from(name) + u64::from(extra);
    if !header.starts_with(b"PK\x03\x04") || start + u64::from(entry.packed) > size {
        return Err(BROKEN);
    }
    let own = zip.read_exact_at(at + 30, u64::from(name))?;
    if own != entry.name.as_bytes() {
        return Err(Refusal::Bad("A file in it has two names"));
    }
    Ok(start)
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{content, find};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_walked(start in prop::collection::vec(any::<u8>(), 0..120), end in prop::collection::vec(any::<u8>(), 18)) {
            let zip = [start.as_slice(), b"PK\x05\x06", end.as_slice()].concat();
            if let Ok(entry) = find(zip.as_slice()) {
                let _ = content(zip.as_slice(), &entry);
            }
        }
    }
}
