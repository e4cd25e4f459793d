//! Reads OSV records from a folder, a zip archive, a tar archive (compressed with gzip or not), or
//! a single file. Passes the files on one at a time, so that memory never holds all of them.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::read::{DeflateDecoder, MultiGzDecoder};

use crate::record::MAX_RECORD_BYTES;

/// Maximum number of files in an archive, and maximum depth of nested folders.
const MAX_FILES: u64 = 5_000_000;
const MAX_DEPTH: usize = 16;
/// Size of a zip archive's end record with the longest possible comment, in bytes.
const ZIP_END: u64 = 22 + 65_535;
/// Block size of a tar archive in bytes.
const BLOCK: usize = 512;

/// Receives the name of each file, and its content or the reason why it could not be read. An error
/// from the sink stops the reading.
pub(crate) type RecordSink<'a> = dyn FnMut(&str, Result<String, String>) -> io::Result<()> + 'a;

/// Passes all files at this path whose names end in `.json` to `sink`.
///
/// # Errors
/// Errors of the system and of `sink`, and `InvalidData` for a damaged archive.
pub(crate) fn read(path: &Path, sink: &mut RecordSink<'_>) -> io::Result<()> {
    if path.is_dir() {
        return folder(path, 0, sink);
    }
    let mut file = File::open(path)?;
    let mut start = [0; 4];
    let length = read_some(&mut file, &mut start)?;
    file.seek(SeekFrom::Start(0))?;
    match start.get(..length).unwrap_or_default() {
        [b'P', b'K', ..] => zip(file, sink),
        [0x1f, 0x8b, ..] => tar(BufReader::new(MultiGzDecoder::new(BufReader::new(file))), sink),
        [b'{', ..] => one(&path.display().to_string(), file, sink),
        _ => tar(BufReader::new(file), sink),
    }
}

fn folder(path: &Path, depth: usize, sink: &mut RecordSink<'_>) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(damaged(format!("{}: folders are nested too deeply", path.display())));
    }
    // Sort the entries, so that reports are reproducible.
    let mut entries = std::fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
    let mut entries = entries.by_ref().collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    for entry in entries {
        // Skip symbolic links: they may lead anywhere, even back to this folder.
        let kind = std::fs::symlink_metadata(&entry)?.file_type();
        if kind.is_dir() {
            folder(&entry, depth + 1, sink)?;
        } else if kind.is_file() && is_record(&entry.to_string_lossy()) {
            one(&entry.display().to_string(), File::open(&entry)?, sink)?;
        }
    }
    Ok(())
}

fn is_record(name: &str) -> bool {
    name.len() > 5 && name.get(name.len() - 5..).is_some_and(|end| end.eq_ignore_ascii_case(".json"))
}

fn one(name: &str, content: impl Read, sink: &mut RecordSink<'_>) -> io::Result<()> {
    let text = text(content)?;
    sink(name, text)
}

/// Reads a text within the size limit. The inner error describes what is wrong with the content;
/// the outer error is an I/O error.
fn text(content: impl Read) -> io::Result<Result<String, String>> {
    let mut bytes = Vec::new();
    content.take(MAX_RECORD_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_RECORD_BYTES {
        return Ok(Err(format!("it has more than {MAX_RECORD_BYTES} bytes")));
    }
    Ok(String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()))
}

