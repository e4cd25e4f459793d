//! What a path below the repository's address names: the GOPROXY protocol (https://go.dev/ref/mod#goproxy-protocol).

use crate::module::{Module, unescape};
use crate::version::Version;
use packhouse_sdk::{Failure, Request};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// `MODULE/@v/list`
    List,
    /// `MODULE/@latest`
    Latest,
    /// `MODULE/@v/VERSION.EXTENSION`
    File(Version, Part),
    /// `MODULE/@v/QUERY.info`, where the query is a branch or a commit.
    Query(String),
}

/// A file of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Info,
    Mod,
    Zip,
}

impl Part {
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Mod => "mod",
            Self::Zip => "zip",
        }
    }
}

/// A request of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) module: Module,
    pub(crate) asked: Asked,
}

impl Address {
    /// Of a request.
    ///
    /// # Errors
    /// 404 for what the protocol does not have.
    pub(crate) fn of(request: &Request) -> Result<Self, Failure> {
        let nothing = || {
            Failure::not_found(
                "not found: a module proxy has MODULE/@v/list, MODULE/@latest and MODULE/@v/VERSION.info, .mod and .zip",
            )
        };
        Self::parse(&request.path).ok_or_else(nothing)
    }

    fn parse(segments: &[String]) -> Option<Self> {
        match segments {
            [module @ .., last] if last == "@latest" => {
                Some(Self { module: named(module)?, asked: Asked::Latest })
            }
            [module @ .., marker, last] if marker == "@v" => {
                Some(Self { module: named(module)?, asked: file(last)? })
            }
            _ => None,
        }
    }

    /// For messages and the audit log.
    pub(crate) fn subject(&self) -> String {
        match &self.asked {
            Asked::File(version, _) => format!("{}@{version}", self.module),
            Asked::Query(query) => format!("{}@{query}", self.module),
            Asked::List | Asked::Latest => self.module.to_string(),
        }
    }
}

fn named(segments: &[String]) -> Option<Module> {
    Module::unescape(&segments.join("/"))
}

fn file(last: &str) -> Option<Asked> {
    if last == "list" {
        return Some(Asked::List);
    }
    let (version, extension) = last.rsplit_once('.')?;
    let version = unescape(version)?;
    let part = [Part::Info, Part::Mod, Part::Zip].into_iter().find(|part| part.extension() == extension)?;
    match Version::new(&version) {
        Some(version) => Some(Asked::File(version, part)),
        None if part == Part::Info && is_query(&version) => Some(Asked::Query(version)),
        None => None,
    }
}

/// A branch, a tag, the beginning of a version or of a commit.
fn is_query(text: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    (1..=200).contains(&text.len()) && text.bytes().all(fine)
}

/// Where a file of a version is, below a repository's address.
pub(crate) fn path(module: &Module, version: &Version, part: Part) -> String {
    format!("{}/@v/{}.{}", module.escaped(), crate::module::escape(version.as_str()), part.extension())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(path: &str) -> Option<Address> {
        let segments: Vec<String> = path.split('/').map(str::to_owned).collect();
        Address::parse(&segments)
    }

    #[test]
    fn addresses_are_those_of_the_protocol() {
        let asked = |path: &str| parse(path).map(|address| (address.module.to_string(), address.asked));
        let version = |text: &str| Version::new(text).unwrap();
        for (path, module, wanted) in [
            ("a.b/c/@v/list", "a.b/c", Asked::List),
            ("a.b/!c/v2/@latest", "a.b/C/v2", Asked::Latest),
            ("a.b/c/@v/v1.0.0.info", "a.b/c", Asked::File(version("v1.0.0"), Part::Info)),
            ("a.b/c/@v/v1.0.0-!r!c.mod", "a.b/c", Asked::File(version("v1.0.0-RC"), Part::Mod)),
            (
                "a.b/c/@v/v2.0.0+incompatible.zip",
                "a.b/c",
                Asked::File(version("v2.0.0+incompatible"), Part::Zip),
            ),
            ("a.b/c/@v/main.info", "a.b/c", Asked::Query("main".into())),
        ] {
            assert_eq!(asked(path), Some((module.to_owned(), wanted)), "{path}");
        }
        for path in [
            "",
            "a.b/c",
            "@latest",
            "a.b/C/@latest",
            "a.b/c/@v/main.zip",
            "a.b/c/@v/v1.0.0.tar",
            "a.b/c/@v/",
            "a.b/c/@v/x y.info",
        ] {
            assert_eq!(asked(path), None, "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_path_is_parsed(segments in prop::collection::vec("\\PC{0,12}", 0..6), last in "[a-z!@/.0-9v+-]{0,40}") {
            let _ = Address::parse(&segments);
            if let Some(Address { module, asked: Asked::File(version, part) }) = parse(&format!("a.b/c/@v/{last}")) {
                let again = parse(&path(&module, &version, part));
                prop_assert_eq!(again, Some(Address { module, asked: Asked::File(version, part) }));
            }
        }
    }
}
