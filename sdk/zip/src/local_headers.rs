//! Local headers of a zip archive. The headers must agree with the directory, and there must be no
//! gaps between the files from the start of the archive to its directory. A program that reads from
//! the start then finds the same files as a program that reads from the end.

use crate::ArchiveError;
use crate::directory::long_sizes;
use crate::entry::{Entry, Method};
use crate::window::{Window, number};
use packhouse_sdk::ReadAt;

/// Flag: the sizes stand after the data.
const SIZES_BEHIND: u64 = 1 << 3;
/// Flags that change how the bytes are read: encryption, sizes after the data, UTF-8.
const READING_FLAGS: u64 = 0b1000_0000_1001;

/// Checks every local header, and sets the offset of the data in each entry. `end` is the offset of
/// the directory.
pub(crate) fn check<R: ReadAt + ?Sized>(
    archive: &mut Window<'_, R>,
    entries: &mut [Entry],
    end: u64,
) -> Result<(), ArchiveError> {
    let mut order: Vec<&mut Entry> = entries.iter_mut().collect();
    order.sort_by_key(|entry| entry.header);
    let starts: Vec<u64> = order.iter().map(|entry| entry.header).chain([end]).collect();
    if starts.first() != Some(&0) {
        return Err(ArchiveError::refused("there is data before its first file"));
    }
    for (entry, next) in order.into_iter().zip(starts.into_iter().skip(1)) {
        header(archive, entry)?;
        let data_end = entry.data.checked_add(entry.packed).filter(|data_end| *data_end <= next);
        let Some(data_end) = data_end else {
            return Err(ArchiveError::refused(format!("its file {} overlaps another", entry.name)));
        };
        behind(archive, entry, data_end, next - data_end)?;
    }
    Ok(())
}

fn header<R: ReadAt + ?Sized>(archive: &mut Window<'_, R>, entry: &mut Entry) -> Result<(), ArchiveError> {
    let differs = || ArchiveError::refused(format!("its file {} has two headers that differ", entry.name));
    let head = archive.get(entry.header, 30)?;
    let (flags, method) = (number::<2>(head, 6), number::<2>(head, 8));
    let (crc, packed, size) = (number::<4>(head, 14), number::<4>(head, 18), number::<4>(head, 22));
    let (name_length, extra_length) = (number::<2>(head, 26), number::<2>(head, 28));
    let same_method = method == if entry.method == Method::Stored { 0 } else { 8 };
    if !head.starts_with(b"PK\x03\x04")
        || !same_method
        || flags & READING_FLAGS != entry.flags & READING_FLAGS
    {
        return Err(differs());
    }
    let rest = archive.get(entry.header + 30, name_length + extra_length)?;
    let (name, extra) = rest.split_at_checked(name_length as usize).unwrap_or_default();
    let [size, packed] = long_sizes(extra, [size, packed])?;
    let behind = flags & SIZES_BEHIND != 0;
    let same = [crc, packed, size] == [u64::from(entry.crc), entry.packed, entry.size];
    let sizes_follow = behind && [crc, packed, size] == [0; 3];
    if name != entry.name.as_bytes() || !(same || sizes_follow) {
        return Err(differs());
    }
    if behind && entry.method == Method::Stored {
        return Err(ArchiveError::refused(format!(
            "the end of its file {} cannot be determined",
            entry.name
        )));
    }
    entry.data = entry.header + 30 + name_length + extra_length;
    Ok(())
}

/// Checks the bytes between a file's data and the next file. There must be none, or only checksum
/// and sizes if the header leaves those out.
fn behind<R: ReadAt + ?Sized>(
    archive: &mut Window<'_, R>,
    entry: &Entry,
    at: u64,
    length: u64,
) -> Result<(), ArchiveError> {
    let unclear = || ArchiveError::refused(format!("there is unexpected data after its file {}", entry.name));
    let expected = entry.flags & SIZES_BEHIND != 0;
    let (skip, wide) = match (expected, length) {
        (false, 0) => return Ok(()),
        (true, 12) => (0, false),
        (true, 16) => (4, false),
        (true, 20) => (0, true),
        (true, 24) => (4, true),
        _ => return Err(unclear()),
    };
    let bytes = archive.get(at, length)?;
    let signed = skip == 0 || bytes.starts_with(b"PK\x07\x08");
    let [packed, size] = if wide {
        [number::<8>(bytes, skip + 4), number::<8>(bytes, skip + 12)]
    } else {
        [number::<4>(bytes, skip + 4), number::<4>(bytes, skip + 8)]
    };
    let same = [number::<4>(bytes, skip), packed, size] == [u64::from(entry.crc), entry.packed, entry.size];
    if signed && same { Ok(()) } else { Err(unclear()) }
}
