//! End and central directory of a zip archive. The reader is strict: it refuses bytes that another
//! program could read differently.

use crate::ArchiveError;
use crate::entry::{Entry, Method};
use crate::window::{Window, number};
use packhouse_sdk::ReadAt;

/// Size of the end record together with the longest comment.
const TAIL: u64 = 22 + 65_535;
/// Largest number of files in an archive.
const ENTRIES: u64 = 100_000;
/// Largest directory in bytes.
const DIRECTORY: u64 = 16 << 20;
/// Flags that are accepted: compression levels, sizes after the data, and UTF-8. Other flags could
/// change how the bytes are read.
const FLAGS: u64 = 0b1000_0000_1110;
/// Flag: the name is UTF-8.
const UTF8: u64 = 1 << 11;
/// Id of the extra field with 64-bit sizes.
const ZIP64: u64 = 1;
/// Id of the extra field with another name for the same file.
const OTHER_NAME: u64 = 0x7075;

/// Position of the directory, and its number of entries.
#[derive(Debug)]
pub(crate) struct DirectoryPlace {
    pub(crate) start: u64,
    end: u64,
    entries: u64,
}

/// Finds the directory, starting from the archive's end.
pub(crate) fn find<R: ReadAt + ?Sized>(archive: &mut Window<'_, R>) -> Result<DirectoryPlace, ArchiveError> {
    let size = archive.size();
    let tail_start = size.saturating_sub(TAIL);
    let tail = archive.get(tail_start, size - tail_start)?.to_vec();
    let at = tail.windows(4).rposition(|bytes| bytes == b"PK\x05\x06");
    let at = at.ok_or_else(|| ArchiveError::refused("it is not a zip archive: it has no end record"))?;
    let record = tail.get(at..).unwrap_or_default();
    if record.len() < 22 || record.len() as u64 != 22 + number::<2>(record, 20) {
        return Err(ArchiveError::refused("there is data after its end record"));
    }
    let end = tail_start + at as u64;
    let on_other_disks = number::<2>(record, 4) != 0 || number::<2>(record, 6) != 0;
    if on_other_disks || number::<2>(record, 8) != number::<2>(record, 10) {
        return Err(ArchiveError::refused("it is one part of a split archive"));
    }
    let short = [number::<2>(record, 10), number::<4>(record, 12), number::<4>(record, 16)];
    let (long, end) = match long_end(archive, end)? {
        Some((long, end)) => (long, end),
        None => (short, end),
    };
    let stands_for = |short: u64, long: u64, most: u64| short == long || (short == most && long >= most);
    let [entries, length, start] = long;
    let agree = stands_for(short[0], entries, 0xffff)
        && stands_for(short[1], length, 0xffff_ffff)
        && stands_for(short[2], start, 0xffff_ffff);
    if !agree || start.checked_add(length) != Some(end) {
        return Err(ArchiveError::refused("its end record and its directory do not agree"));
    }
    if entries > ENTRIES || length > DIRECTORY {
        return Err(ArchiveError::refused(format!("it has more than {ENTRIES} files")));
    }
    Ok(DirectoryPlace { start, end, entries })
}

/// Reads the 64-bit end record and returns its values and position; `None` if it is missing. The
/// 64-bit record must lie directly before its locator, and the locator directly before the end
/// record at `end`.
fn long_end<R: ReadAt + ?Sized>(
    archive: &mut Window<'_, R>,
    end: u64,
) -> Result<Option<([u64; 3], u64)>, ArchiveError> {
    let Some(locator_at) = end.checked_sub(20) else { return Ok(None) };
    let locator = archive.get(locator_at, 20)?;
    if !locator.starts_with(b"PK\x06\x07") {
        return Ok(None);
    }
    let (disk, at, disks) = (number::<4>(locator, 4), number::<8>(locator, 8), number::<4>(locator, 16));
    let wrong = || ArchiveError::refused("its 64-bit end record is in the wrong place");
    if disk != 0 || disks != 1 || at.checked_add(56) != Some(locator_at) {
        return Err(wrong());
    }
    let record = archive.get(at, 56)?;
    let whole = record.starts_with(b"PK\x06\x06")
        && number::<8>(record, 4) == 44
        && number::<8>(record, 16) == 0
        && number::<8>(record, 24) == number::<8>(record, 32);
    if whole {
        Ok(Some(([number::<8>(record, 32), number::<8>(record, 40), number::<8>(record, 48)], at)))
    } else {
        Err(wrong())
    }
}

