//! A tar archive, walked from header to header: contents are skipped unless they are asked for.

use crate::{Error, ReadAt, Window};
use std::borrow::Cow;

/// Bytes of a block: headers are one, contents are filled up to whole ones.
const BLOCK: u64 = 512;
/// Bytes that are read at once: some headers of small files, and not much of a large file's content.
const PIECE: u64 = 16 << 10;
/// Headers that may stand before one entry.
const HEADERS: u32 = 200_000;
/// Zeros that may fill a strict archive's end: the records of tapes were large.
const FILLING: u64 = 1 << 20;

/// What is accepted as an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TarRules {
    /// What every program reads alike: names are UTF-8, extended headers are well formed and speak of one entry, the archive has an end,
    /// and nothing stands behind it.
    Strict,
    /// What installers get along with: names are bytes, what is odd in an extended header is passed over, links have no content, the
    /// end may be missing.
    Lenient,
}

/// Why an archive cannot be walked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TarError {
    /// A header is none, or damaged.
    Header,
    /// A header's size is no number.
    Size,
    /// An extended header is malformed, or a name is not UTF-8.
    Extended,
    /// An extended header is larger than the limit.
    TooLarge,
    /// There are too many headers before one entry.
    TooMany,
    /// The archive ends within an entry, or without an end.
    Truncated,
    /// Something stands behind its end.
    Trailing,
    /// The host's.
    Host(Error),
}

impl From<Error> for TarError {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TarKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A link, a device, or what nobody knows.
    Other,
}

/// An entry of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TarEntry {
    /// As the archive has it. UTF-8 by strict rules.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: TarKind,
    /// Bytes of its content.
    pub size: u64,
    /// Offset of its content in the archive.
    start: u64,
}

impl TarEntry {
    /// Offset of its content in the archive, in bytes: for a slice of it.
    pub fn offset(&self) -> u64 {
        self.start
    }
}

/// A walk through an archive.
pub struct TarReader<'a, R: ?Sized> {
    archive: Window<'a, R>,
    rules: TarRules,
    /// Bytes of an extended header.
    header_limit: u64,
    at: u64,
}

impl<'a, R: ReadAt + ?Sized> TarReader<'a, R> {
    /// A walk from the beginning; `header_limit` is the bytes that an extended header may have, a long name or a record of PAX.
    ///
    /// # Errors
    /// The host's.
    pub fn new(archive: &'a R, rules: TarRules, header_limit: u64) -> Result<Self, Error> {
        Ok(Self { archive: Window::new(archive, PIECE)?, rules, header_limit, at: 0 })
    }

    /// The next entry, with what headers before it say of it; none at the end.
    ///
    /// # Errors
    /// Why the archive cannot be walked further.
    pub fn next_entry(&mut self) -> Result<Option<TarEntry>, TarError> {
        let mut extended = Extended::default();
        for _ in 0..HEADERS {
            let Some(header) = self.header()? else { return Ok(None) };
            let kind = header.get(156).copied().unwrap_or_default();
            let own_size = number(field(&header, 124, 12), self.rules).ok_or(TarError::Size)?;
            let size = match (kind, self.rules) {
                (b'x' | b'L', _) | (b'g' | b'K', TarRules::Strict) => own_size,
                // A link to elsewhere has no content of its own, whatever its header says.
                (b'1' | b'2', TarRules::Lenient) => 0,
                _ => extended.size.unwrap_or(own_size),
            };
            let start = self.at;
            match (kind, self.rules) {
                (b'x' | b'L', _) | (b'g', TarRules::Strict) => {
                    if size > self.header_limit {
                        return Err(TarError::TooLarge);
                    }
                    let content = self.get(start, size)?;
                    extended.read(kind, &content, self.rules)?;
                    self.skip(size)?;
                }
                (b'g' | b'K', _) => self.skip(size)?,
                _ => {
                    self.skip(size)?;
                    let path = extended.path.map_or_else(|| own_path(&header, self.rules), Ok)?;
                    let kind = match kind {
                        b'0' | 0 | b'7' => TarKind::File,
                        b'5' => TarKind::Folder,
                        _ => TarKind::Other,
                    };
                    return Ok(Some(TarEntry { path, kind, size, start }));
                }
            }
        }
        Err(TarError::TooMany)
    }

    /// An entry's content, all of which is held in memory: look at its size first.
    ///
    /// # Errors
    /// [`TarError::Truncated`] where the archive ends before; else the host's.
    pub fn content(&mut self, entry: &TarEntry) -> Result<Vec<u8>, TarError> {
        self.get(entry.start, entry.size)
    }

    fn get(&mut self, offset: u64, length: u64) -> Result<Vec<u8>, TarError> {
        self.archive.get(offset, length)?.map(<[u8]>::to_vec).ok_or(TarError::Truncated)
    }

