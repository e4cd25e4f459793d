//! Paths below the repository's address.
//!
//! A file can be stored at any path. A path in Maven's layout also belongs to a version: `<group as
//! folders>/<artifact>/<version>/<artifact>-<version>[-<classifier>].<extension>`.

use crate::checksum::Algorithm;
use crate::snapshot::{self, Build};
use crate::version::{self, is_snapshot};

/// Name of the file in which Maven lists the content of a folder.
pub(crate) const METADATA: &str = "maven-metadata.xml";
/// Path of the list of groups, which tells clients which groups the repository can have.
pub(crate) const PREFIXES: &str = ".meta/prefixes.txt";
/// Longest path, in bytes. The key of a record is the path with a prefix, and has at most 1,024
/// bytes.
pub(crate) const PATH_LIMIT: usize = 1000;

/// The target of a path. A folder has no slash at its end; the root is the empty folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathTarget {
    /// A path that ends with a slash, or the repository's address itself.
    Folder(String),
    /// The `maven-metadata.xml` of this folder.
    Metadata(String),
    /// The generated list of groups.
    Prefixes,
    /// A checksum of another target.
    Checksum(Box<PathTarget>, Algorithm),
    /// Any other file.
    File(FilePath),
}

/// A file's path, and its version if the path follows Maven's layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilePath {
    /// The path below the repository's address.
    pub(crate) path: String,
    /// The version that the file belongs to; `None` if the path does not follow Maven's layout.
    pub(crate) item: Option<VersionFile>,
}

/// A file that belongs to a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionFile {
    /// The artifact's folder: `org/example/lib`.
    pub(crate) folder: String,
    /// The group: `org.example`.
    pub(crate) group: String,
    /// The artifact: `lib`.
    pub(crate) artifact: String,
    /// The name of the version's folder. For a snapshot it is `1.0-SNAPSHOT`, even if the file name
    /// has a timestamp.
    pub(crate) version: String,
    /// The kind of the file, which decides how the file may change.
    pub(crate) kind: FileKind,
    /// The rest of the file name after the version: `-sources.jar`, `.pom`.
    pub(crate) tail: String,
}

/// The kinds of files that Overwrite Protection distinguishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A file of a release, which cannot be replaced.
    Release,
    /// A file of one build of a snapshot: `1.0-20261121.050140-1`. Clients cannot replace the file,
    /// but may send the same bytes again.
    Unique(Build),
    /// A file of a snapshot without a timestamp: `1.0-SNAPSHOT`. Each upload replaces the file.
    Moving,
}

/// The reason why a path is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadPath(pub(crate) String);

impl PathTarget {
    /// Parses the segments of a request's path. A slash at the end gives an empty last segment; the
    /// address itself has no segments.
    pub(crate) fn parse(segments: &[String]) -> Result<Self, BadPath> {
        let (folders, last) = match segments.split_last() {
            Some((last, folders)) => (folders, last.as_str()),
            None => return Ok(Self::Folder(String::new())),
        };
        let length: usize = segments.iter().map(|segment| segment.len() + 1).sum();
        if length > PATH_LIMIT {
            return Err(BadPath(format!("This path has {length} bytes; at most {PATH_LIMIT} are allowed")));
        }
        if segments.iter().any(|segment| segment.contains(['/', '\\']) || segment.contains(char::is_control))
        {
            return Err(BadPath(
                "A segment of this path contains a character that file names cannot contain".to_owned(),
            ));
        }
        if folders.iter().any(String::is_empty) {
            return Err(BadPath("This path has an empty segment: two slashes in a row".to_owned()));
        }
        match last {
            "" => Ok(Self::Folder(folders.join("/"))),
            name => Ok(Self::named(folders, name)),
        }
    }

    fn named(folders: &[String], name: &str) -> Self {
        if let Some((of, algorithm)) = Algorithm::split(name).filter(|(of, _)| !of.is_empty()) {
            return Self::Checksum(Box::new(Self::named(folders, of)), algorithm);
        }
        let path = folders.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("/");
        match name {
            METADATA => Self::Metadata(folders.join("/")),
            _ if path == PREFIXES => Self::Prefixes,
            _ => Self::File(FilePath { item: VersionFile::parse(folders, name), path }),
        }
    }

    /// The name in messages and in the audit log: `group:artifact:version`, or the path.
    pub(crate) fn subject(&self) -> String {
        match self {
            Self::Folder(folder) => format!("{folder}/"),
            Self::Metadata(folder) => join(folder, METADATA),
            Self::Prefixes => PREFIXES.to_owned(),
            Self::Checksum(of, _) => of.subject(),
            Self::File(FilePath { item: Some(item), .. }) => format!("{}:{}", item.name(), item.version),
            Self::File(FilePath { path, .. }) => path.clone(),
        }
    }
}