/// Returns the directory's entries, in their order.
pub(crate) fn entries<R: ReadAt + ?Sized>(
    archive: &mut Window<'_, R>,
    place: &DirectoryPlace,
) -> Result<Vec<Entry>, ArchiveError> {
    let mut entries = Vec::new();
    let mut at = place.start;
    while at < place.end {
        let (entry, length) = entry(archive, at)?;
        at += length;
        entries.push(entry);
    }
    if at == place.end && entries.len() as u64 == place.entries {
        Ok(entries)
    } else {
        Err(ArchiveError::refused("its directory does not have as many entries as stated"))
    }
}

fn entry<R: ReadAt + ?Sized>(archive: &mut Window<'_, R>, at: u64) -> Result<(Entry, u64), ArchiveError> {
    let head = archive.get(at, 46)?;
    if !head.starts_with(b"PK\x01\x02") {
        return Err(ArchiveError::refused("its directory is damaged"));
    }
    let (flags, method) = (number::<2>(head, 8), number::<2>(head, 10));
    let (crc, disk) = (number::<4>(head, 16) as u32, number::<2>(head, 34));
    let [packed, size, offset] = [number::<4>(head, 20), number::<4>(head, 24), number::<4>(head, 42)];
    let [name_length, extra_length, comment] =
        [number::<2>(head, 28), number::<2>(head, 30), number::<2>(head, 32)];
    let rest = archive.get(at + 46, name_length + extra_length)?;
    let (name, extra) = rest.split_at_checked(name_length as usize).unwrap_or_default();
    let name = file_name(name, flags)?;
    if flags & !FLAGS != 0 || disk != 0 {
        return Err(ArchiveError::refused(format!(
            "its file {name} is encrypted or needs another feature of zip"
        )));
    }
    let method = match method {
        0 => Method::Stored,
        8 => Method::Deflated,
        _ => return Err(ArchiveError::refused(format!("its file {name} is neither stored nor deflated"))),
    };
    let [size, packed, offset] = long_sizes(extra, [size, packed, offset])?;
    if method == Method::Stored && size != packed {
        return Err(ArchiveError::refused(format!(
            "its file {name} is not compressed, but its packed and unpacked sizes differ"
        )));
    }
    let entry = Entry { name, method, flags, crc, packed, size, header: offset, data: 0 };
    Ok((entry, 46 + name_length + extra_length + comment))
}

/// Returns the name of a file. Refuses names that programs could unpack to different paths, or to
/// paths outside the target folder.
fn file_name(bytes: &[u8], flags: u64) -> Result<String, ArchiveError> {
    let text = core::str::from_utf8(bytes).ok().filter(|text| text.is_ascii() || flags & UTF8 != 0);
    let text = text.ok_or_else(|| ArchiveError::refused("it contains a file whose name is not UTF-8"))?;
    let segments = text.strip_suffix('/').unwrap_or(text).split('/');
    let harmless = segments.into_iter().all(|segment| !matches!(segment, "" | "." | ".."))
        && !text.contains(|symbol: char| symbol.is_control() || symbol == '\\');
    if harmless && bytes.len() <= 1024 {
        Ok(text.to_owned())
    } else {
        Err(ArchiveError::refused(format!("{text:?} is not a valid file name in an archive")))
    }
}

/// Replaces values that do not fit into 32 bits by the 64-bit values of the extra field, which are
/// in the order of `values`.
pub(crate) fn long_sizes<const COUNT: usize>(
    extra: &[u8],
    mut values: [u64; COUNT],
) -> Result<[u64; COUNT], ArchiveError> {
    let damaged = || ArchiveError::refused("an extra field of one of its files is damaged");
    let mut rest = extra;
    let mut has_zip64 = false;
    while !rest.is_empty() {
        let length = number::<2>(rest, 2) as usize;
        let (field, after) = rest.split_at_checked(4 + length).ok_or_else(damaged)?;
        rest = after;
        match number::<2>(field, 0) {
            OTHER_NAME => return Err(ArchiveError::refused("one of its files has two names")),
            ZIP64 if has_zip64 => return Err(damaged()),
            ZIP64 => {
                has_zip64 = true;
                let mut at = 4;
                for value in values.iter_mut().filter(|value| **value == 0xffff_ffff) {
                    if at + 8 > field.len() {
                        return Err(damaged());
                    }
                    *value = number::<8>(field, at);
                    at += 8;
                }
            }
            _ => {}
        }
    }
    Ok(values)
}
