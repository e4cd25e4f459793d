//! What a path below the repository's address names.
//!
//! Paths are taken as they are: any file may be stored. One that is shaped like Maven's layout belongs to a version too:
//! `<group as folders>/<artifact>/<version>/<artifact>-<version>[-<classifier>].<extension>`.

use crate::checksum::Algorithm;
use crate::snapshot::{self, Build};
use crate::version::{self, is_snapshot};

/// The file in which Maven keeps what a folder holds.
pub(crate) const METADATA: &str = "maven-metadata.xml";
/// Tells clients which groups are here at all.
pub(crate) const PREFIXES: &str = ".meta/prefixes.txt";
/// Bytes of a path: a record's key holds it with a prefix, and is at most 1,024 bytes.
pub(crate) const PATH_LIMIT: usize = 1000;

/// What a path names. Folders are written without a slash at their ends; the root is the empty one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// It ends in a slash, or is the address itself.
    Folder(String),
    /// The `maven-metadata.xml` of this folder.
    Metadata(String),
    /// The list of groups that the repository makes itself.
    Prefixes,
    /// A checksum of something else.
    Checksum(Box<Target>, Algorithm),
    /// Any other file.
    File(FilePath),
}

/// A file's path, and what of Maven's layout it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilePath {
    /// From the repository's address on.
    pub(crate) path: String,
    /// The version that it belongs to; none for a file that is not shaped like one.
    pub(crate) item: Option<Item>,
}

/// A file as a part of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// The artifact's folder: `org/example/lib`.
    pub(crate) folder: String,
    /// `org.example`.
    pub(crate) group: String,
    /// `lib`.
    pub(crate) artifact: String,
    /// As the folder is called: of a snapshot `1.0-SNAPSHOT`, also where the file carries a timestamp.
    pub(crate) version: String,
    /// Whether and how its file may change.
    pub(crate) kind: Kind,
    /// What stands after the version in the file's name: `-sources.jar`, `.pom`.
    pub(crate) tail: String,
}

/// What Overwrite Protection makes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Once and for ever.
    Release,
    /// `1.0-20261121.050140-1`: once, and the same bytes again.
    Unique(Build),
    /// `1.0-SNAPSHOT`: the newest bytes stand.
    Moving,
}

/// Why a path names nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadPath(pub(crate) String);

