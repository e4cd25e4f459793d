//! A tar archive, walked from header to header for the one file that is wanted: `NAME-VERSION/PKG-INFO`.

use super::Fault;
use super::window::Window;
use crate::metadata;
use packhouse_sdk::ReadAt;

/// Members of an archive.
const MEMBERS: u32 = 200_000;
/// Bytes of a name, or of the records that stand for one.
const NAME: u64 = 16 << 10;
const BLOCK: u64 = 512;
/// Zeros that may fill the archive's end: the records of tapes were large.
const FILLING: u64 = 1 << 20;

/// The content of `PKG-INFO` in the one folder that holds everything.
pub(super) fn package_info<R: ReadAt + ?Sized>(bytes: &R) -> Result<Vec<u8>, Fault> {
    let mut walk = Walk { archive: Window::new(bytes)?, at: 0, long: Long::default() };
    let mut top: Option<String> = None;
    let mut found: Option<Vec<u8>> = None;
    for _ in 0..MEMBERS {
        let Some(member) = walk.next()? else {
            return found.ok_or_else(|| Fault::refused("it has no file NAME-VERSION/PKG-INFO"));
        };
        let (first, rest) = member.name.split_once('/').unwrap_or((&member.name, ""));
        if *top.get_or_insert_with(|| first.to_owned()) != first || (rest.is_empty() && !member.folder) {
            return Err(Fault::refused("its files do not all lie in one folder NAME-VERSION"));
        }
        if rest != "PKG-INFO" {
            continue;
        }
        if found.is_some() || !member.file || member.size > metadata::LIMIT {
            return Err(Fault::refused("its PKG-INFO is there twice, is no file or is too large"));
        }
        found = Some(walk.archive.get(member.data, member.size)?.to_vec());
    }
    Err(Fault::refused(format!("it has more than {MEMBERS} members")))
}

/// A member: a file, a folder, a link.
struct Member {
    /// Without a slash at its end.
    name: String,
    file: bool,
    folder: bool,
    size: u64,
    data: u64,
}

/// What a member before this one says of it.
#[derive(Default)]
struct Long {
    name: Option<String>,
    size: Option<u64>,
}

struct Walk<'a, R: ?Sized> {
    archive: Window<'a, R>,
    at: u64,
    long: Long,
}

impl<R: ReadAt + ?Sized> Walk<'_, R> {
    fn next(&mut self) -> Result<Option<Member>, Fault> {
        loop {
            let head = self.archive.get(self.at, BLOCK)?.to_vec();
            if head.iter().all(|byte| *byte == 0) {
                return self.end().map(|()| None);
            }
            check_sum(&head)?;
            let kind = head.get(156).copied().unwrap_or_default();
            let own_size = octal(field(&head, 124, 12)).ok_or_else(damaged)?;
            let data = self.at + BLOCK;
            let size = match kind {
                b'x' | b'g' | b'L' | b'K' => own_size,
                _ => self.long.size.unwrap_or(own_size),
            };
            let blocks = size.div_ceil(BLOCK).checked_mul(BLOCK);
            let next = blocks.and_then(|length| data.checked_add(length)).ok_or_else(damaged)?;
            self.at = next;
            match kind {
                b'x' | b'g' | b'L' => self.remember(kind, data, size)?,
                b'K' => {}
                _ => return self.member(&head, kind, data, size).map(Some),
            }
        }
    }

    fn member(&mut self, head: &[u8], kind: u8, data: u64, size: u64) -> Result<Member, Fault> {
        let long = core::mem::take(&mut self.long);
        let name = match long.name {
            Some(name) => name,
            None => short_name(head)?,
        };
        let name = name.strip_prefix("./").unwrap_or(&name).trim_end_matches('/').to_owned();
        let harmless = name.split('/').all(|segment| !matches!(segment, "" | "." | ".."))
            && !name.contains(|symbol: char| symbol.is_control() || symbol == '\\');
        let folder = kind == b'5';
        if !harmless {
            return Err(Fault::refused(format!("{name:?} is no name for a file in an archive")));
        }
        Ok(Member { name, file: matches!(kind, b'0' | 0 | b'7'), folder, size, data })
    }

    /// A longer name, or a larger size, for what follows.
    fn remember(&mut self, kind: u8, data: u64, size: u64) -> Result<(), Fault> {
        if size > NAME {
            return Err(Fault::refused("a name in it is too long"));
        }
        let bytes = self.archive.get(data, size)?;
        let text = core::str::from_utf8(bytes).map_err(|_| damaged())?;
        if kind == b'L' {
            self.long.name = Some(text.trim_end_matches('\0').to_owned());
            return Ok(());
        }
        let mut rest = text;
        while !rest.is_empty() {
            let (length, _) = rest.split_once(' ').ok_or_else(damaged)?;
            let length: usize = length.parse().map_err(|_| damaged())?;
            let (record, after) = rest.split_at_checked(length.max(1)).ok_or_else(damaged)?;
            rest = after;
            let pair = record.split_once(' ').and_then(|(_, pair)| pair.strip_suffix('\n')?.split_once('='));
            match pair.ok_or_else(damaged)? {
                ("path" | "size", _) if kind == b'g' => return Err(damaged()),
                ("path", value) => self.long.name = Some(value.to_owned()),
                ("size", value) => self.long.size = Some(value.parse().map_err(|_| damaged())?),
                _ => {}
            }
        }
        Ok(())
    }

    /// Behind the last member there are zeros and nothing else.
    fn end(&mut self) -> Result<(), Fault> {
        let left = self.archive.size() - self.at;
        if left > FILLING || self.archive.get(self.at, left)?.iter().any(|byte| *byte != 0) {
            return Err(Fault::refused("something stands behind its end"));
        }
        Ok(())
    }
}

fn damaged() -> Fault {
    Fault::refused("the tar archive in it is damaged")
}

fn field(head: &[u8], at: usize, length: usize) -> &[u8] {
    head.get(at..at + length).unwrap_or_default()
}

/// Up to its first zero.
fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn short_name(head: &[u8]) -> Result<String, Fault> {
    let name = core::str::from_utf8(text(field(head, 0, 100))).map_err(|_| damaged())?;
    let posix = field(head, 257, 6) == b"ustar\0";
    let prefix = core::str::from_utf8(text(field(head, 345, 155))).map_err(|_| damaged())?;
    Ok(if posix && !prefix.is_empty() { format!("{prefix}/{name}") } else { name.to_owned() })
}

/// A number in octal digits, or in binary where the first bit is set.
fn octal(field: &[u8]) -> Option<u64> {
    if field.first()? & 0x80 != 0 {
        let bytes = field.get(field.len() - 8..)?;
        let high = field.get(1..field.len() - 8)?.iter().all(|byte| *byte == 0);
        return high.then(|| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)));
    }
    let digits = core::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

/// The sum of the header's bytes, with blanks in the sum's own place.
fn check_sum(head: &[u8]) -> Result<(), Fault> {
    let blank = |at: usize| (148..156).contains(&at);
    let sum: u64 =
        head.iter().enumerate().map(|(at, byte)| if blank(at) { 32 } else { u64::from(*byte) }).sum();
    if octal(field(head, 148, 8)) == Some(sum) { Ok(()) } else { Err(damaged()) }
}