    /// The next header; none where the archive ends: by an empty block or, by lenient rules, without one.
    fn header(&mut self) -> Result<Option<Vec<u8>>, TarError> {
        let left = self.archive.size().saturating_sub(self.at);
        let length = match self.rules {
            TarRules::Strict => BLOCK,
            TarRules::Lenient if left == 0 => return Ok(None),
            TarRules::Lenient => left.min(BLOCK),
        };
        let header = self.get(self.at, length)?;
        if header.iter().all(|byte| *byte == 0) {
            return self.check_end(left).map(|()| None);
        }
        if length != BLOCK || !is_summed(&header, self.rules) {
            return Err(TarError::Header);
        }
        self.at += BLOCK;
        Ok(Some(header))
    }

    /// By strict rules there are zeros behind the last entry, and nothing else.
    fn check_end(&mut self, left: u64) -> Result<(), TarError> {
        let strict = self.rules == TarRules::Strict;
        if strict && (left > FILLING || self.get(self.at, left)?.iter().any(|byte| *byte != 0)) {
            return Err(TarError::Trailing);
        }
        Ok(())
    }

    /// Goes behind a content of so many bytes. The last one's filling may be missing.
    fn skip(&mut self, length: u64) -> Result<(), TarError> {
        let filled = length.div_ceil(BLOCK).checked_mul(BLOCK);
        let after = filled.and_then(|bytes| self.at.checked_add(bytes));
        let fits = self.at.checked_add(length).is_some_and(|end| end <= self.archive.size());
        self.at = after.filter(|_| fits).ok_or(TarError::Truncated)?;
        Ok(())
    }
}

/// What headers before an entry say of it.
#[derive(Default)]
struct Extended {
    path: Option<Vec<u8>>,
    size: Option<u64>,
}

