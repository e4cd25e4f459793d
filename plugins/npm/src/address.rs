//! What a path below the repository's address names. Clients write a scope's slash as `%2f` or plainly.

use crate::name::Name;
use packhouse_sdk::Failure;

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// `/name`: the package.
    Package(Name),
    /// `/name/1.0.0`, `/name/latest`: a version, by its number or a tag.
    Version(Name, String),
    /// `/name/-/name-1.0.0.tgz`: a version's tarball.
    Tarball(Name, String),
    /// `/name/-rev/3`: the package as it was read at this revision.
    AtRevision(Name, String),
    /// `/name/-/name-1.0.0.tgz/-rev/3`.
    TarballAtRevision(Name, String, String),
}

impl Address {
    /// Reads a path.
    ///
    /// # Errors
    /// 404 where nothing can be: no package is called that, or there is more behind it than any client asks for.
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
            _ => Err(nothing()),
        }
    }

    /// The package.
    pub(crate) fn name(&self) -> &Name {
        match self {
            Self::Package(name)
            | Self::Version(name, _)
            | Self::Tarball(name, _)
            | Self::AtRevision(name, _)
            | Self::TarballAtRevision(name, ..) => name,
        }
    }

    /// What a request is about, for the audit log.
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

/// The name that a path begins with, and what follows it. A trailing slash says nothing.
///
/// # Errors
/// 404 where no package is called that.
pub(crate) fn name(path: &[String]) -> Result<(Name, Vec<&str>), Failure> {
    let mut segments: Vec<&str> = path.iter().map(String::as_str).collect();
    segments.pop_if(|last| last.is_empty());
    let taken = match segments.as_slice() {
        [first, ..] if first.starts_with('@') && !first.contains('/') => 2,
        _ => 1,
    };
    let text = segments.get(..taken).ok_or_else(nothing)?.join("/");
    let name = Name::new(&text)
        .ok_or_else(|| Failure::not_found(format!("No package can have the name {text:?}")))?;
    Ok((name, segments.split_off(taken)))
}

/// The version in a tarball's name, which some clients write with the scope before it.
fn version(name: &Name, file: &[&str]) -> Result<String, Failure> {
    let file = match *file {
        [file] => file.rsplit_once('/').map_or(file, |(_, bare)| bare),
        [scope, file] if name.scope() == scope.strip_prefix('@') => file,
        _ => return Err(nothing()),
    };
    let version = name.version_of(file).ok_or_else(|| {
        Failure::not_found(format!("{file} is no file of {name}: tarballs are called {}", name.file("1.0.0")))
    })?;
    Ok(version.to_owned())
}

fn nothing() -> Failure {
    Failure::not_found("Nothing is served at this address")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(path: &[&str]) -> Result<Address, u16> {
        let path: Vec<String> = path.iter().map(|&segment| segment.to_owned()).collect();
        Address::parse(&path).map_err(|failure| failure.status)
    }

    #[test]
    fn every_spelling_of_a_scope_is_the_same() {
        let name = || Name::new("@s/n").unwrap();
        let tarball = Address::Tarball(name(), "1.0.0".to_owned());
        for path in [
            &["@s/n", "-", "n-1.0.0.tgz"][..],
            &["@s", "n", "-", "n-1.0.0.tgz"],
            &["@s/n", "-", "@s/n-1.0.0.tgz"],
            &["@s", "n", "-", "@s", "n-1.0.0.tgz"],
        ] {
            assert_eq!(parsed(path), Ok(tarball.clone()), "{path:?}");
        }
        for path in [&["@s/n"][..], &["@s", "n"], &["@s/n", ""], &["@s", "n", ""]] {
            assert_eq!(parsed(path), Ok(Address::Package(name())), "{path:?}");
        }
    }

    #[test]
    fn what_stands_behind_a_name_is_told_apart() {
        let name = || Name::new("n").unwrap();
        let text = str::to_owned;
        for (path, expected) in [
            (&["n", "1.0.0"][..], Ok(Address::Version(name(), text("1.0.0")))),
            (&["n", "-rev", "3"], Ok(Address::AtRevision(name(), text("3")))),
            (
                &["n", "-", "n-1.0.0.tgz", "-rev", "3"],
                Ok(Address::TarballAtRevision(name(), text("1.0.0"), text("3"))),
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
