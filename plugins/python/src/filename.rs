//! Names of distribution files: wheels (PEP 427, with the tags of PEP 425) and source distributions
//! (PEP 625).

use crate::name;
use crate::version::Version;

/// Maximum bytes of a file name.
const LONGEST: usize = 250;
/// Maximum number of combinations that a wheel's compressed tag sets may expand to.
const TAGS: usize = 1000;

/// Kind of a distribution file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Wheel,
    /// `.tar.gz`.
    Tar,
    /// `.zip`, a format in which some projects still publish their source.
    Zip,
    /// A kind that cannot be published here, only moved from another server. The text is its
    /// `filetype` in the upload form.
    Other(&'static str),
}

impl FileKind {
    /// The value of `filetype` in the upload form.
    pub(crate) fn filetype(self) -> &'static str {
        match self {
            Self::Wheel => "bdist_wheel",
            Self::Tar | Self::Zip => "sdist",
            Self::Other(filetype) => filetype,
        }
    }
}

/// A parsed file name.
#[derive(Clone, Debug)]
pub(crate) struct Filename {
    pub(crate) kind: FileKind,
    /// The normalized project name.
    pub(crate) project: String,
    pub(crate) version: Version,
    /// The part of the name that distinguishes the version's files: a wheel's build and tags, a
    /// source's extension, or the whole name of another kind.
    variant: String,
}

impl Filename {
    /// Parses a name as a file of this project, with any version.
    pub(crate) fn of_project(text: &str, project: &str) -> Option<Self> {
        Self::readings(text).ok()?.into_iter().find(|reading| reading.project == project)
    }

    /// Creates the name of a file whose kind cannot be published here.
    pub(crate) fn other(text: &str, filetype: &'static str, project: &str, version: Version) -> Self {
        let (kind, project) = (FileKind::Other(filetype), project.to_owned());
        Self { kind, project, version, variant: text.to_ascii_lowercase() }
    }

    /// Parses a name as a file of this version of this project.
    pub(crate) fn of(text: &str, project: &str, version: &Version) -> Result<Self, String> {
        let readings = Self::readings(text)?;
        let matches = |reading: &Self| reading.project == project && reading.version == *version;
        readings
            .into_iter()
            .find(matches)
            .ok_or_else(|| format!("The file is named {text}, but the form is for {project} {version}"))
    }

    /// Returns the key that all spellings of a file name share. They share a key because a client's
    /// file system may not distinguish the spellings.
    pub(crate) fn key(&self) -> String {
        format!("{}-{}-{}", self.project, self.version.key(), self.variant)
    }

    /// Returns all readings of a file name. In a source's name, each hyphen may be the one between
    /// project and version.
    fn readings(text: &str) -> Result<Vec<Self>, String> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+!".contains(&byte);
        if text.len() > LONGEST || text.starts_with('.') || !text.bytes().all(plain) {
            let rule = "use at most 250 letters, digits and - _ . + !";
            return Err(format!("{text:?} is not a valid name for a distribution file: {rule}"));
        }
        if let Some(stem) = text.strip_suffix(".whl") {
            return wheel(stem).map(|read| vec![read]).ok_or_else(|| badly_named(text));
        }
        let (kind, stem, extension) = match (text.strip_suffix(".tar.gz"), text.strip_suffix(".zip")) {
            (Some(stem), _) => (FileKind::Tar, stem, "tar.gz"),
            (_, Some(stem)) => (FileKind::Zip, stem, "zip"),
            _ => {
                return Err(format!(
                    "{text} is neither a wheel (.whl) nor a source distribution (.tar.gz, .zip)"
                ));
            }
        };
        let cut = |(at, _): (usize, &str)| {
            let (project, version) = (stem.get(..at)?, stem.get(at + 1..)?);
            let (project, version) = (name::project(project)?, Version::parse(version)?);
            Some(Self { kind, project, version, variant: extension.to_owned() })
        };
        let readings: Vec<Self> = stem.match_indices('-').filter_map(cut).collect();
        if readings.is_empty() { Err(badly_named(text)) } else { Ok(readings) }
    }
}

fn badly_named(text: &str) -> String {
    format!("{text} is not named NAME-VERSION-TAGS.whl or NAME-VERSION.tar.gz with a PEP 440 version")
}

