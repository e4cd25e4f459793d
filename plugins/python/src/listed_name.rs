//! Names of files that other servers list. These servers also list kinds of files that can no
//! longer be published. A proxy lists files of every kind, because installers choose among the
//! files.

use crate::filename::Filename;
use crate::name;
use crate::version::Version;

/// Maximum bytes of a file name.
const LONGEST: usize = 250;

/// A kind of file that an index may list.
pub(crate) struct ListedKind {
    /// The end of the file name.
    pub(crate) extension: &'static str,
    /// The name of the kind in the upload form and in PyPI's own JSON documents.
    pub(crate) packagetype: &'static str,
    pub(crate) media_type: &'static str,
    /// True if the file name consists only of the project and the version, without tags.
    is_source: bool,
}

const fn source(extension: &'static str, media_type: &'static str) -> ListedKind {
    ListedKind { extension, packagetype: "sdist", media_type, is_source: true }
}

const fn built(extension: &'static str, packagetype: &'static str, media_type: &'static str) -> ListedKind {
    ListedKind { extension, packagetype, media_type, is_source: false }
}

/// All kinds. The kind of a file is the first whose extension its name ends with.
const KINDS: [ListedKind; 19] = [
    built(".whl", "bdist_wheel", "application/zip"),
    source(".tar.gz", "application/gzip"),
    source(".zip", "application/zip"),
    source(".tgz", "application/gzip"),
    source(".tar.bz2", "application/x-bzip2"),
    source(".tbz", "application/x-bzip2"),
    source(".tar.xz", "application/x-xz"),
    source(".txz", "application/x-xz"),
    source(".tar.lz", "application/x-lzip"),
    source(".tlz", "application/x-lzip"),
    source(".tar.lzma", "application/x-lzma"),
    source(".tar.Z", "application/x-compress"),
    source(".tar", "application/x-tar"),
    built(".egg", "bdist_egg", "application/zip"),
    built(".exe", "bdist_wininst", "application/octet-stream"),
    built(".msi", "bdist_msi", "application/octet-stream"),
    built(".rpm", "bdist_rpm", "application/octet-stream"),
    built(".deb", "bdist_dumb", "application/octet-stream"),
    built(".dmg", "bdist_dmg", "application/octet-stream"),
];

impl ListedKind {
    /// Returns the kind of a file with this name. `None` if no index lists such files.
    pub(crate) fn of(filename: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| filename.ends_with(kind.extension))
    }
}

/// Parses the name of a project's file of any kind. `None` if the file belongs to another project,
/// or if the name contains no PEP 440 version.
pub(crate) fn read(filename: &str, project: &str) -> Option<Filename> {
    Filename::of_project(filename, project).or_else(|| {
        let version = Version::parse(&version_of(filename, project)?)?;
        Some(Filename::other(filename, ListedKind::of(filename)?.packagetype, project, version))
    })
}

