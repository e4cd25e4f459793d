//! Paths below the repository's address. Clients write the slash of a scope as `%2f` or as `/`.

use crate::name::PackageName;
use packhouse_sdk::Failure;

/// The package, version or tarball that a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PackageAddress {
    /// `/name`: the package.
    Package(PackageName),
    /// `/name/1.0.0`, `/name/latest`: a version, by its number or a tag.
    Version(PackageName, String),
    /// `/name/-/name-1.0.0.tgz`: a version's tarball.
    Tarball(PackageName, String),
    /// `/name/-rev/3`: the package at the revision that the client read.
    AtRevision(PackageName, String),
    /// `/name/-/name-1.0.0.tgz/-rev/3`: a tarball at the revision that the client read.
    TarballAtRevision(PackageName, String, String),
}

impl PackageAddress {
    /// Parses a path.
    ///
    /// # Errors
    /// 404 if no package can have this name, or if the rest of the path is unknown.
    pub(crate) fn parse(path: &[String]) -> Result<Self, Failure> {
        let (name, rest) = name(path)?;
        match rest.as_slice() {
            [] => Ok(Self::Package(name)),
            ["-rev", revision] => Ok(Self::AtRevision(name, (*revision).to_owned())),
            ["-", file @ .., "-rev", revision] => {
                let version = version(&name, file)?;
                Ok(Self::TarballAtRevision(name, version, (*revision).to_owned()))
            }
            ["-", file @ ..] => {
                let version = version(&name, file)?;
                Ok(Self::Tarball(name, version))
            }
            [version] => Ok(Self::Version(name, (*version).to_owned())),
            _ => Err(unknown()),
        }
    }

    /// Returns the name of the package.
    pub(crate) fn name(&self) -> &PackageName {
        match self {
            Self::Package(name)
            | Self::Version(name, _)
            | Self::Tarball(name, _)
            | Self::AtRevision(name, _)
            | Self::TarballAtRevision(name, ..) => name,
        }
    }

    /// Returns the subject of a request, for the audit log.
    pub(crate) fn subject(&self) -> String {
        match self {
            Self::Package(name) | Self::AtRevision(name, _) => name.to_string(),
            Self::Version(name, version)
            | Self::Tarball(name, version)
            | Self::TarballAtRevision(name, version, _) => {
                format!("{name}@{version}")
            }
        }
    }
}

/// Splits a path into the package's name and the segments after it. Ignores a trailing slash.
///
/// # Errors
/// 404 if no package can have this name.
pub(crate) fn name(path: &[String]) -> Result<(PackageName, Vec<&str>), Failure> {
    let mut segments: Vec<&str> = path.iter().map(String::as_str).collect();
    segments.pop_if(|last| last.is_empty());
    let taken = match segments.as_slice() {
        [first, ..] if first.starts_with('@') && !first.contains('/') => 2,
        _ => 1,
    };
    let text = segments.get(..taken).ok_or_else(unknown)?.join("/");
    let name = PackageName::new(&text)
        .ok_or_else(|| Failure::not_found(format!("No package can have the name {text:?}")))?;
    Ok((name, segments.split_off(taken)))
}

/// Returns the version in the file name of a tarball. Some clients write the scope before the file
/// name.
fn version(name: &PackageName, file: &[&str]) -> Result<String, Failure> {
    let file = match *file {
        [file] => file.rsplit_once('/').map_or(file, |(_, bare)| bare),
        [scope, file] if name.scope() == scope.strip_prefix('@') => file,
        _ => return Err(unknown()),
    };
    let version = name.version_of(file).ok_or_else(|| {
        let example = name.file("1.0.0");
        Failure::not_found(format!("{name} has no file {file}: its tarballs have names such as {example}"))
    })?;
    Ok(version.to_owned())
}

fn unknown() -> Failure {
    Failure::not_found("Nothing is served at this address")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(path: &[&str]) -> Result<PackageAddress, u16> {
        let path: Vec<String> = path.iter().map(|&segment| segment.to_owned()).collect();
        PackageAddress::parse(&path).map_err(|failure| failure.status)
    }

    #[test]
    fn every_spelling_of_a_scope_is_accepted() {
        let name = || PackageName::new("@s/n").unwrap();
        let tarball = PackageAddress::Tarball(name(), "1.0.0".to_owned());
        for path in [
            &["@s/n", "-", "n-1.0.0.tgz"][..],
            &["@s", "n", "-", "n-1.0.0.tgz"],
            &["@s/n", "-", "@s/n-1.0.0.tgz"],
            &["@s", "n", "-", "@s", "n-1.0.0.tgz"],
        ] {
            assert_eq!(parsed(path), Ok(tarball.clone()), "{path:?}");
        }
        for path in [&["@s/n"][..], &["@s", "n"], &["@s/n", ""], &["@s", "n", ""]] {
            assert_eq!(parsed(path), Ok(PackageAddress::Package(name())), "{path:?}");
        }
    }

    #[test]
    fn the_path_after_a_name_is_parsed() {
        let name = || PackageName::new("n").unwrap();
        let text = str::to_owned;
        for (path, expected) in [
            (&["n", "1.0.0"][..], Ok(PackageAddress::Version(name(), text("1.0.0")))),
            (&["n", "-rev", "3"], Ok(PackageAddress::AtRevision(name(), text("3")))),
            (
                &["n", "-", "n-1.0.0.tgz", "-rev", "3"],
                Ok(PackageAddress::TarballAtRevision(name(), text("1.0.0"), text("3"))),
            ),
            (&["n", "-", "m-1.0.0.tgz"], Err(404)),
            (&["n", "-", "@s", "n-1.0.0.tgz"], Err(404)),
            (&["n", "a", "b"], Err(404)),
            (&["-", "x"], Err(404)),
            (&["@s"], Err(404)),
            (&[""], Err(404)),
        ] {
            assert_eq!(parsed(path), expected, "{path:?}");
        }
    }
}
