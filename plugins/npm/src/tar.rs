//! The archive within a tarball: its own `package.json`, found by reading headers alone.
//!
//! Installers drop the first folder of every path and take the last file of a name. What they would find must be what the
//! registry was told, or a package could show one face here and another on disk.

use packhouse_sdk::{Error, ReadAt};
use std::borrow::Cow;

/// Bytes of a block: headers are one, contents are filled up to whole ones.
const BLOCK: u64 = 512;
/// Entries of an archive.
const ENTRIES: u32 = 200_000;
/// What says what a package is.
const PACKAGE_JSON: &[u8] = b"package.json";
/// Bytes of a `package.json`, and of an extended header.
const SMALL: u64 = 1 << 20;

/// Why an archive is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The publisher's fault, in words.
    Bad(&'static str),
    /// The host's.
    Host(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}

/// The bytes of the package's own `package.json`.
///
/// # Errors
/// [`Refusal::Bad`] for what is no archive, one without a `package.json` or with more than one, and one with too many entries.
pub(crate) fn package_json(archive: &impl ReadAt) -> Result<Vec<u8>, Refusal> {
    let mut walk = Walk { archive, at: 0, size: archive.size()? };
    let (mut found, mut seen) = (None, false);
    for _ in 0..ENTRIES {
        let Some(entry) = walk.next()? else {
            return found.ok_or(Refusal::Bad("it holds no package.json"));
        };
        let Some(name) = name_at_first_level(&entry.path) else { continue };
        if !name.eq_ignore_ascii_case(PACKAGE_JSON) {
            continue;
        }
        // On many a disk two names that differ in their case alone are one file.
        if seen {
            return Err(Refusal::Bad("it holds package.json more than once"));
        }
        seen = true;
        if name != PACKAGE_JSON {
            continue;
        }
        if !entry.is_file || entry.length > SMALL {
            return Err(Refusal::Bad("its package.json is no file of at most 1 MiB"));
        }
        found = Some(archive.read_exact_at(entry.start, entry.length)?);
    }
    Err(Refusal::Bad("it holds more than 200,000 entries"))
}

/// The name of a file of the archive's first level, as installers see it: whatever its folder is called.
fn name_at_first_level(path: &[u8]) -> Option<&[u8]> {
    let parts: Vec<&[u8]> =
        path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").collect();
    match parts.as_slice() {
        [_, file] => Some(file),
        _ => None,
    }
}

struct Entry {
    path: Vec<u8>,
    is_file: bool,
    start: u64,
    length: u64,
}

struct Walk<'a, A> {
    archive: &'a A,
    at: u64,
    size: u64,
}

impl<A: ReadAt> Walk<'_, A> {
    /// The next entry, with what headers before it say of it; none at the end.
    fn next(&mut self) -> Result<Option<Entry>, Refusal> {
        let (mut path, mut length) = (None, None);
        for _ in 0..ENTRIES {
            let Some(header) = self.header()? else { return Ok(None) };
            let own = number(header.get(124..136).unwrap_or_default())
                .ok_or(Refusal::Bad("a size in it is no number"))?;
            let kind = header.get(156).copied().unwrap_or_default();
            if let b'x' | b'L' = kind {
                let content = self.small(own)?;
                match kind {
                    b'L' => path = Some(until_nul(&content).to_vec()),
                    _ => extended(&content, &mut path, &mut length),
                }
                continue;
            }
            // A link to elsewhere has no content of its own, whatever its header says.
            let stored = if matches!(kind, b'1' | b'2') { 0 } else { length.unwrap_or(own) };
            let start = self.at;
            self.skip(stored)?;
            if let b'g' | b'K' = kind {
                continue;
            }
            let is_file = matches!(kind, b'0' | 0 | b'7');
            return Ok(Some(Entry {
                path: path.unwrap_or_else(|| own_path(&header)),
                is_file,
                start,
                length: stored,
            }));
        }
        Err(Refusal::Bad("it holds too many headers"))
    }

    /// The next header; none where the archive ends, by an empty block or without one.
    fn header(&mut self) -> Result<Option<Vec<u8>>, Refusal> {
        if self.at >= self.size {
            return Ok(None);
        }
        let header = self.archive.read_at(self.at, BLOCK as u32)?;
        if header.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        if header.len() as u64 != BLOCK || !summed(&header) {
            return Err(Refusal::Bad("it is no tar archive, or damaged"));
        }
        self.at += BLOCK;
        Ok(Some(header))
    }

    fn small(&mut self, length: u64) -> Result<Vec<u8>, Refusal> {
        if length > SMALL {
            return Err(Refusal::Bad("a header in it is larger than 1 MiB"));
        }
        let content = if self.at + length > self.size {
            return Err(Refusal::Bad("it breaks off"));
        } else {
            self.archive.read_exact_at(self.at, length)?
        };
        self.skip(length)?;
        Ok(content)
    }

    fn skip(&mut self, length: u64) -> Result<(), Refusal> {
        let blocks = length.div_ceil(BLOCK);
        let after = blocks.checked_mul(BLOCK).and_then(|bytes| self.at.checked_add(bytes));
        match after.filter(|_| self.at.checked_add(length).is_some_and(|end| end <= self.size)) {
            Some(after) => self.at = after,
            None => return Err(Refusal::Bad("it breaks off")),
        }
        Ok(())
    }
}