/// Returns the version in the name of a project's file: normalized, or unchanged if it is not a PEP
/// 440 version. `None` if the file does not belong to this project.
pub(crate) fn version_of(filename: &str, project: &str) -> Option<String> {
    if let Some(read) = Filename::of_project(filename, project) {
        return Some(read.version.to_string());
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+!".contains(&byte);
    if filename.len() > LONGEST || !filename.bytes().all(plain) {
        return None;
    }
    let kind = ListedKind::of(filename)?;
    let stem = filename.strip_suffix(kind.extension)?;
    let behind = |(at, _): (usize, &str)| {
        let is_own = name::project(stem.get(..at)?)? == project;
        stem.get(at + 1..).filter(|rest| is_own && !rest.is_empty())
    };
    let rest = stem.match_indices('-').find_map(behind)?;
    let first = rest.split('-').next().filter(|first| !first.is_empty())?;
    let whole = Some(rest).filter(|_| kind.is_source);
    // The name of a platform may follow the version after a dot, as in `1.0.win32-py2.7.exe`.
    let beginnings =
        std::iter::successors(Some(first), |text| text.rsplit_once('.').map(|(before, _)| before));
    let read = whole.into_iter().chain(beginnings).find_map(Version::parse);
    Some(read.map_or_else(|| first.to_owned(), |version| version.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files_of_every_kind_have_a_version() {
        for (filename, version) in [
            ("Twisted-20.3.0.tar.bz2", "20.3.0"),
            ("Twisted-20.3.0.win32-py2.7.exe", "20.3.0"),
            ("Twisted-20.3.0-py2.7-linux-x86_64.egg", "20.3.0"),
            ("twisted-20.3.0-1.noarch.rpm", "20.3.0"),
            ("Twisted-20.3.0.win-amd64-py2.7.msi", "20.3.0"),
            ("twisted-1.0-rc1.tgz", "1.0rc1"),
            ("Twisted-20.03.tar.xz", "20.3"),
            ("Twisted-20.3.0.linux-x86_64.tar.gz", "20.3.0"),
            ("Twisted-20.3.0-py3-none-any.whl", "20.3.0"),
            ("Twisted-2004d.tar.gz", "2004d"),
            ("twisted-trunk-r1234.zip", "trunk"),
        ] {
            assert_eq!(version_of(filename, "twisted").as_deref(), Some(version), "{filename}");
        }
        assert_eq!(version_of("zope.interface-3.0.tar.bz2", "zope-interface").as_deref(), Some("3.0"));
    }

    #[test]
    fn a_file_of_any_kind_is_parsed_if_its_version_is_valid() {
        for (filename, expected) in [
            ("Twisted-20.3.0.tar.bz2", Some(("sdist", "20.3.0", "twisted-20.3-twisted-20.3.0.tar.bz2"))),
            (
                "twisted-20.3.0.win32-py2.7.exe",
                Some(("bdist_wininst", "20.3.0", "twisted-20.3-twisted-20.3.0.win32-py2.7.exe")),
            ),
            ("Twisted-20.3.0.tar.gz", Some(("sdist", "20.3.0", "twisted-20.3-tar.gz"))),
            (
                "Twisted-20.3.0-py3-none-any.whl",
                Some(("bdist_wheel", "20.3.0", "twisted-20.3-py3-none-any.whl")),
            ),
            ("twisted-trunk-r1234.zip", None),
            ("Twisted-2004d.tar.bz2", None),
            ("other-1.0.egg", None),
            ("twisted-1.0.txt", None),
        ] {
            let read = read(filename, "twisted");
            let found = read.map(|read| (read.kind.filetype(), read.version.to_string(), read.key()));
            let expected =
                expected.map(|(filetype, version, key)| (filetype, version.to_owned(), key.to_owned()));
            assert_eq!(found, expected, "{filename}");
        }
    }

    #[test]
    fn files_of_other_projects_have_no_version() {
        for filename in [
            "other-1.0.tar.bz2",
            "twisted.tar.bz2",
            "twisted-.tar.bz2",
            "twisted-1.0.tar.gz.asc",
            "twisted-1.0.txt",
            "twisted-1.0/x.exe",
            "twisted-1.0 2.exe",
            "twisted-extras",
        ] {
            assert_eq!(version_of(filename, "twisted"), None, "{filename}");
        }
    }

    proptest! {
        #[test]
        fn any_name_is_read(
            filename in "[a-z0-9._+!-]{0,30}(\\.egg|\\.tgz|\\.exe)?|.{0,40}",
            version in "[0-9]{1,3}(\\.[0-9]{1,3}){0,2}([._-]?(a|rc|post|dev)[0-9]{0,2})?(\\+[a-z0-9]{1,4})?",
            ending in "\\.egg|\\.tgz|-py3\\.egg|\\.win32\\.exe",
        ) {
            for filename in [filename, format!("a-{version}{ending}")] {
                if let Some(read) = read(&filename, "a") {
                    prop_assert_eq!(Some(read.version.to_string()), version_of(&filename, "a"));
                }
            }
        }
    }
}
