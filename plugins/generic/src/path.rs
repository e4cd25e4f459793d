//! Paths below the repository's address, and the package and version that a path belongs to.

use packhouse_sdk::{Failure, VersionId};

/// Maximum number of bytes of a path. A record's key consists of a prefix and the path, and may
/// have at most 1,024 bytes.
const LIMIT: usize = 1000;

/// Name of the package for top-level files, which are not in a folder.
const TOP: &str = "-";

/// The file or folder that a path names. `Folder` holds the path without the slash at its end; the
/// root folder is the empty string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathTarget {
    /// A folder: the path ends with a slash, or is empty.
    Folder(String),
    /// A file or a checksum file: the path does not end with a slash.
    File(String),
}

impl PathTarget {
    /// Parses the segments of a request's path. If the path ends with a slash, the last segment is
    /// empty. A request for the repository's address itself has no segments.
    ///
    /// # Errors
    /// 400 `invalid_path` for a path that cannot name a file or folder.
    pub(crate) fn parse(segments: &[String]) -> Result<Self, Failure> {
        let Some((last, folders)) = segments.split_last() else { return Ok(Self::Folder(String::new())) };
        let length: usize = segments.iter().map(|segment| segment.len() + 1).sum();
        if length > LIMIT {
            return Err(bad(format!("This path has {length} bytes; at most {LIMIT} are allowed")));
        }
        let is_forbidden =
            |segment: &String| segment.contains(['/', '\\']) || segment.contains(char::is_control);
        if segments.iter().any(is_forbidden) {
            return Err(bad(
                "This path has a character that a file name cannot have: an encoded slash, a backslash \
                            or a control character",
            ));
        }
        if folders.iter().any(String::is_empty) {
            return Err(bad("This path has an empty segment: two slashes in a row"));
        }
        if folders.first().is_some_and(|first| first == TOP) {
            return Err(bad(format!(
                "A top-level folder cannot be called {TOP}: this name stands for the files that are in no folder"
            )));
        }
        Ok(if last.is_empty() { Self::Folder(folders.join("/")) } else { Self::File(segments.join("/")) })
    }

    /// The path for messages and the audit log.
    pub(crate) fn subject(&self) -> String {
        match self {
            Self::Folder(folder) => format!("{folder}/"),
            Self::File(path) => path.clone(),
        }
    }
}

/// Returns the error 400 `invalid_path`.
pub(crate) fn bad(text: impl Into<String>) -> Failure {
    Failure::new(400, "invalid_path", text)
}

/// Returns the name of the package for the files in a folder.
pub(crate) fn package(folder: &str) -> &str {
    if folder.is_empty() { TOP } else { folder }
}

/// Splits a path into the folder and the name of the file.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Returns the package and version of the file at a path.
pub(crate) fn id(path: &str) -> VersionId {
    let (folder, name) = split(path);
    VersionId::new(package(folder), name)
}

/// Returns the path of the file that a version stands for, or `None` if no file can have this path.
pub(crate) fn of(id: &VersionId) -> Option<String> {
    let whole = if id.name == TOP { id.version.clone() } else { format!("{}/{}", id.name, id.version) };
    let segments: Vec<String> = whole.split('/').map(str::to_owned).collect();
    match PathTarget::parse(&segments) {
        Ok(PathTarget::File(path)) if !id.version.contains('/') => Some(path),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(path: &str) -> Result<PathTarget, Failure> {
        let segments: Vec<String> = path.split('/').map(str::to_owned).collect();
        PathTarget::parse(&segments)
    }

    #[test]
    fn files_and_folders_are_distinguished() {
        assert_eq!(PathTarget::parse(&[]).unwrap(), PathTarget::Folder(String::new()));
        assert_eq!(parse("a/b/").unwrap(), PathTarget::Folder("a/b".into()));
        assert_eq!(parse("a/b").unwrap(), PathTarget::File("a/b".into()));
        assert_eq!(parse("-").unwrap(), PathTarget::File("-".into()));
    }

    #[test]
    fn the_message_for_a_bad_path_says_what_is_wrong() {
        for (path, words) in [
            ("a//b", "two slashes"),
            ("-/a", "called -"),
            ("-/", "called -"),
            ("a\\b", "character"),
            ("a\u{7}", "character"),
        ] {
            let failure = parse(path).unwrap_err();
            assert!(failure.problems[0].message.contains(words), "{path}: {failure:?}");
        }
        assert!(parse(&"a/".repeat(600)).unwrap_err().problems[0].message.contains("at most 1000"));
    }

    proptest! {
        #[test]
        fn any_path_is_parsed(segments in prop::collection::vec("\\PC{0,20}", 0..8)) {
            if let Ok(PathTarget::File(path)) = PathTarget::parse(&segments) {
                prop_assert_eq!(of(&id(&path)), Some(path));
            }
        }

        #[test]
        fn any_version_is_handled(name in "\\PC{0,20}", version in "\\PC{0,20}") {
            let given = VersionId::new(name, version);
            if let Some(path) = of(&given) {
                prop_assert_eq!(id(&path), given);
            }
        }
    }
}
