//! Reader for tar archives. The reader goes from header to header, and reads a content only on
//! request.

use crate::{Error, ReadAt, Window};
use std::borrow::Cow;

/// Size of a block in bytes. A header is one block; contents are padded to whole blocks.
const BLOCK: u64 = 512;
/// Bytes to read at a time. One read contains several headers of small files, and little of a large
/// file's content.
const PIECE: u64 = 16 << 10;
/// Largest number of headers before one entry.
const HEADERS: u32 = 200_000;
/// Largest padding at the end of an archive under strict rules, in bytes. Programs pad archives to
/// the large records of tapes.
const FILLING: u64 = 1 << 20;

/// Rules for accepting an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TarRules {
    /// Accepts only archives that every program reads in the same way. Names are UTF-8. Extended
    /// headers are well formed and apply to one entry. The archive has an end, and no data after
    /// it.
    Strict,
    /// Accepts what installers accept. Names are bytes, malformed parts of extended headers are
    /// ignored, links have no content, and the end may be missing.
    Lenient,
}

/// Reason why an archive cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TarError {
    /// A header is missing or damaged.
    Header,
    /// The size in a header is not a number.
    Size,
    /// An extended header is malformed, or a name is not UTF-8.
    Extended,
    /// An extended header exceeds the limit.
    TooLarge,
    /// There are too many headers before one entry.
    TooMany,
    /// The archive ends within an entry, or without an end marker.
    Truncated,
    /// There is data after the end.
    Trailing,
    /// An error of the host.
    Host(Error),
}

impl From<Error> for TarError {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TarKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A link, a device or an unknown type.
    Other,
}

/// Entry of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TarEntry {
    /// Path as in the archive. Under strict rules, the path is UTF-8.
    pub path: Vec<u8>,
    /// Kind of the entry.
    pub kind: TarKind,
    /// Size of the content in bytes.
    pub size: u64,
    /// Offset of the content in the archive.
    start: u64,
}

impl TarEntry {
    /// Returns the offset of the content in the archive, in bytes, for slicing the archive.
    pub fn offset(&self) -> u64 {
        self.start
    }
}

/// Reader of an archive.
pub struct TarReader<'a, R: ?Sized> {
    archive: Window<'a, R>,
    rules: TarRules,
    /// Largest extended header in bytes.
    header_limit: u64,
    at: u64,
}

impl<'a, R: ReadAt + ?Sized> TarReader<'a, R> {
    /// Starts at the beginning of an archive. `header_limit` is the largest size of an extended
    /// header (a long name or a PAX record) in bytes.
    ///
    /// # Errors
    /// Returns the host's error.
    pub fn new(archive: &'a R, rules: TarRules, header_limit: u64) -> Result<Self, Error> {
        Ok(Self { archive: Window::new(archive, PIECE)?, rules, header_limit, at: 0 })
    }

    /// Returns the next entry, with the values of the extended headers before it; `None` at the
    /// end.
    ///
    /// # Errors
    /// The reason why the archive cannot be read further.
    pub fn next_entry(&mut self) -> Result<Option<TarEntry>, TarError> {
        let mut extended = Extended::default();
        for _ in 0..HEADERS {
            let Some(header) = self.header()? else { return Ok(None) };
            let kind = header.get(156).copied().unwrap_or_default();
            let own_size = number(field(&header, 124, 12), self.rules).ok_or(TarError::Size)?;
            let size = match (kind, self.rules) {
                (b'x' | b'L', _) | (b'g' | b'K', TarRules::Strict) => own_size,
                // A link has no content of its own, even if its header states a size.
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

    /// Returns the content of an entry. The whole content is read into memory, so check its size
    /// first.
    ///
    /// # Errors
    /// [`TarError::Truncated`] if the archive ends within the content; otherwise the host's error.
    pub fn content(&mut self, entry: &TarEntry) -> Result<Vec<u8>, TarError> {
        self.get(entry.start, entry.size)
    }

    fn get(&mut self, offset: u64, length: u64) -> Result<Vec<u8>, TarError> {
        self.archive.get(offset, length)?.map(<[u8]>::to_vec).ok_or(TarError::Truncated)
    }

    /// Returns the next header; `None` at an empty block or, under lenient rules, at the end of the
    /// bytes.
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

    /// Under strict rules, checks that only zeros follow the last entry.
    fn check_end(&mut self, left: u64) -> Result<(), TarError> {
        let strict = self.rules == TarRules::Strict;
        if strict && (left > FILLING || self.get(self.at, left)?.iter().any(|byte| *byte != 0)) {
            return Err(TarError::Trailing);
        }
        Ok(())
    }

    /// Skips a content of this length. The padding of the last content may be missing.
    fn skip(&mut self, length: u64) -> Result<(), TarError> {
        let filled = length.div_ceil(BLOCK).checked_mul(BLOCK);
        let after = filled.and_then(|bytes| self.at.checked_add(bytes));
        let fits = self.at.checked_add(length).is_some_and(|end| end <= self.archive.size());
        self.at = after.filter(|_| fits).ok_or(TarError::Truncated)?;
        Ok(())
    }
}

/// Values of the extended headers before an entry.
#[derive(Default)]
struct Extended {
    path: Option<Vec<u8>>,
    size: Option<u64>,
}

impl Extended {
    /// Reads a long name (`L`), or PAX records for the next entry (`x`) or for all entries (`g`).
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

/// Splits off the first record `LENGTH KEY=VALUE\n`. Returns the record without its length and line
/// end, and the rest.
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

/// Returns the path in a header; a `ustar` header splits it into two parts.
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

/// True if the checksum of the header is right: the sum of its bytes, with blanks in place of the
/// checksum.
fn is_summed(header: &[u8], rules: TarRules) -> bool {
    let place = 148..156;
    let byte = |(at, byte): (usize, &u8)| u64::from(if place.contains(&at) { b' ' } else { *byte });
    number(field(header, 148, 8), rules) == Some(header.iter().enumerate().map(byte).sum())
}

/// Parses octal digits between blanks and NULs, or a big-endian number after a byte 0x80. Under
/// lenient rules, anything may follow the digits.
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
    fn extended_headers_apply_to_the_next_entry() {
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
    fn ambiguous_archives_are_accepted_only_by_lenient_rules() {
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
    fn damaged_archives_are_refused_by_both_rules() {
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
