//! Tar archives, byte by byte, including those that a well-behaved writer refuses to make.

const NAME: usize = 100;
const SIZE: usize = 124;
const SUM: usize = 148;
const MAGIC: usize = 257;
const BLOCK: usize = 512;

/// Returns a `ustar` entry: its header, and its content padded to a whole block. `kind` is the type
/// in the header (`b'0'` a file, `b'5'` a folder, `b'x'` an extended header). A path is cut after
/// 100 bytes.
fn entry(path: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = path.as_bytes().to_vec();
    bytes.resize(NAME, 0);
    bytes.resize(SIZE, 0);
    bytes.extend(format!("{:011o}", content.len()).as_bytes());
    bytes.resize(SUM, 0);
    bytes.extend(b"        ");
    bytes.push(kind);
    bytes.resize(MAGIC, 0);
    bytes.extend(b"ustar\0");
    bytes.resize(BLOCK, 0);
    let sum: u32 = bytes.iter().map(|byte| u32::from(*byte)).sum();
    bytes.splice(SUM..SUM + 7, format!("{sum:06o}\0").into_bytes());
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes
}

/// Returns an archive of entries (path, kind and content) followed by `end` zero bytes; a complete
/// archive ends with 1,024.
pub fn tar_archive(entries: &[(&str, u8, &[u8])], end: usize) -> Vec<u8> {
    let entries = entries.iter().flat_map(|(path, kind, content)| entry(path, *kind, content));
    let mut bytes: Vec<u8> = entries.collect();
    bytes.resize(bytes.len() + end, 0);
    bytes
}
