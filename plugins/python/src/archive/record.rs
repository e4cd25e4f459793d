//! A wheel's RECORD. It must list exactly the files in the wheel, because some installers trust the
//! RECORD, and others trust the archive. The digests in it must match the files.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use packhouse_sdk::Digest;
use packhouse_zip::ArchiveError;
use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};

/// Digest algorithms that the plugin compares. The plugin ignores digests of other algorithms in a
/// RECORD.
const ALGORITHMS: [&str; 2] = ["sha256", "sha512"];

/// The file list of a RECORD. Entries for the RECORD itself and its signatures are optional and
/// ignored.
#[derive(Debug)]
pub(super) struct WheelRecord {
    own: [String; 3],
    /// Stated digest of each file (`ALGORITHM=VALUE`, or empty), keyed by the file's path.
    rows: HashMap<String, String>,
}

/// A digest in a RECORD.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatedDigest<'a> {
    pub(super) algorithm: &'static str,
    /// The digest in URL-safe Base64, without padding.
    value: &'a str,
}

impl StatedDigest<'_> {
    /// Returns true if `digest` is the stated digest.
    pub(super) fn is_of(&self, digest: &Digest) -> bool {
        URL_SAFE_NO_PAD.encode(digest.bytes()) == self.value
    }
}

impl WheelRecord {
    /// Parses the RECORD in this folder of the wheel.
    pub(super) fn read(lines: &[u8], folder: &str) -> Result<Self, ArchiveError> {
        let text =
            core::str::from_utf8(lines).map_err(|_| ArchiveError::refused("its RECORD is not UTF-8"))?;
        let own = ["RECORD", "RECORD.jws", "RECORD.p7s"].map(|name| format!("{folder}/{name}"));
        let mut record = Self { own, rows: HashMap::new() };
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let (path, digest) =
                row(line).ok_or_else(|| ArchiveError::refused("a line of its RECORD is invalid"))?;
            record.add(path, digest)?;
        }
        Ok(record)
    }

    fn add(&mut self, path: String, digest: &str) -> Result<(), ArchiveError> {
        if self.is_own(&path) {
            return Ok(());
        }
        match self.rows.entry(path) {
            Entry::Vacant(entry) => {
                entry.insert(digest.to_owned());
            }
            Entry::Occupied(known) if known.get() != digest => {
                let text = format!("its RECORD has two digests for its file {}", known.key());
                return Err(ArchiveError::refused(text));
            }
            Entry::Occupied(_) => {}
        }
        Ok(())
    }

    fn is_own(&self, path: &str) -> bool {
        self.own.iter().any(|own| own == path)
    }

    /// Checks that the RECORD lists exactly these files.
    pub(super) fn check_names<'a>(&self, files: impl Iterator<Item = &'a str>) -> Result<(), ArchiveError> {
        let mut missing: HashSet<&str> = self.rows.keys().map(String::as_str).collect();
        for file in files.filter(|file| !self.is_own(file)) {
            if !missing.remove(file) {
                return Err(ArchiveError::refused(format!("its RECORD does not list its file {file}")));
            }
        }
        match missing.into_iter().next() {
            Some(name) => {
                Err(ArchiveError::refused(format!("its RECORD lists {name}, which is not in the wheel")))
            }
            None => Ok(()),
        }
    }

    /// Returns the digest that the RECORD states for a file. `None` if it states no digest, or only
    /// a digest of an algorithm that the plugin does not compare.
    pub(super) fn digest(&self, file: &str) -> Option<StatedDigest<'_>> {
        let (stated, value) = self.rows.get(file)?.split_once('=')?;
        let algorithm = ALGORITHMS.into_iter().find(|algorithm| *algorithm == stated)?;
        Some(StatedDigest { algorithm, value: value.trim_end_matches('=') })
    }
}

/// Returns the first two fields of a CSV line: the path and the digest.
fn row(line: &str) -> Option<(String, &str)> {
    let (path, rest) = field(line)?;
    let digest = rest.split(',').next().unwrap_or_default();
    Some((path, digest.trim().trim_matches('"')))
}

/// Returns the first field of a CSV line, and the text after its comma.
fn field(line: &str) -> Option<(String, &str)> {
    let Some(quoted) = line.strip_prefix('"') else {
        return line.split_once(',').map(|(field, rest)| (field.to_owned(), rest));
    };
    let mut field = String::new();
    let mut rest = quoted;
    loop {
        let (piece, after) = rest.split_once('"')?;
        field.push_str(piece);
        match after.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                rest = more;
            }
            None => return Some((field, after.strip_prefix(',')?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(lines: &str, files: &[&str]) -> Option<String> {
        let record = WheelRecord::read(lines.as_bytes(), "a-1.dist-info");
        match record.and_then(|record| record.check_names(files.iter().copied())) {
            Ok(()) => None,
            Err(ArchiveError::Refused(text)) => Some(text),
            Err(ArchiveError::Host(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn the_record_must_list_the_files_of_the_wheel() {
        let files = ["a/__init__.py", "a/b,\"c\".py", "a-1.dist-info/RECORD", "a-1.dist-info/RECORD.jws"];
        let lines = "a/__init__.py,sha256=x,1\r\n\"a/b,\"\"c\"\".py\",,\na-1.dist-info/RECORD,,\n";
        assert_eq!(refusal(lines, &files), None);
        assert!(refusal(lines, &files[..1]).unwrap().contains("which is not in the wheel"));
        assert!(
            refusal("a-1.dist-info/RECORD,,\n", &files)
                .unwrap()
                .contains("does not list its file a/__init__.py")
        );
        for lines in ["a/__init__.py\n", "\"a/__init__.py,,\n", "\"a\"x,,\n"] {
            assert!(refusal(lines, &[]).unwrap().contains("is invalid"), "{lines}");
        }
        assert_eq!(refusal("a,sha256=x,1\na,sha256=x,1\n", &["a"]), None);
        assert!(refusal("a,sha256=x,1\na,sha256=y,1\n", &["a"]).unwrap().contains("two digests"));
    }

    #[test]
    fn a_stated_digest_is_url_safe_base64() {
        let of_nothing = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
        let lines = format!(
            "a,sha256={of_nothing},0\n\"b\",\"sha256={of_nothing}=\",\"0\"\nc,,\nd,md5=x,0\ne,sha256=x,0\n"
        );
        let record = WheelRecord::read(lines.as_bytes(), "a-1.dist-info").unwrap();
        let digest =
            Digest::new("sha256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
                .unwrap();
        let is_of = |file: &str| record.digest(file).map(|stated| stated.is_of(&digest));
        assert_eq!(
            ["a", "b", "c", "d", "e", "f"].map(is_of),
            [Some(true), Some(true), None, None, Some(false), None]
        );
    }
}
