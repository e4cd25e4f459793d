//! Files of components: `NAME.wasm`, or compressed as `NAME.wasm.zst`, which images ship.

use std::fs::File;
use std::io::{Error, Read};
use std::path::{Path, PathBuf};

use packhouse_store::Sha256;

/// Most bytes of a component.
pub const MAX_COMPONENT_BYTES: usize = 64 << 20;

const ENDINGS: [&str; 2] = [".wasm", ".wasm.zst"];

/// Returns the files of a folder whose names end like a component's, sorted. Returns the system's
/// error.
pub fn component_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if component_name(&path).is_some() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the file's name without its ending, which is usually the format. Returns none if the
/// file name does not end like a component's.
pub fn component_name(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_string_lossy();
    let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending))?;
    Some(stem.to_owned())
}

/// Digest of the component in a file, read in chunks. Returns the error of the system. Blocking.
pub(crate) fn component_digest(file: &Path) -> std::io::Result<Sha256> {
    Sha256::of_reader(open(file)?)
}

/// Reads and decompresses the component in a file. Returns the error of the system, or an error if
/// it has more than [`MAX_COMPONENT_BYTES`]. Blocking.
pub fn read_component(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(file)?.read_to_end(&mut bytes)?;
    if bytes.len() > MAX_COMPONENT_BYTES {
        return Err(Error::other(format!("it has more than {MAX_COMPONENT_BYTES} bytes")));
    }
    Ok(bytes)
}

/// Opens the decompressed content, cut shortly after the largest allowed size.
fn open(file: &Path) -> std::io::Result<Box<dyn Read>> {
    let opened = File::open(file)?;
    let is_compressed = file.extension().is_some_and(|ending| ending == "zst");
    let most = MAX_COMPONENT_BYTES as u64 + 1;
    Ok(if is_compressed {
        Box::new(zstd::Decoder::new(opened)?.take(most))
    } else {
        Box::new(opened.take(most))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_file_is_the_same_component() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        std::fs::write(file("b.wasm"), b"\0asm").unwrap();
        std::fs::write(file("a.wasm.zst"), zstd::encode_all(&b"\0asm"[..], 19).unwrap()).unwrap();
        std::fs::write(file("c.txt"), b"").unwrap();
        let files = component_files(folder.path()).unwrap();
        assert_eq!(files, [file("a.wasm.zst"), file("b.wasm")]);
        for (path, name) in files.iter().zip(["a", "b"]) {
            assert_eq!(read_component(path).unwrap(), b"\0asm");
            assert_eq!(component_digest(path).unwrap(), Sha256::of(b"\0asm"));
            assert_eq!(component_name(path).as_deref(), Some(name));
        }
        assert_eq!(component_name(&file("c.txt")), None);
    }

    #[test]
    fn a_file_that_decompresses_beyond_the_limit_is_refused() {
        let file = tempfile::Builder::new().suffix(".wasm.zst").tempfile().unwrap();
        let zeros = std::io::repeat(0).take(MAX_COMPONENT_BYTES as u64 + 1);
        std::fs::write(file.path(), zstd::encode_all(zeros, 1).unwrap()).unwrap();
        let refused = read_component(file.path()).unwrap_err().to_string();
        assert!(refused.contains("more than"), "{refused}");
        std::fs::write(file.path(), b"no zstd").unwrap();
        assert!(read_component(file.path()).is_err());
    }
}