/// Whether the header's checksum is right: its bytes added up, with blanks in the place of the sum.
fn summed(header: &[u8]) -> bool {
    let sum: u64 = header
        .iter()
        .enumerate()
        .map(|(at, byte)| if (148..156).contains(&at) { u64::from(b' ') } else { u64::from(*byte) })
        .sum();
    number(header.get(148..156).unwrap_or_default()) == Some(sum)
}

/// Octal digits between blanks and NULs, or a big-endian number behind a byte of 0x80.
fn number(field: &[u8]) -> Option<u64> {
    if let Some((0x80, rest)) = field.split_first() {
        let (high, low) = rest.split_at_checked(rest.len().checked_sub(8)?)?;
        let low: [u8; 8] = low.try_into().ok()?;
        return high.iter().all(|byte| *byte == 0).then(|| u64::from_be_bytes(low));
    }
    let blank = |byte: &u8| *byte == b' ' || *byte == 0;
    let digits: Vec<u8> = field.iter().copied().skip_while(blank).take_while(|byte| !blank(byte)).collect();
    if digits.is_empty() {
        return Some(0);
    }
    digits.iter().try_fold(0u64, |sum, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 8)?;
        sum.checked_mul(8)?.checked_add(u64::from(digit))
    })
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The path in a header, of two parts where it is a `ustar` one.
fn own_path(header: &[u8]) -> Vec<u8> {
    let name = until_nul(header.get(..100).unwrap_or_default());
    let prefix = match header.get(257..262) {
        Some(b"ustar") => until_nul(header.get(345..500).unwrap_or_default()),
        _ => &[],
    };
    if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() }
}

/// Records of an extended header: `LENGTH KEY=VALUE\n`, of which two matter.
fn extended(content: &[u8], path: &mut Option<Vec<u8>>, length: &mut Option<u64>) {
    let mut rest = content;
    while let Some((record, after)) = record(rest) {
        if let Some(value) = record.strip_prefix(b"path=") {
            *path = Some(value.to_vec());
        } else if let Some(value) = record.strip_prefix(b"size=") {
            *length = lossy(value).parse().ok().or(*length);
        }
        rest = after;
    }
}

fn record(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = rest.iter().position(|byte| *byte == b' ')?;
    let length: usize = lossy(rest.get(..blank)?).parse().ok()?;
    let record = rest.get(blank + 1..length)?.strip_suffix(b"\n")?;
    Some((record, rest.get(length..)?))
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(path: &str, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut header = vec![0u8; 512];
        header[..path.len()].copy_from_slice(path.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[156] = kind;
        header[257..263].copy_from_slice(b"ustar\0");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        header.extend_from_slice(content);
        header.resize(header.len().next_multiple_of(512), 0);
        header
    }

    fn archive(entries: &[(&str, u8, &[u8])]) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            entries.iter().flat_map(|(path, kind, content)| entry(path, *kind, content)).collect();
        bytes.resize(bytes.len() + 1024, 0);
        bytes
    }

    #[test]
    fn the_file_of_the_first_level_is_found_whatever_its_folder_is_called() {
        let long = format!("{}/package.json", "f".repeat(150));
        let pax = format!("{} path={long}\n", long.len() + 10);
        for entries in [
            &[("package/package.json", b'0', &b"{}"[..])][..],
            &[("package/", b'5', b""), ("package/a/package.json", b'0', b"no"), ("x/package.json", 0, b"{}")],
            &[("./package/package.json", b'0', b"{}"), ("package.json", b'0', b"no")],
            &[("pax", b'x', pax.as_bytes()), ("cut", b'0', b"{}")],
            &[("long", b'L', b"package/package.json\0"), ("cut", b'0', b"{}")],
            &[("g", b'g', b"12 comment=x\n"), ("package/package.json", b'0', b"{}")],
        ] {
            assert_eq!(package_json(&archive(entries)), Ok(b"{}".to_vec()), "{entries:?}");
        }
    }

    #[test]
    fn what_could_show_two_faces_is_refused() {
        let two: &[(&str, u8, &[u8])] =
            &[("package/package.json", b'0', b"{}"), ("other/package.json", b'0', b"{}")];
        let case: &[(&str, u8, &[u8])] =
            &[("package/package.json", b'0', b"{}"), ("package/Package.JSON", b'0', b"{}")];
        let link: &[(&str, u8, &[u8])] = &[("package/package.json", b'2', b"")];
        for (bytes, words) in [
            (archive(two), "more than once"),
            (archive(case), "more than once"),
            (archive(link), "no file"),
            (archive(&[]), "no package.json"),
            (b"not a tar at all".to_vec(), "no tar"),
            (vec![b'x'; 2048], "no tar"),
            (archive(two)[..513].to_vec(), "breaks off"),
        ] {
            match package_json(&bytes) {
                Err(Refusal::Bad(said)) => assert!(said.contains(words), "{said} / {words}"),
                other => panic!("{words}: {other:?}"),
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_walked(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
            let _ = package_json(&bytes);
        }

        #[test]
        fn any_change_of_an_archive_is_walked(at in 0usize..1536, byte in any::<u8>()) {
            let mut bytes = archive(&[("package/package.json", b'0', b"{}")]);
            bytes[at] = byte;
            let _ = package_json(&bytes);
        }
    }
}