impl Extended {
    /// Reads a long name (`L`), or records of PAX for the next entry (`x`) or for all (`g`).
    fn read(&mut self, kind: u8, content: &[u8], rules: TarRules) -> Result<(), TarError> {
        let strict = rules == TarRules::Strict;
        if strict {
            check_utf8(content)?;
        }
        if kind == b'L' {
            let end = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let whole = content.get(..end).unwrap_or_default();
            self.path = Some(if strict { whole } else { until_nul(content) }.to_vec());
            return Ok(());
        }
        let mut rest = content;
        while !rest.is_empty() {
            let Some((record, after)) = record(rest) else {
                return if strict { Err(TarError::Extended) } else { Ok(()) };
            };
            rest = after;
            let equals = record.iter().position(|byte| *byte == b'=');
            let pair = equals.and_then(|at| Some((record.get(..at)?, record.get(at + 1..)?)));
            match pair {
                Some((b"path" | b"size", _)) if kind == b'g' => return Err(TarError::Extended),
                Some((b"path", path)) => self.path = Some(path.to_vec()),
                Some((b"size", size)) => match lossy(size).parse() {
                    Ok(size) => self.size = Some(size),
                    Err(_) if strict => return Err(TarError::Extended),
                    Err(_) => {}
                },
                None if strict => return Err(TarError::Extended),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The first record, `LENGTH KEY=VALUE\n`, without its length and its end, and what follows it.
fn record(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = rest.iter().position(|byte| *byte == b' ')?;
    let length: usize = lossy(rest.get(..blank)?).parse().ok()?;
    let record = rest.get(blank + 1..length)?.strip_suffix(b"\n")?;
    Some((record, rest.get(length..)?))
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn check_utf8(bytes: &[u8]) -> Result<(), TarError> {
    core::str::from_utf8(bytes).map(drop).map_err(|_| TarError::Extended)
}

fn field(header: &[u8], at: usize, length: usize) -> &[u8] {
    header.get(at..at + length).unwrap_or_default()
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The path in a header, of two parts where it is a `ustar` one.
fn own_path(header: &[u8], rules: TarRules) -> Result<Vec<u8>, TarError> {
    let (name, prefix) = (until_nul(field(header, 0, 100)), until_nul(field(header, 345, 155)));
    let magic: &[u8] = match rules {
        TarRules::Strict => b"ustar\0",
        TarRules::Lenient => b"ustar",
    };
    if rules == TarRules::Strict {
        check_utf8(name)?;
        check_utf8(prefix)?;
    }
    let whole = prefix.is_empty() || !field(header, 257, 6).starts_with(magic);
    Ok(if whole { name.to_vec() } else { [prefix, b"/", name].concat() })
}

/// Whether the header's checksum is right: its bytes added up, with blanks in the place of the sum.
fn is_summed(header: &[u8], rules: TarRules) -> bool {
    let place = 148..156;
    let byte = |(at, byte): (usize, &u8)| u64::from(if place.contains(&at) { b' ' } else { *byte });
    number(field(header, 148, 8), rules) == Some(header.iter().enumerate().map(byte).sum())
}

/// Octal digits between blanks and NULs, or a big-endian number behind a byte of 0x80. By lenient rules anything may follow the digits.
fn number(field: &[u8], rules: TarRules) -> Option<u64> {
    if let Some((0x80, rest)) = field.split_first() {
        let (high, low) = rest.split_at_checked(rest.len().checked_sub(8)?)?;
        let low: [u8; 8] = low.try_into().ok()?;
        return high.iter().all(|byte| *byte == 0).then(|| u64::from_be_bytes(low));
    }
    let is_blank = |byte: &u8| *byte == b' ' || *byte == 0;
    let mut pieces = field.split(is_blank).filter(|piece| !piece.is_empty());
    let digits = pieces.next().unwrap_or_default();
    if rules == TarRules::Strict && pieces.next().is_some() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 8)?;
        sum.checked_mul(8)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use packhouse_testkit::tar_archive;
    use proptest::prelude::*;

    fn walk(bytes: &[u8], rules: TarRules) -> Result<Vec<(String, Vec<u8>)>, TarError> {
        let mut reader = TarReader::new(bytes, rules, 1 << 10)?;
        let mut found = Vec::new();
        while let Some(entry) = reader.next_entry()? {
            found.push((lossy(&entry.path).into_owned(), reader.content(&entry)?));
        }
        Ok(found)
    }

    #[test]
    fn extended_headers_speak_of_the_next_entry() {
        let bytes = tar_archive(
            &[
                ("pax", b'x', b"12 path=a/b\n15 comment=...\n"),
                ("cut", b'0', b"1"),
                ("long", b'L', b"c/d\0"),
                ("link", b'K', b"elsewhere"),
                ("cut", b'0', b"2"),
                ("own", 0, b""),
            ],
            1024,
        );
        let expected = [("a/b", "1"), ("c/d", "2"), ("own", "")];
        let expected = expected.map(|(path, content)| (path.to_owned(), content.as_bytes().to_vec()));
        assert_eq!(walk(&bytes, TarRules::Strict), Ok(expected.to_vec()));
        assert_eq!(walk(&bytes, TarRules::Lenient), Ok(expected.to_vec()));
    }

    #[test]
    fn what_programs_read_differently_is_for_the_lenient_alone() {
        let one = tar_archive(&[("a", b'0', b"1")], 0);
        let trailing = [tar_archive(&[("a", b'0', b"1")], 512), vec![1]].concat();
        for (bytes, strict) in [
            (one, TarError::Truncated),
            (trailing, TarError::Trailing),
            (tar_archive(&[("g", b'g', b"10 path=b\n"), ("a", b'0', b"1")], 512), TarError::Extended),
            (tar_archive(&[("x", b'x', b"nonsense"), ("a", b'0', b"1")], 512), TarError::Extended),
            (tar_archive(&[("x", b'x', b"10 size=x\n"), ("a", b'0', b"1")], 512), TarError::Extended),
        ] {
            assert_eq!(walk(&bytes, TarRules::Strict), Err(strict));
            assert_eq!(walk(&bytes, TarRules::Lenient), Ok(vec![("a".to_owned(), b"1".to_vec())]));
        }
    }

    #[test]
    fn what_is_no_archive_is_refused_by_both() {
        for rules in [TarRules::Strict, TarRules::Lenient] {
            let one = tar_archive(&[("a", b'0', b"12")], 512);
            assert_eq!(walk(&one[..513], rules), Err(TarError::Truncated));
            assert_eq!(walk(&[b'x'; 2048], rules), Err(TarError::Header));
            let long = [b'x'; 1 << 11];
            assert_eq!(walk(&tar_archive(&[("l", b'L', &long)], 512), rules), Err(TarError::TooLarge));
        }
    }

    #[test]
    fn sizes_are_octal_or_binary() {
        for (field, strict, lenient) in [
            (&b" 0000017\0"[..], Some(15), Some(15)),
            (b"17 x", None, Some(15)),
            (b"\0\0\0", Some(0), Some(0)),
            (b"18", None, None),
            (b"\x80\0\0\0\0\0\0\0\0\0\x01\0", Some(256), Some(256)),
            (b"\x80\x01\0\0\0\0\0\0\0\0\0\0", None, None),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None, None),
        ] {
            assert_eq!(number(field, TarRules::Strict), strict, "{field:?}");
            assert_eq!(number(field, TarRules::Lenient), lenient, "{field:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_walked(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
            let _ = (walk(&bytes, TarRules::Strict), walk(&bytes, TarRules::Lenient));
        }

        #[test]
        fn any_change_of_an_archive_is_walked(at in 0usize..1536, byte in any::<u8>()) {
            let mut bytes = tar_archive(&[("x", b'x', b"12 path=a/b\n"), ("a", b'0', b"1")], 512);
            bytes[at] = byte;
            let _ = (walk(&bytes, TarRules::Strict), walk(&bytes, TarRules::Lenient));
        }
    }
}