fn damaged(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

/// Reads until `into` is full or the input ends. Returns the number of bytes read.
fn read_some(from: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = into.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match from.read(rest)? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}

/// Decodes a little-endian number of 2, 4 or 8 bytes.
fn number(bytes: &[u8], at: usize, length: usize) -> io::Result<u64> {
    let part =
        bytes.get(at..at + length).ok_or_else(|| damaged("the archive is truncated within a number"))?;
    Ok(part.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

/// Reads the central directory of a zip archive, and then each record at the offset that the
/// directory states.
fn zip(mut file: File, sink: &mut RecordSink<'_>) -> io::Result<()> {
    let size = file.seek(SeekFrom::End(0))?;
    let (start, count) = zip_directory(&mut file, size)?;
    if count > MAX_FILES {
        return Err(damaged(format!("the archive has {count} files")));
    }
    file.seek(SeekFrom::Start(start))?;
    // A second handle for the directory. Both handles share one file position, so each read seeks
    // first.
    let mut directory = BufReader::new(file.try_clone()?);
    let mut at = start;
    for _ in 0..count {
        directory.seek(SeekFrom::Start(at))?;
        let mut head = [0; 46];
        directory.read_exact(&mut head)?;
        if number(&head, 0, 4)? != 0x0201_4b50 {
            return Err(damaged("the archive's directory is damaged"));
        }
        let lengths = [number(&head, 28, 2)?, number(&head, 30, 2)?, number(&head, 32, 2)?];
        let mut rest = vec![0; usize::try_from(lengths.iter().sum::<u64>()).map_err(io::Error::other)?];
        directory.read_exact(&mut rest)?;
        at += 46 + rest.len() as u64;
        let name = rest.get(..usize::try_from(lengths[0]).unwrap_or(0)).unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        if is_record(&name) {
            let content = zip_content(&mut file, &head, size)?;
            sink(&name, content)?;
        }
    }
    Ok(())
}

/// Returns the offset of the central directory, and its number of files.
fn zip_directory(file: &mut File, size: u64) -> io::Result<(u64, u64)> {
    let from = size.saturating_sub(ZIP_END);
    file.seek(SeekFrom::Start(from))?;
    let mut end = Vec::new();
    file.take(ZIP_END).read_to_end(&mut end)?;
    let at = end.windows(4).rposition(|four| four == b"PK\x05\x06");
    let at = at.ok_or_else(|| damaged("the archive has no directory; it may be truncated"))?;
    let (count, start) = (number(&end, at + 10, 2)?, number(&end, at + 16, 4)?);
    if count < 0xffff && start < 0xffff_ffff {
        return Ok((start, count));
    }
    // ZIP64: a locator precedes the end record.
    let locator = at.checked_sub(20).ok_or_else(|| damaged("the archive has no directory"))?;
    if end.get(locator..locator + 4) != Some(b"PK\x06\x07".as_slice()) {
        return Ok((start, count));
    }
    file.seek(SeekFrom::Start(number(&end, locator + 8, 8)?))?;
    let mut end = [0; 56];
    file.read_exact(&mut end)?;
    if !end.starts_with(b"PK\x06\x06") {
        return Err(damaged("the archive's directory is damaged"));
    }
    Ok((number(&end, 48, 8)?, number(&end, 32, 8)?))
}

/// Reads the content of the file that a directory entry describes.
fn zip_content(file: &mut File, entry: &[u8], size: u64) -> io::Result<Result<String, String>> {
    let (method, crc) = (number(entry, 10, 2)?, number(entry, 16, 4)?);
    let (packed, header) = (number(entry, 20, 4)?, number(entry, 42, 4)?);
    if header == 0xffff_ffff || packed == 0xffff_ffff {
        return Ok(Err(
            "it is stored beyond the first 4 GiB of the archive: unpack the archive and import the folder"
                .to_owned(),
        ));
    }
    file.seek(SeekFrom::Start(header))?;
    let mut head = [0; 30];
    file.read_exact(&mut head)?;
    let data = header + 30 + number(&head, 26, 2)? + number(&head, 28, 2)?;
    if number(&head, 0, 4)? != 0x0403_4b50 || data + packed > size {
        return Err(damaged("the archive is damaged"));
    }
    file.seek(SeekFrom::Start(data))?;
    let part = BufReader::new(file.take(packed));
    let content = match method {
        0 => text(part)?,
        8 => match text(DeflateDecoder::new(part)) {
            Ok(content) => content,
            Err(error) => Err(format!("it is damaged: {error}")),
        },
        other => Err(format!("its compression method {other} is not supported")),
    };
    Ok(content.and_then(|text| {
        let whole = u64::from(crc32fast::hash(text.as_bytes())) == crc;
        if whole { Ok(text) } else { Err("it is damaged: its checksum does not match".to_owned()) }
    }))
}

/// Reads a tar archive from header to header. Skips links, folders and extended headers.
fn tar(mut archive: impl Read, sink: &mut RecordSink<'_>) -> io::Result<()> {
    for _ in 0..MAX_FILES {
        let mut head = [0; BLOCK];
        match read_some(&mut archive, &mut head)? {
            0 => return Ok(()),
            BLOCK => {}
            _ => return Err(damaged("the archive is truncated within a header")),
        }
        if head.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let (name, size, kind) = tar_head(&head)?;
        let mut content = archive.by_ref().take(size);
        if matches!(kind, 0 | b'0') && is_record(&name) {
            let text = text(&mut content)?;
            sink(&name, text)?;
        }
        io::copy(&mut content, &mut io::sink())?;
        if content.limit() > 0 {
            return Err(damaged(format!("the archive is truncated within {name}")));
        }
        let filling = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
        io::copy(&mut archive.by_ref().take(filling), &mut io::sink())?;
    }
    Err(damaged(format!("the archive has more than {MAX_FILES} files")))
}

/// Parses the name, the size and the type of an entry.
fn tar_head(head: &[u8; BLOCK]) -> io::Result<(String, u64, u8)> {
    let digits = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        u64::from_str_radix(text.trim_matches([' ', '\0']), 8).ok()
    };
    let (before, rest) = head.split_at(148);
    let (sum, after) = rest.split_at(8);
    let found: u64 = before.iter().chain(after).map(|byte| u64::from(*byte)).sum::<u64>() + 8 * 32;
    if digits(sum) != Some(found) {
        return Err(damaged("this is not a folder, a zip archive, a tar archive or an OSV record"));
    }
    let size = head.get(124..136).and_then(digits).ok_or_else(|| damaged("a file's size is not a number"))?;
    let name = head.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = String::from_utf8_lossy(name.get(..100).unwrap_or(name)).into_owned();
    Ok((name, size, head.get(156).copied().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder};
    use proptest::prelude::*;
    use std::io::Write as _;

    fn all(path: &Path) -> io::Result<Vec<(String, Result<String, String>)>> {
        let mut found = Vec::new();
        read(path, &mut |name, content| {
            found.push((name.rsplit('/').next().unwrap_or_default().to_owned(), content));
            Ok(())
        })?;
        Ok(found)
    }

    fn u16s(numbers: &[u16]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn u32s(numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn size(bytes: &[u8]) -> u32 {
        u32::try_from(bytes.len()).unwrap()
    }

    fn zipped(files: &[(&str, &str)]) -> Vec<u8> {
        let (mut archive, mut directory) = (Vec::new(), Vec::new());
        for (name, content) in files {
            let mut packer = DeflateEncoder::new(Vec::new(), Compression::default());
            packer.write_all(content.as_bytes()).unwrap();
            let packed = packer.finish().unwrap();
            let at = size(&archive);
            let sizes = u32s(&[crc32fast::hash(content.as_bytes()), size(&packed), size(content.as_bytes())]);
            let name_length = u16::try_from(name.len()).unwrap();
            archive.extend(
                [&b"PK\x03\x04"[..], &u16s(&[20, 0, 8, 0, 0]), &sizes, &u16s(&[name_length, 0])].concat(),
            );
            archive.extend([name.as_bytes(), &packed].concat());
            directory.extend([&b"PK\x01\x02"[..], &u16s(&[20, 20, 0, 8, 0, 0]), &sizes].concat());
            directory.extend([u16s(&[name_length, 0, 0, 0, 0]), u32s(&[0, at])].concat());
            directory.extend(name.as_bytes());
        }
        let (at, count) = (size(&archive), u16::try_from(files.len()).unwrap());
        let end =
            [&b"PK\x05\x06"[..], &u16s(&[0, 0, count, count]), &u32s(&[size(&directory), at]), &u16s(&[0])];
        [archive, directory, end.concat()].concat()
    }

    fn tarred(files: &[(&str, &str)]) -> Vec<u8> {
        let mut archive = Vec::new();
        for (name, content) in files {
            let mut head = [0_u8; BLOCK];
            head[..name.len()].copy_from_slice(name.as_bytes());
            head[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
            head[148..156].copy_from_slice(b"        ");
            head[156] = b'0';
            let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
            head[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
            archive.extend(head);
            archive.extend(content.as_bytes());
            archive.resize(archive.len().next_multiple_of(BLOCK), 0);
        }
        archive.resize(archive.len() + 2 * BLOCK, 0);
        archive
    }

    #[test]
    fn records_are_found_in_folders_and_archives() {
        let home = tempfile::tempdir().unwrap();
        let files = [("a.json", "{\"a\": 1}"), ("notes.txt", "no"), ("b/c.JSON", "{}")];
        let folder = home.path().join("folder");
        std::fs::create_dir_all(folder.join("b")).unwrap();
        for (name, content) in files {
            std::fs::write(folder.join(name), content).unwrap();
        }
        std::fs::write(home.path().join("all.zip"), zipped(&files)).unwrap();
        std::fs::write(home.path().join("all.tar"), tarred(&files)).unwrap();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&tarred(&files)).unwrap();
        std::fs::write(home.path().join("all.tar.gz"), gzip.finish().unwrap()).unwrap();
        for name in ["folder", "all.zip", "all.tar", "all.tar.gz"] {
            let found = all(&home.path().join(name)).unwrap();
            let expected = [
                ("a.json".to_owned(), Ok("{\"a\": 1}".to_owned())),
                ("c.JSON".to_owned(), Ok("{}".to_owned())),
            ];
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(all(&folder.join("a.json")).unwrap().len(), 1);
    }

    #[test]
    fn a_bad_file_is_reported_without_its_neighbours() {
        let home = tempfile::tempdir().unwrap();
        let large = format!("{{{}}}", " ".repeat(MAX_RECORD_BYTES));
        let mut packed = zipped(&[("a.json", &large), ("b.json", "{}")]);
        std::fs::write(home.path().join("a.zip"), &packed).unwrap();
        let found = all(&home.path().join("a.zip")).unwrap();
        assert!(found[0].1.as_ref().unwrap_err().contains("more than") && found[1].1.is_ok());
        // Damage the first checksum in the directory.
        let at = packed.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
        packed[at + 16] ^= 1;
        packed = packed.split_off(0);
        std::fs::write(home.path().join("b.zip"), &packed).unwrap();
        assert!(all(&home.path().join("b.zip")).unwrap()[0].1.is_err());
        std::fs::write(home.path().join("c.zip"), packed.split_at(packed.len() - 30).0).unwrap();
        assert!(all(&home.path().join("c.zip")).is_err());
        std::fs::write(home.path().join("d.tar"), "what is this").unwrap();
        assert!(all(&home.path().join("d.tar")).is_err());
    }

    proptest! {
        #[test]
        fn damaged_archives_do_not_panic(at in any::<prop::sample::Index>(), byte in any::<u8>(), tar in any::<bool>()) {
            let files = [("a.json", "{\"a\": 1}"), ("b.json", "{}")];
            let mut bytes = if tar { tarred(&files) } else { zipped(&files) };
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let home = tempfile::tempdir().unwrap();
            std::fs::write(home.path().join("x"), &bytes).unwrap();
            let _ = all(&home.path().join("x"));
        }
    }
}