impl PathTarget {
    /// The artifacts, as `group:artifact`, that the target may belong to. A file in Maven's layout
    /// belongs to one artifact. The folder of any other file may be an artifact's folder or a
    /// version's folder. The result then has the artifact of each case. Listings belong to no
    /// artifact.
    pub(crate) fn packages(&self) -> Vec<String> {
        match self {
            Self::Checksum(of, _) => of.packages(),
            Self::File(FilePath { item: Some(item), .. }) => vec![item.name()],
            Self::File(file) => packages_of_folder(file.folder()),
            Self::Metadata(folder) => {
                // The metadata of a snapshot is in the folder of its version.
                let folder = match folder.rsplit_once('/') {
                    Some((artifact, version)) if is_snapshot(version) => artifact,
                    _ => folder,
                };
                artifact(folder).into_iter().collect()
            }
            Self::Folder(_) | Self::Prefixes => Vec::new(),
        }
    }

    /// Returns true for metadata and for a checksum of metadata. The metadata of a group belongs to
    /// no artifact, although its path looks like that of an artifact.
    pub(crate) fn is_metadata(&self) -> bool {
        match self {
            Self::Metadata(_) => true,
            Self::Checksum(of, _) => of.is_metadata(),
            Self::Folder(_) | Self::Prefixes | Self::File(_) => false,
        }
    }
}

/// The artifacts that the content of a folder may belong to: the folder may be that of an artifact,
/// or that of a version.
pub(crate) fn packages_of_folder(folder: &str) -> Vec<String> {
    let (parent, _) = folder.rsplit_once('/').unwrap_or_default();
    [artifact(folder), artifact(parent)].into_iter().flatten().collect()
}

/// The artifact of a folder, as `group:artifact`.
fn artifact(folder: &str) -> Option<String> {
    let (group, artifact) = folder.rsplit_once('/')?;
    Some(format!("{}:{artifact}", group.replace('/', ".")))
}

impl FilePath {
    /// Parses the path of a stored file, which is always valid.
    pub(crate) fn stored(path: &str) -> Self {
        let segments: Vec<String> = path.split('/').map(str::to_owned).collect();
        let item = segments.split_last().and_then(|(name, folders)| VersionFile::parse(folders, name));
        Self { path: path.to_owned(), item }
    }

    /// Returns true if the bytes of the file may change. This holds for snapshots without a
    /// timestamp, and for files that belong to no artifact, such as a catalogue. A file outside of
    /// Maven's layout cannot change if it seems to be part of a release: the name of one of its
    /// folders looks like a version.
    pub(crate) fn may_change(&self) -> bool {
        match &self.item {
            Some(item) => item.kind == FileKind::Moving,
            None => {
                let is_release = |folder: &str| {
                    folder.starts_with(|first: char| first.is_ascii_digit()) && !is_snapshot(folder)
                };
                !self.folder().split('/').any(is_release)
            }
        }
    }

    /// The folder of the file, without a slash at its end.
    pub(crate) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

impl VersionFile {
    fn parse(folders: &[String], name: &str) -> Option<Self> {
        let [group @ .., artifact, version] = folders else { return None };
        // If the name of a folder could contain a dot, two different paths would give the same
        // group and claim the same version.
        if group.is_empty() || group.iter().any(|segment| segment.contains('.')) {
            return None;
        }
        let rest = name.strip_prefix(artifact.as_str())?.strip_prefix('-')?;
        let (kind, tail) = match rest.strip_prefix(version.as_str()) {
            Some(tail) if is_snapshot(version) => (FileKind::Moving, tail),
            Some(tail) => (FileKind::Release, tail),
            None => {
                let base = version.strip_suffix("SNAPSHOT").filter(|_| is_snapshot(version))?;
                let (build, tail) = snapshot::build(rest.strip_prefix(base)?)?;
                (FileKind::Unique(build), tail)
            }
        };
        snapshot::split_tail(tail)?;
        Some(Self {
            folder: format!("{}/{artifact}", group.join("/")),
            group: group.join("."),
            artifact: artifact.clone(),
            version: version.clone(),
            kind,
            tail: tail.to_owned(),
        })
    }

    /// The name of the artifact: `group:artifact`.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.group, self.artifact)
    }

    /// The version's folder.
    pub(crate) fn version_folder(&self) -> String {
        join(&self.folder, &self.version)
    }