/// Parses `name-version[-build]-python-abi-platform`.
fn wheel(stem: &str) -> Option<Filename> {
    let pieces: Vec<&str> = stem.split('-').collect();
    let (project, version, build, tags) = match pieces.as_slice() {
        [project, version, tags @ ..] if tags.len() == 3 => (project, version, None, tags),
        [project, version, build, tags @ ..] if tags.len() == 3 => (project, version, Some(build), tags),
        _ => return None,
    };
    let tag = |set: &&str| {
        set.split('.').all(|tag| {
            !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        })
    };
    let count: usize = tags.iter().map(|set| set.split('.').count()).product();
    let build_counts = build.is_none_or(|build| build.starts_with(|first: char| first.is_ascii_digit()));
    if !tags.iter().all(tag) || count > TAGS || !build_counts {
        return None;
    }
    let variant = stem.splitn(3, '-').nth(2)?.to_ascii_lowercase();
    Some(Filename {
        kind: FileKind::Wheel,
        project: name::project(project)?,
        version: Version::parse(version)?,
        variant: format!("{variant}.whl"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the last reading of an ambiguous name.
    fn parse(text: &str) -> Result<Filename, String> {
        Ok(Filename::readings(text)?.pop().unwrap())
    }

    #[test]
    fn kinds_of_files_are_recognized() {
        for (text, kind, project, version) in [
            ("foo_bar-1.0-py3-none-any.whl", FileKind::Wheel, "foo-bar", "1.0"),
            (
                "Foo.Bar-1.0-2abc-cp311.cp312-abi3-manylinux_2_17_x86_64.whl",
                FileKind::Wheel,
                "foo-bar",
                "1.0",
            ),
            ("foo-1!2.0+ubuntu_1-py2.py3-none-any.whl", FileKind::Wheel, "foo", "1!2.0+ubuntu.1"),
            ("foo_bar-1.0.tar.gz", FileKind::Tar, "foo-bar", "1.0"),
            ("foo-bar-1.0rc1.tar.gz", FileKind::Tar, "foo-bar", "1.0rc1"),
            ("foo-1.0.zip", FileKind::Zip, "foo", "1.0"),
        ] {
            let read = parse(text).unwrap();
            assert_eq!(
                (read.kind, read.project.as_str(), read.version.to_string().as_str()),
                (kind, project, version),
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_file_names_are_refused() {
        for text in [
            "",
            "foo",
            "foo-1.0",
            "foo-1.0.exe",
            "foo-1.0.tar.bz2",
            "foo-1.0-py3-none.whl",
            "foo-1.0-x-py3-none-any.whl",
            "foo-1.0-py3--any.whl",
            "foo-1.0-py3.-none-any.whl",
            "foo-x-py3-none-any.whl",
            "../foo-1.0.tar.gz",
            "foo-1.0-py3-none-any.WHL",
            ".foo-1.0.tar.gz",
            "foo bar-1.0.tar.gz",
            "foo-1.0-1-2-py3-none-any.whl",
            "föö-1.0.zip",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let many = ["a"; 11].join(".");
        assert!(parse(&format!("foo-1-{many}-{many}-{many}.whl")).is_err());
    }

    #[test]
    fn the_form_decides_how_an_ambiguous_name_is_read() {
        let one = Version::parse("1.post2").unwrap();
        assert_eq!(Filename::of("a-1-2.tar.gz", "a", &one).unwrap().project, "a");
        let two = Version::parse("2").unwrap();
        assert_eq!(Filename::of("a-1-2.tar.gz", "a-1", &two).unwrap().project, "a-1");
        assert!(Filename::of("a-1-2.tar.gz", "b", &two).unwrap_err().contains("a-1-2.tar.gz"));
    }

    #[test]
    fn all_spellings_of_a_file_have_one_key() {
        let key = |text: &str| parse(text).unwrap().key();
        assert_eq!(key("Foo_Bar-1.0-py3-none-any.whl"), key("foo.bar-1.0.0-PY3-none-any.whl"));
        assert_eq!(key("foo_bar-1.0.tar.gz"), key("foo-bar-1.0.tar.gz"));
        assert_ne!(key("foo-1.0.zip"), key("foo-1.0.tar.gz"));
        assert_ne!(key("foo-1.0-1-py3-none-any.whl"), key("foo-1.0-py3-none-any.whl"));
    }

    proptest! {
        #[test]
        fn a_valid_wheel_name_is_parsed(
            name in "[a-z][a-z0-9]{0,6}(_[a-z0-9]{1,4})?", version in "[0-9]{1,3}(\\.[0-9]{1,3}){0,2}(rc[0-9])?",
            tags in "(py3|cp311)-(none|abi3)-(any|win_amd64)",
        ) {
            let read = parse(&format!("{name}-{version}-{tags}.whl")).unwrap();
            prop_assert_eq!(read.project, name.replace('_', "-"));
            prop_assert!(read.version == Version::parse(&version).unwrap());
        }

        #[test]
        fn any_text_is_read(text in "[a-z0-9._+!-]{0,30}(\\.whl|\\.tar\\.gz|\\.zip)?|.{0,40}") {
            let _ = parse(&text);
        }
    }
}