impl Target {
    /// Of the segments of a request's path: a slash at its end is a last empty segment, the address itself is none.
    pub(crate) fn parse(segments: &[String]) -> Result<Self, BadPath> {
        let (folders, last) = match segments.split_last() {
            Some((last, folders)) => (folders, last.as_str()),
            None => return Ok(Self::Folder(String::new())),
        };
        let length: usize = segments.iter().map(|segment| segment.len() + 1).sum();
        if length > PATH_LIMIT {
            return Err(BadPath(format!(
                "This path has {length} bytes, and at most {PATH_LIMIT} are possible"
            )));
        }
        if segments.iter().any(|segment| segment.contains(['/', '\\']) || segment.contains(char::is_control))
        {
            return Err(BadPath(
                "A path's segment holds a character that no file's name may hold".to_owned(),
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
            _ => Self::File(FilePath { item: Item::parse(folders, name), path }),
        }
    }

    /// For messages and the audit log: `group:artifact:version`, or the path.
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

impl Target {
    /// The artifacts, as `group:artifact`, that this may be about: of a file that is shaped like a version's that one; of another
    /// those in whose folder, or in whose version's folder, it would lie. None for a listing.
    pub(crate) fn packages(&self) -> Vec<String> {
        match self {
            Self::Checksum(of, _) => of.packages(),
            Self::File(FilePath { item: Some(item), .. }) => vec![item.name()],
            Self::File(file) => {
                let (parent, _) = file.folder().rsplit_once('/').unwrap_or_default();
                [artifact(file.folder()), artifact(parent)].into_iter().flatten().collect()
            }
            Self::Metadata(folder) => {
                // A snapshot's lies in the folder of its version.
                let folder = match folder.rsplit_once('/') {
                    Some((artifact, version)) if is_snapshot(version) => artifact,
                    _ => folder,
                };
                artifact(folder).into_iter().collect()
            }
            Self::Folder(_) | Self::Prefixes => Vec::new(),
        }
    }
}

/// `group:artifact` of an artifact's folder.
fn artifact(folder: &str) -> Option<String> {
    let (group, artifact) = folder.rsplit_once('/')?;
    Some(format!("{}:{artifact}", group.replace('/', ".")))
}

impl FilePath {
    /// Of a path that was stored, and so is a good one.
    pub(crate) fn stored(path: &str) -> Self {
        let segments: Vec<String> = path.split('/').map(str::to_owned).collect();
        let item = segments.split_last().and_then(|(name, folders)| Item::parse(folders, name));
        Self { path: path.to_owned(), item }
    }

    /// Whether its bytes may change: those of a snapshot without a timestamp, and of a file that belongs to no artifact, as a
    /// catalogue. One below a folder that is called by a version is a release's, however it is laid out.
    pub(crate) fn may_change(&self) -> bool {
        match &self.item {
            Some(item) => item.kind == Kind::Moving,
            None => {
                let is_release = |folder: &str| {
                    folder.starts_with(|first: char| first.is_ascii_digit()) && !is_snapshot(folder)
                };
                !self.folder().split('/').any(is_release)
            }
        }
    }

    /// The folder that it lies in, without a slash at its end.
    pub(crate) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

impl Item {
    fn parse(folders: &[String], name: &str) -> Option<Self> {
        let [group @ .., artifact, version] = folders else { return None };
        // A dot in a folder would make another group's name of it, and two places would claim one version.
        if group.is_empty() || group.iter().any(|segment| segment.contains('.')) {
            return None;
        }
        let rest = name.strip_prefix(artifact.as_str())?.strip_prefix('-')?;
        let (kind, tail) = match rest.strip_prefix(version.as_str()) {
            Some(tail) if is_snapshot(version) => (Kind::Moving, tail),
            Some(tail) => (Kind::Release, tail),
            None => {
                let base = version.strip_suffix("SNAPSHOT").filter(|_| is_snapshot(version))?;
                let (build, tail) = snapshot::build(rest.strip_prefix(base)?)?;
                (Kind::Unique(build), tail)
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

    /// `group:artifact`.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.group, self.artifact)
    }

    /// The version's folder.
    pub(crate) fn version_folder(&self) -> String {
        join(&self.folder, &self.version)
    }

    /// Coordinates that Maven itself would refuse, most often a `${…}` that nobody filled in.
    pub(crate) fn check(&self) -> Result<(), BadPath> {
        for (what, value) in
            [("group", &self.group), ("artifact", &self.artifact), ("version", &self.version)]
        {
            if let Some(c) = value.chars().find(|symbol| version::is_impossible(*symbol)) {
                let text = format!("The {what} `{value}` holds `{c}`, which Maven does not allow");
                return Err(BadPath(text));
            }
        }
        Ok(())
    }
}

/// A folder and a name in it.
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

    fn parse(path: &str) -> Target {
        try_parse(path).unwrap()
    }

    fn try_parse(path: &str) -> Result<Target, BadPath> {
        let segments: Vec<String> = path.split('/').map(str::to_owned).collect();
        Target::parse(&segments)
    }

    fn item(path: &str) -> Option<Item> {
        match parse(path) {
            Target::File(file) => file.item,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn a_release_is_told_from_its_path() {
        let found = item("org/example/lib/1.0/lib-1.0-sources.jar").unwrap();
        assert_eq!(found.name(), "org.example:lib");
        assert_eq!(
            (found.version.as_str(), found.kind, found.tail.as_str()),
            ("1.0", Kind::Release, "-sources.jar")
        );
        assert_eq!(item("g/a-b/1-2/a-b-1-2.tar.gz").unwrap().tail, ".tar.gz");
        assert_eq!(item("g/lib/1.0/lib-1.0.jar.asc").unwrap().version, "1.0");
    }

    #[test]
    fn snapshots_are_told_apart() {
        assert_eq!(item("g/lib/1.0-SNAPSHOT/lib-1.0-SNAPSHOT-x.jar").unwrap().kind, Kind::Moving);
        let unique = item("g/lib/1.0-SNAPSHOT/lib-1.0-20261121.050140-3.pom").unwrap();
        assert_eq!(unique.version, "1.0-SNAPSHOT");
        let Kind::Unique(build) = unique.kind else { panic!("{:?}", unique.kind) };
        assert_eq!((build.timestamp.as_str(), build.number), ("20261121.050140", 3));
        assert!(matches!(item("g/lib/SNAPSHOT/lib-20261121.050140-3.pom").unwrap().kind, Kind::Unique(_)));
    }

    #[test]
    fn any_other_file_is_a_plain_one() {
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
    fn what_belongs_to_no_artifact_may_change() {
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
    fn special_names_are_known() {
        assert_eq!(parse("g/lib/maven-metadata.xml"), Target::Metadata("g/lib".into()));
        assert_eq!(parse(".meta/prefixes.txt"), Target::Prefixes);
        assert_eq!(parse("g/lib/"), Target::Folder("g/lib".into()));
        assert_eq!(Target::parse(&[]).unwrap(), Target::Folder(String::new()));
        let Target::Checksum(of, Algorithm::Sha1) = parse("g/lib/1/lib-1.jar.sha1") else { panic!() };
        assert_eq!(of.subject(), "g:lib:1");
        let Target::Checksum(of, _) = parse("x.jar.sha1.md5") else { panic!() };
        assert!(matches!(*of, Target::Checksum(..)));
        assert!(matches!(parse("x/.sha1"), Target::File(_)));
    }

    #[test]
    fn bad_paths_say_what_is_wrong() {
        assert!(try_parse("a//b").unwrap_err().0.contains("empty segment"));
        assert!(try_parse(&"a/".repeat(600)).unwrap_err().0.contains("at most 1000"));
        let bad = item("g/lib/${rev}/lib-${rev}.jar").unwrap().check().unwrap_err();
        assert!(bad.0.contains("version `${rev}` holds `{`"), "{}", bad.0);
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
            let _ = Target::parse(&segments);
        }

        #[test]
        fn coordinates_come_back(
            group in prop::collection::vec("[a-z][a-z0-9_-]{0,8}", 1..4), artifact in "[a-z][a-z0-9.-]{0,10}",
            version in "[0-9][0-9a-z.]{0,8}", classifier in prop::option::of("[a-z]{1,5}"), ext in "(jar|pom|tar\\.gz|jar\\.asc)",
        ) {
            let tail = classifier.map(|c| format!("-{c}")).unwrap_or_default() + "." + &ext;
            let path = format!("{}/{artifact}/{version}/{artifact}-{version}{tail}", group.join("/"));
            let segments: Vec<String> = path.split('/').map(str::to_owned).collect();
            let Ok(Target::File(file)) = Target::parse(&segments) else { panic!("{path}") };
            let item = file.item.clone().unwrap();
            prop_assert_eq!(item.name(), format!("{}:{artifact}", group.join(".")));
            prop_assert_eq!(&item.version, &version);
            prop_assert_eq!(&item.tail, &tail);
            prop_assert_eq!(folder_of(&item.name(), &version), Some(item.version_folder()));
            prop_assert_eq!(FilePath::stored(&path), file);
        }
    }

    #[test]
    fn a_path_says_which_artifacts_it_may_be_about() {
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
            assert_eq!(Target::parse(&segments).unwrap().packages(), expected, "{path}");
        }
    }
}
