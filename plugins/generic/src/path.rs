//! What a path below the repository's address names, and which package and version it is shown as.

use packhouse_sdk::{Failure, VersionId};

/// Bytes of a path: a record's key holds it with a prefix, and is at most 1,024 bytes.
const LIMIT: usize = 1000;

/// The package of the files that lie in no folder.
const TOP: &str = "-";

/// What a path names. Folders are written without a slash at their ends; the root is the empty one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// It ends in a slash, or is the address itself.
    Folder(String),
    /// A file, or a checksum beside one.
    File(String),
}

impl Target {
    /// Of the segments of a request's path: a slash at its end is a last empty segment, the address itself is none.
    ///
    /// # Errors
    /// 400 `invalid_path` for a path that names nothing.
    pub(crate) fn parse(segments: &[String]) -> Result<Self, Failure> {
        let Some((last, folders)) = segments.split_last() else { return Ok(Self::Folder(String::new())) };
        let length: usize = segments.iter().map(|segment| segment.len() + 1).sum();
        if length > LIMIT {
            return Err(bad(format!("This path has {length} bytes, and at most {LIMIT} are possible")));
        }
        let odd = |segment: &String| segment.contains(['/', '\\']) || segment.contains(char::is_control);
        if segments.iter().any(odd) {
            return Err(bad("A path's segment holds a character that no file's name may hold"));
        }
        if folders.iter().any(String::is_empty) {
            return Err(bad("This path has an empty segment: two slashes in a row"));
        }
        if folders.first().is_some_and(|first| first == TOP) {
            return Err(bad(format!(
                "No folder at the top is called {TOP}: the files that lie in none are shown under it"
            )));
        }
        Ok(if last.is_empty() { Self::Folder(folders.join("/")) } else { Self::File(segments.join("/")) })
    }

    /// For messages and the audit log.
    pub(crate) fn subject(&self) -> String {
        match self {
            Self::Folder(folder) => format!("{folder}/"),
            Self::File(path) => path.clone(),
        }
    }
}

/// 400 `invalid_path`.
pub(crate) fn bad(text: impl Into<String>) -> Failure {
    Failure::new(400, "invalid_path", text)
}

/// The package that the files of a folder are shown as.
pub(crate) fn package(folder: &str) -> &str {
    if folder.is_empty() { TOP } else { folder }
}

/// Folder and name of a file.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The package and version that a file is shown as.
pub(crate) fn id(path: &str) -> VersionId {
    let (folder, name) = split(path);
    VersionId::new(package(folder), name)
}

/// The file that is shown as this version; none where no file can be.
pub(crate) fn of(id: &VersionId) -> Option<String> {
    let whole = if id.name == TOP { id.version.clone() } else { format!("{}/{}", id.name, id.version) };
    let segments: Vec<String> = whole.split('/').map(str::to_owned).collect();
    match Target::parse(&segments) {
        Ok(Target::File(path)) if !id.version.contains('/') => Some(path),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(path: &str) -> Result<Target, Failure> {
        let segments: Vec<String> = path.split('/').map(str::to_owned).collect();
        Target::parse(&segments)
    }

    #[test]
    fn files_and_folders_are_told_apart() {
        assert_eq!(Target::parse(&[]).unwrap(), Target::Folder(String::new()));
        assert_eq!(parse("a/b/").unwrap(), Target::Folder("a/b".into()));
        assert_eq!(parse("a/b").unwrap(), Target::File("a/b".into()));
        assert_eq!(parse("-").unwrap(), Target::File("-".into()));
    }

    #[test]
    fn bad_paths_say_what_is_wrong() {
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
            if let Ok(Target::File(path)) = Target::parse(&segments) {
                prop_assert_eq!(of(&id(&path)), Some(path));
            }
        }

        #[test]
        fn any_version_is_looked_for(name in "\\PC{0,20}", version in "\\PC{0,20}") {
            let given = VersionId::new(name, version);
            if let Some(path) = of(&given) {
                prop_assert_eq!(id(&path), given);
            }
        }
    }
}
