//! Makes small distributions for tests. Writes zip and tar archives byte by byte, so that tests can
//! also make faulty archives.

#![allow(dead_code, reason = "not every test that includes this file makes everything")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use std::io::Write as _;

/// Faults of a zip archive.
#[derive(Clone, Debug, Default)]
#[allow(dead_code, reason = "not every test that includes this file makes every fault")]
pub(crate) struct Faults {
    /// The local header's name for the first file.
    pub(crate) local_name: Option<&'static str>,
    /// Bytes before the first file.
    pub(crate) before: &'static [u8],
    /// Bytes between the files and the directory.
    pub(crate) between: &'static [u8],
    /// Bytes after the end of the archive.
    pub(crate) behind: &'static [u8],
    /// A number that is added to the number of entries in the end record.
    pub(crate) more_entries: u16,
    /// Flags of all files in addition to the flag for UTF-8.
    pub(crate) flags: u16,
    /// The compression method that all headers state.
    pub(crate) method: Option<u16>,
    /// The CRC-32 that the first file's headers state.
    pub(crate) crc: Option<u32>,
    /// The unpacked size that the first file's headers state.
    pub(crate) size: Option<u32>,
    /// An extra field of the first file.
    pub(crate) extra: &'static [u8],
}

/// Makes a zip archive of these files.
pub(crate) fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    broken_zip(files, &Faults::default())
}

/// Makes a zip archive of these files, with these faults.
pub(crate) fn broken_zip(files: &[(&str, &[u8])], faults: &Faults) -> Vec<u8> {
    let mut bytes = faults.before.to_vec();
    let mut directory = Vec::new();
    for (at, (name, content)) in files.iter().enumerate() {
        let first = at == 0;
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(content).unwrap();
        let packed = encoder.finish().unwrap();
        let (method, data) =
            if packed.len() < content.len() { (8_u16, packed) } else { (0, content.to_vec()) };
        let extra = if first { faults.extra } else { &[] };
        let crc = faults.crc.filter(|_| first).unwrap_or(crc32fast::hash(content));
        let size = faults.size.filter(|_| first).unwrap_or(content.len() as u32);
        let offset = bytes.len() as u32;
        let shared = [
            &(0x800 | faults.flags).to_le_bytes()[..],
            &faults.method.unwrap_or(method).to_le_bytes(),
            &[0, 0, 0x21, 0x5a],
            &crc.to_le_bytes(),
            &(data.len() as u32).to_le_bytes(),
            &size.to_le_bytes(),
        ]
        .concat();
        let local_name = faults.local_name.filter(|_| first).unwrap_or(name);
        bytes.extend(b"PK\x03\x04\x14\x00");
        bytes.extend(&shared);
        bytes.extend((local_name.len() as u16).to_le_bytes());
        bytes.extend((extra.len() as u16).to_le_bytes());
        bytes.extend(local_name.as_bytes());
        bytes.extend(extra);
        bytes.extend(data);
        directory.extend(b"PK\x01\x02\x14\x03\x14\x00");
        directory.extend(&shared);
        directory.extend((name.len() as u16).to_le_bytes());
        directory.extend((extra.len() as u16).to_le_bytes());
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
        directory.extend(extra);
    }
    bytes.extend(faults.between);
    let start = bytes.len() as u32;
    let count = (files.len() as u16 + faults.more_entries).to_le_bytes();
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\x00\x00\x00\x00");
    bytes.extend([count, count].concat());
    bytes.extend((directory.len() as u32).to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0, 0]);
    bytes.extend(faults.behind);
    bytes
}

/// Returns METADATA of a project's version, with additional lines.
pub(crate) fn metadata(name: &str, version: &str, more: &str) -> String {
    format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: About {name}\n{more}")
}

/// Returns the files of a wheel. Its only module contains the version, and its METADATA has
/// additional lines.
pub(crate) fn wheel_files(name: &str, version: &str, more: &str) -> Vec<(String, Vec<u8>)> {
    let module = name.to_lowercase().replace(['-', '.'], "_");
    let folder = format!("{module}-{version}.dist-info");
    let mut files = vec![
        (format!("{module}/__init__.py"), format!("VERSION = {version:?}\n").into_bytes()),
        (format!("{folder}/METADATA"), metadata(name, version, more).into_bytes()),
        (
            format!("{folder}/WHEEL"),
            b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n".to_vec(),
        ),
    ];
    let lines: String = files.iter().map(|(name, _)| format!("{name},,\n")).collect();
    files.push((format!("{folder}/RECORD"), format!("{lines}{folder}/RECORD,,\n").into_bytes()));
    files
}

/// Makes a wheel of a project's version, with these additional files.
pub(crate) fn wheel_with(name: &str, version: &str, more: &[(&str, &[u8])]) -> Vec<u8> {
    let mut files = wheel_files(name, version, "");
    let lines: String = more.iter().map(|(name, _)| format!("{name},,\n")).collect();
    if let Some((_, record)) = files.last_mut() {
        record.extend(lines.into_bytes());
    }
    files.extend(more.iter().map(|(name, content)| ((*name).to_owned(), content.to_vec())));
    zip(&borrowed(&files))
}

/// Makes a wheel of a project's version, with additional lines in its METADATA.
pub(crate) fn wheel(name: &str, version: &str, more: &str) -> Vec<u8> {
    zip(&borrowed(&wheel_files(name, version, more)))
}

/// Makes a wheel of a project's version. `change` edits the files whose names end with `end`.
pub(crate) fn changed_wheel(
    name: &str,
    version: &str,
    end: &str,
    change: impl Fn(Vec<u8>) -> Vec<u8>,
) -> Vec<u8> {
    let mut files = wheel_files(name, version, "");
    for (_, content) in files.iter_mut().filter(|(name, _)| name.ends_with(end)) {
        *content = change(std::mem::take(content));
    }
    zip(&borrowed(&files))
}

/// Borrows the files for [`zip`].
pub(crate) fn borrowed(files: &[(String, Vec<u8>)]) -> Vec<(&str, &[u8])> {
    files.iter().map(|(name, content)| (name.as_str(), content.as_slice())).collect()
}

/// Returns the file name of the wheel that [`wheel`] makes.
pub(crate) fn wheel_name(name: &str, version: &str) -> String {
    format!("{}-{version}-py3-none-any.whl", name.to_lowercase().replace(['-', '.'], "_"))
}

/// Makes a source distribution (`.tar.gz`) of a project's version.
pub(crate) fn sdist(name: &str, version: &str) -> Vec<u8> {
    let top = format!("{}-{version}", name.to_lowercase().replace(['-', '.'], "_"));
    let info = metadata(name, version, "");
    tar_gz(&[(&format!("{top}/PKG-INFO"), info.as_bytes()), (&format!("{top}/setup.cfg"), b"[metadata]\n")])
}

/// Makes a tar archive of these files, compressed with gzip.
pub(crate) fn tar_gz(files: &[(&str, &[u8])]) -> Vec<u8> {
    gzip(&tar(files))
}

/// Compresses bytes with gzip.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Makes a tar archive of these files.
pub(crate) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, content) in files {
        let mut head = vec![0_u8; 512];
        head[..name.len()].copy_from_slice(name.as_bytes());
        head[100..108].copy_from_slice(b"0000644\0");
        head[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        head[148..156].copy_from_slice(b"        ");
        head[156] = b'0';
        head[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes.extend(head);
        bytes.extend(*content);
        bytes.resize(bytes.len().div_ceil(512) * 512, 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}
