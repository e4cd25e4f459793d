//! Paths below a repository's address: the GOPROXY protocol
//! (https://go.dev/ref/mod#goproxy-protocol).

use crate::module::{Module, unescape};
use crate::version::Version;
use packhouse_sdk::{Failure, Request};

/// Endpoint of the protocol that a request addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// `MODULE/@v/list`
    List,
    /// `MODULE/@latest`
    Latest,
    /// `MODULE/@v/VERSION.EXTENSION`
    File(Version, FileKind),
    /// `MODULE/@v/QUERY.info`, where the query is a branch, a tag, or a prefix of a version or
    /// commit.
    Query(String),
}

/// A kind of file that every version has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Info,
    Mod,
    Zip,
}

impl FileKind {
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Mod => "mod",
            Self::Zip => "zip",
        }
    }
}

/// A parsed request path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) module: Module,
    pub(crate) endpoint: Endpoint,
}

impl Address {
    /// Parses the path of a request.
    ///
    /// # Errors
    /// 404 if the path is not part of the protocol.
    pub(crate) fn of(request: &Request) -> Result<Self, Failure> {
        let not_found = || {
            Failure::not_found(
                "not found: a module proxy serves MODULE/@v/list, MODULE/@latest and MODULE/@v/VERSION.info, .mod and .zip",
            )
        };
        Self::parse(&request.path).ok_or_else(not_found)
    }

    fn parse(segments: &[String]) -> Option<Self> {
        match segments {
            [module @ .., last] if last == "@latest" => {
                Some(Self { module: parse_module(module)?, endpoint: Endpoint::Latest })
            }
            [module @ .., marker, last] if marker == "@v" => {
                Some(Self { module: parse_module(module)?, endpoint: parse_file(last)? })
            }
            _ => None,
        }
    }

    /// Returns the module, with the version or query if the path has one. Messages and the audit
    /// log show this text.
    pub(crate) fn subject(&self) -> String {
        match &self.endpoint {
            Endpoint::File(version, _) => format!("{}@{version}", self.module),
            Endpoint::Query(query) => format!("{}@{query}", self.module),
            Endpoint::List | Endpoint::Latest => self.module.to_string(),
        }
    }
}

fn parse_module(segments: &[String]) -> Option<Module> {
    Module::unescape(&segments.join("/"))
}

fn parse_file(last: &str) -> Option<Endpoint> {
    if last == "list" {
        return Some(Endpoint::List);
    }
    let (version, extension) = last.rsplit_once('.')?;
    let version = unescape(version)?;
    let kind = [FileKind::Info, FileKind::Mod, FileKind::Zip]
        .into_iter()
        .find(|kind| kind.extension() == extension)?;
    match Version::new(&version) {
        Some(version) => Some(Endpoint::File(version, kind)),
        None if kind == FileKind::Info && is_query(&version) => Some(Endpoint::Query(version)),
        None => None,
    }
}

/// Returns true if a text can be a branch, a tag, or a prefix of a version or commit.
fn is_query(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    (1..=200).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// Returns the path of a version's file below the repository's address.
pub(crate) fn path(module: &Module, version: &Version, kind: FileKind) -> String {
    format!("{}/@v/{}.{}", module.escaped(), crate::module::escape(version.as_str()), kind.extension())
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
    fn addresses_of_the_protocol_are_parsed() {
        let parsed = |path: &str| parse(path).map(|address| (address.module.to_string(), address.endpoint));
        let version = |text: &str| Version::new(text).unwrap();
        for (path, module, expected) in [
            ("a.b/c/@v/list", "a.b/c", Endpoint::List),
            ("a.b/!c/v2/@latest", "a.b/C/v2", Endpoint::Latest),
            ("a.b/c/@v/v1.0.0.info", "a.b/c", Endpoint::File(version("v1.0.0"), FileKind::Info)),
            ("a.b/c/@v/v1.0.0-!r!c.mod", "a.b/c", Endpoint::File(version("v1.0.0-RC"), FileKind::Mod)),
            (
                "a.b/c/@v/v2.0.0+incompatible.zip",
                "a.b/c",
                Endpoint::File(version("v2.0.0+incompatible"), FileKind::Zip),
            ),
            ("a.b/c/@v/main.info", "a.b/c", Endpoint::Query("main".into())),
        ] {
            assert_eq!(parsed(path), Some((module.to_owned(), expected)), "{path}");
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
            assert_eq!(parsed(path), None, "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_path_is_parsed(segments in prop::collection::vec("\\PC{0,12}", 0..6), last in "[a-z!@/.0-9v+-]{0,40}") {
            let _ = Address::parse(&segments);
            if let Some(Address { module, endpoint: Endpoint::File(version, kind) }) = parse(&format!("a.b/c/@v/{last}")) {
                let again = parse(&path(&module, &version, kind));
                prop_assert_eq!(again, Some(Address { module, endpoint: Endpoint::File(version, kind) }));
            }
        }
    }
}