    /// Refuses coordinates that Maven itself refuses, most often an unresolved `${…}`.
    pub(crate) fn check(&self) -> Result<(), BadPath> {
        for (what, value) in
            [("group", &self.group), ("artifact", &self.artifact), ("version", &self.version)]
        {
            if let Some(c) = value.chars().find(|symbol| version::is_forbidden(*symbol)) {
                let text = format!("The {what} `{value}` contains `{c}`, which Maven does not allow");
                return Err(BadPath(text));
            }
        }
        Ok(())
    }
}

/// Joins a folder and a name.
pub(crate) fn join(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}

/// The folder of a version, from `group:artifact` and the version.
pub(crate) fn folder_of(name: &str, version: &str) -> Option<String> {
    let (group, artifact) = name.split_once(':')?;
    let parts = [group, artifact, version];
    if parts.iter().any(|part| part.is_empty() || part.contains('/')) || artifact.contains(':') {
        return None;
    }
    Some(format!("{}/{artifact}/{version}", group.replace('.', "/")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(path: &str) -> PathTarget {
        try_parse(path).unwrap()
    }

    fn try_parse(path: &str) -> Result<PathTarget, BadPath> {
        let segments: Vec<String> = path.split('/').map(str::to_owned).collect();
        PathTarget::parse(&segments)
    }

    fn item(path: &str) -> Option<VersionFile> {
        match parse(path) {
            PathTarget::File(file) => file.item,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn a_release_is_recognized_by_its_path() {
        let found = item("org/example/lib/1.0/lib-1.0-sources.jar").unwrap();
        assert_eq!(found.name(), "org.example:lib");
        assert_eq!(
            (found.version.as_str(), found.kind, found.tail.as_str()),
            ("1.0", FileKind::Release, "-sources.jar")
        );
        assert_eq!(item("g/a-b/1-2/a-b-1-2.tar.gz").unwrap().tail, ".tar.gz");
        assert_eq!(item("g/lib/1.0/lib-1.0.jar.asc").unwrap().version, "1.0");
    }

    #[test]
    fn snapshots_with_and_without_timestamps_are_distinguished() {
        assert_eq!(item("g/lib/1.0-SNAPSHOT/lib-1.0-SNAPSHOT-x.jar").unwrap().kind, FileKind::Moving);
        let unique = item("g/lib/1.0-SNAPSHOT/lib-1.0-20261121.050140-3.pom").unwrap();
        assert_eq!(unique.version, "1.0-SNAPSHOT");
        let FileKind::Unique(build) = unique.kind else { panic!("{:?}", unique.kind) };
        assert_eq!((build.timestamp.as_str(), build.number), ("20261121.050140", 3));
        assert!(matches!(
            item("g/lib/SNAPSHOT/lib-20261121.050140-3.pom").unwrap().kind,
            FileKind::Unique(_)
        ));
    }

    #[test]
    fn files_outside_of_mavens_layout_have_no_version() {
        for path in [
            "x",
            "a/b",
            "lib/1.0/lib-1.0.jar",
            "g/lib/1.0/other.jar",
            "g/lib/1.0/lib-2.0.jar",
            "g/lib/1.0/lib-1.0",
            "org.example/lib/1.0/lib-1.0.jar",
            "g/lib/1.0-SNAPSHOT/lib-1.0-2026.0-1.jar",
            "g/lib/1.0/lib-1.0-.jar",
            ".index/nexus-maven-repository-index.gz",
            "g/lib/1.0/lib-1.0x.jar",
        ] {
            assert_eq!(item(path), None, "{path}");
        }
    }

    #[test]
    fn files_without_an_artifact_may_change() {
        for (path, expected) in [
            ("archetype-catalog.xml", true),
            (".index/nexus-maven-repository-index.gz", true),
            ("org/example/lib/notes.txt", true),
            ("g/lib/1.0/other.jar", false),
            ("org/mod/1.0/jars/mod.jar", false),
            ("repo2/repo2.xml", true),
            ("g/lib/1.0-SNAPSHOT/other.jar", true),
            ("g/lib/1.0-SNAPSHOT/lib-1.0-SNAPSHOT.jar", true),
            ("g/lib/1.0-SNAPSHOT/lib-1.0-20261121.050140-3.pom", false),
            ("g/lib/1.0/lib-1.0.jar", false),
            ("g/lib/1.0/lib-1.0.jar.asc", false),
            ("org.example/lib/1.0/lib-1.0.jar", false),
            ("g/lib/1.0/ivy-1.0.xml", false),
        ] {
            assert_eq!(FilePath::stored(path).may_change(), expected, "{path}");
        }
    }

    #[test]
    fn special_names_are_recognized() {
        assert_eq!(parse("g/lib/maven-metadata.xml"), PathTarget::Metadata("g/lib".into()));
        assert_eq!(parse(".meta/prefixes.txt"), PathTarget::Prefixes);
        assert_eq!(parse("g/lib/"), PathTarget::Folder("g/lib".into()));
        assert_eq!(PathTarget::parse(&[]).unwrap(), PathTarget::Folder(String::new()));
        let PathTarget::Checksum(of, Algorithm::Sha1) = parse("g/lib/1/lib-1.jar.sha1") else { panic!() };
        assert_eq!(of.subject(), "g:lib:1");
        assert!(parse("g/maven-metadata.xml.sha1").is_metadata());
        assert!(!parse("g/a/1/a-1.jar.md5").is_metadata());
        let PathTarget::Checksum(of, _) = parse("x.jar.sha1.md5") else { panic!() };
        assert!(matches!(*of, PathTarget::Checksum(..)));
        assert!(matches!(parse("x/.sha1"), PathTarget::File(_)));
    }

    #[test]
    fn errors_of_bad_paths_name_the_problem() {
        assert!(try_parse("a//b").unwrap_err().0.contains("empty segment"));
        assert!(try_parse(&"a/".repeat(600)).unwrap_err().0.contains("at most 1000"));
        let bad = item("g/lib/${rev}/lib-${rev}.jar").unwrap().check().unwrap_err();
        assert!(bad.0.contains("version `${rev}` contains `{`"), "{}", bad.0);
        assert!(item("g/l b/1/l b-1.jar").unwrap().check().is_err());
    }

    #[test]
    fn a_versions_folder_is_found_from_its_name() {
        assert_eq!(folder_of("org.example:lib", "1.0").as_deref(), Some("org/example/lib/1.0"));
        for name in ["lib", ":lib", "g:", "g:a:b", "g:a/b"] {
            assert_eq!(folder_of(name, "1"), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_path_is_parsed(segments in prop::collection::vec("\\PC{0,20}", 0..8)) {
            let _ = PathTarget::parse(&segments);
        }

        #[test]
        fn coordinates_are_parsed_from_a_path(
            group in prop::collection::vec("[a-z][a-z0-9_-]{0,8}", 1..4), artifact in "[a-z][a-z0-9.-]{0,10}",
            version in "[0-9][0-9a-z.]{0,8}", classifier in prop::option::of("[a-z]{1,5}"), ext in "(jar|pom|tar\\.gz|jar\\.asc)",
        ) {
            let tail = classifier.map(|c| format!("-{c}")).unwrap_or_default() + "." + &ext;
            let path = format!("{}/{artifact}/{version}/{artifact}-{version}{tail}", group.join("/"));
            let segments: Vec<String> = path.split('/').map(str::to_owned).collect();
            let Ok(PathTarget::File(file)) = PathTarget::parse(&segments) else { panic!("{path}") };
            let item = file.item.clone().unwrap();
            prop_assert_eq!(item.name(), format!("{}:{artifact}", group.join(".")));
            prop_assert_eq!(&item.version, &version);
            prop_assert_eq!(&item.tail, &tail);
            prop_assert_eq!(folder_of(&item.name(), &version), Some(item.version_folder()));
            prop_assert_eq!(FilePath::stored(&path), file);
        }
    }

    #[test]
    fn a_path_gives_the_artifacts_that_it_may_belong_to() {
        for (path, expected) in [
            ("org/example/lib/1.0/lib-1.0.jar", vec!["org.example:lib"]),
            ("org/example/lib/1.0/lib-1.0.jar.sha1", vec!["org.example:lib"]),
            ("org/example/lib/maven-metadata.xml", vec!["org.example:lib"]),
            ("org/example/lib/maven-metadata.xml.md5", vec!["org.example:lib"]),
            ("org/example/lib/1.0-SNAPSHOT/maven-metadata.xml", vec!["org.example:lib"]),
            ("org/example/lib/1.0/notes.txt", vec!["org.example.lib:1.0", "org.example:lib"]),
            ("org.example/lib/1.0/lib-1.0.jar", vec!["org.example.lib:1.0", "org.example:lib"]),
            ("archetype-catalog.xml", vec![]),
            ("org/example/", vec![]),
        ] {
            let segments: Vec<String> = path.split('/').map(str::to_owned).collect();
            assert_eq!(PathTarget::parse(&segments).unwrap().packages(), expected, "{path}");
        }
    }
}
