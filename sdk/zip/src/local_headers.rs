//! The headers before each file of a zip: they must say what the directory says, and with their data lie side by side from the
//! archive's beginning to its directory. So a program that reads from the front finds what one finds that reads from the end.

use crate::ArchiveError;
use crate::directory::long_sizes;
use crate::entry::{Entry, Method};
use crate::window::{Window, number};
use packhouse_sdk::ReadAt;

/// The sizes stand behind the data.
const SIZES_BEHIND: u64 = 1 << 3;
/// Encryption, sizes behind the data, UTF-8: what changes how the bytes are read.
const TELLING: u64 = 0b1000_0000_1001;

/// Checks every header, and says in each entry where its data begin. `end` is where the directory begins.
pub(crate) fn check<R: ReadAt + ?Sized>(
    archive: &mut Window<'_, R>,
    entries: &mut [Entry],
    end: u64,
) -> Result<(), ArchiveError> {
    let mut order: Vec<&mut Entry> = entries.iter_mut().collect();
    order.sort_by_key(|entry| entry.header);
    let starts: Vec<u64> = order.iter().map(|entry| entry.header).chain([end]).collect();
    if starts.first() != Some(&0) {
        return Err(ArchiveError::refused("something stands before its first file"));
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
    if !head.starts_with(b"PK\x03\x04") || !same_method || flags & TELLING != entry.flags & TELLING {
        return Err(differs());
    }
    let rest = archive.get(entry.header + 30, name_length + extra_length)?;
    let (name, extra) = rest.split_at_checked(name_length as usize).unwrap_or_default();
    let [size, packed] = long_sizes(extra, [size, packed])?;
    let behind = flags & SIZES_BEHIND != 0;
    let same = [crc, packed, size] == [u64::from(entry.crc), entry.packed, entry.size];
    let said_later = behind && [crc, packed, size] == [0; 3];
    if name != entry.name.as_bytes() || !(same || said_later) {
        return Err(differs());
    }
    if behind && entry.method == Method::Stored {
        return Err(ArchiveError::refused(format!("where its file {} ends cannot be told", entry.name)));
    }
    entry.data = entry.header + 30 + name_length + extra_length;
    Ok(())
}

/// What stands between a file's data and what comes next: nothing, or its sizes where the header left them out.
fn behind<R: ReadAt + ?Sized>(
    archive: &mut Window<'_, R>,
    entry: &Entry,
    at: u64,
    length: u64,
) -> Result<(), ArchiveError> {
    let unclear = || ArchiveError::refused(format!("something else stands behind its file {}", entry.name));
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
