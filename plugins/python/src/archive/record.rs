//! A wheel's RECORD: it must name the files that are in the wheel, all of them and no others, since installers disagree about
//! which of the two they believe.

use packhouse_zip::ArchiveError;
use std::collections::HashSet;

/// Checks the lines of a RECORD against the wheel's files. Of the RECORD itself and its signatures nothing need be said.
pub(super) fn check<'a>(
    lines: &[u8],
    folder: &str,
    files: impl Iterator<Item = &'a str>,
) -> Result<(), ArchiveError> {
    let text = core::str::from_utf8(lines).map_err(|_| ArchiveError::refused("its RECORD is not UTF-8"))?;
    let own = ["RECORD", "RECORD.jws", "RECORD.p7s"].map(|name| format!("{folder}/{name}"));
    let counts = |name: &str| !own.iter().any(|own| own == name);
    let mut named = HashSet::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let path = path(line).ok_or_else(|| ArchiveError::refused("a line of its RECORD makes no sense"))?;
        named.insert(path);
    }
    for file in files.filter(|file| counts(file)) {
        if !named.remove(file) {
            return Err(ArchiveError::refused(format!("its RECORD does not name its file {file}")));
        }
    }
    match named.into_iter().find(|name| counts(name)) {
        Some(name) => Err(ArchiveError::refused(format!("its RECORD names {name}, which it does not have"))),
        None => Ok(()),
    }
}

/// The first field of a line of CSV.
fn path(line: &str) -> Option<String> {
    let Some(quoted) = line.strip_prefix('"') else {
        return line.split_once(',').map(|(path, _)| path.to_owned());
    };
    let mut path = String::new();
    let mut rest = quoted;
    loop {
        let (piece, after) = rest.split_once('"')?;
        path.push_str(piece);
        match after.strip_prefix('"') {
            Some(more) => {
                path.push('"');
                rest = more;
            }
            None => return after.starts_with(',').then_some(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(lines: &str, files: &[&str]) -> Option<String> {
        match check(lines.as_bytes(), "a-1.dist-info", files.iter().copied()) {
            Ok(()) => None,
            Err(ArchiveError::Refused(text)) => Some(text),
            Err(ArchiveError::Host(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn the_record_and_the_wheel_name_the_same_files() {
        let files = ["a/__init__.py", "a/b,\"c\".py", "a-1.dist-info/RECORD", "a-1.dist-info/RECORD.jws"];
        let lines = "a/__init__.py,sha256=x,1\r\n\"a/b,\"\"c\"\".py\",,\na-1.dist-info/RECORD,,\n";
        assert_eq!(refusal(lines, &files), None);
        assert!(refusal(lines, &files[..1]).unwrap().contains("which it does not have"));
        assert!(
            refusal("a-1.dist-info/RECORD,,\n", &files)
                .unwrap()
                .contains("does not name its file a/__init__.py")
        );
        for lines in ["a/__init__.py\n", "\"a/__init__.py,,\n", "\"a\"x,,\n"] {
            assert!(refusal(lines, &[]).unwrap().contains("makes no sense"), "{lines}");
        }
    }
}
