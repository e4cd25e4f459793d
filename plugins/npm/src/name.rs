//! Names of packages, by the rules of npm's own validator.

use std::fmt;

/// Maximum number of bytes of a name, including its scope.
const LIMIT: usize = 214;

/// A package's name: `name` or `@scope/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PackageName(String);

impl PackageName {
    /// Parses a full name, with an unencoded slash after its scope. Returns `None` for an
    /// impossible name. The rules are npm's rules for existing packages, which allow capital
    /// letters and `~'!()*`.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let (scope, bare) = match text.strip_prefix('@') {
            Some(rest) => rest.split_once('/').map(|(scope, bare)| (Some(scope), bare))?,
            None => (None, text),
        };
        let fits = text.len() <= LIMIT && part(bare) && scope.is_none_or(part);
        let starts = scope.is_some() || !bare.starts_with(['-', '_', '.']);
        let reserved = matches!(bare, "node_modules" | "favicon.ico") && scope.is_none();
        (fits && starts && !reserved).then(|| Self(text.to_owned()))
    }

    /// Returns the reason why a new package may not have this name, by the rules of npm's own
    /// validator. Returns `None` if it may.
    pub(crate) fn objection(&self) -> Option<&'static str> {
        match () {
            () if self.0.bytes().any(|byte| byte.is_ascii_uppercase()) => {
                Some("its name contains capital letters")
            }
            // A scope may contain these characters.
            () if self.bare().contains(['~', '\'', '!', '(', ')', '*']) => {
                Some("its name contains one of the characters ~'!()*")
            }
            () if self.bare().starts_with('.') => Some("its name begins with a dot"),
            () => None,
        }
    }

    /// Returns the full name.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name without its scope.
    pub(crate) fn bare(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(_, bare)| bare)
    }

    /// Returns the scope, without `@` and the slash.
    pub(crate) fn scope(&self) -> Option<&str> {
        self.0.strip_prefix('@')?.split_once('/').map(|(scope, _)| scope)
    }

    /// Returns the name as a single path segment.
    pub(crate) fn encoded(&self) -> String {
        self.0.replace('/', "%2f")
    }

    /// Returns the file name of a version's tarball.
    pub(crate) fn file(&self, version: &str) -> String {
        format!("{}-{version}.tgz", self.bare())
    }

    /// Returns the path of a version's tarball below the repository's address.
    pub(crate) fn path(&self, version: &str) -> String {
        format!("{}/-/{}", self.0, self.file(version))
    }

    /// Returns the version in the file name of a tarball, or `None` if this package has no such
    /// file name.
    pub(crate) fn version_of<'a>(&self, file: &'a str) -> Option<&'a str> {
        file.strip_prefix(self.bare())?.strip_prefix('-')?.strip_suffix(".tgz")
    }
}

impl fmt::Display for PackageName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Returns true if a scope or bare name is not empty and has only characters that need no encoding
/// in an address.
fn part(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~!*'()".contains(&byte);
    !text.is_empty() && text != "." && text != ".." && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn impossible_names_are_refused() {
        for text in ["a", "left-pad", "JSONStream", "@scope/name", "@s/.x", "a.b_c~", "7zip", "@-/-"] {
            assert!(PackageName::new(text).is_some(), "{text}");
        }
        for text in [
            "",
            "-",
            "_a",
            ".a",
            "@",
            "@s",
            "@s/",
            "@/n",
            "@s/a/b",
            "a/b",
            "a b",
            "é",
            "a%2fb",
            "..",
            "node_modules",
            "favicon.ico",
            &"a".repeat(215),
        ] {
            assert!(PackageName::new(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_new_package_has_stricter_rules() {
        for text in ["a", "@scope/name", "a.b_c", "@s/_x", "@s/-x", "@~s/x", "@_s/x"] {
            assert_eq!(PackageName::new(text).unwrap().objection(), None, "{text}");
        }
        for text in ["JSONStream", "a~", "@s/.x", "@s/x~", "@S/x", "it's"] {
            assert!(PackageName::new(text).unwrap().objection().is_some(), "{text}");
        }
    }

    #[test]
    fn file_names_have_no_scope() {
        let name = PackageName::new("@scope/name").unwrap();
        assert_eq!((name.scope(), name.bare()), (Some("scope"), "name"));
        assert_eq!(name.path("1.0.0"), "@scope/name/-/name-1.0.0.tgz");
        assert_eq!(name.version_of("name-1.0.0-rc.1.tgz"), Some("1.0.0-rc.1"));
        assert_eq!(name.version_of("other-1.0.0.tgz"), None);
    }

    proptest! {
        #[test]
        fn a_version_is_found_again_in_its_file(bare in "[a-z][a-z0-9._-]{0,20}", version in "[0-9]{1,3}\\.[0-9]\\.[0-9](-[a-z0-9.-]{1,8})?") {
            let name = PackageName::new(&bare).unwrap();
            let file = name.file(&version);
            prop_assert_eq!(name.version_of(&file), Some(version.as_str()));
        }

        #[test]
        fn a_name_is_safe_in_paths(text in ".{0,40}") {
            if let Some(name) = PackageName::new(&text) {
                prop_assert!(!name.as_str().contains("//") && !name.as_str().contains(|c: char| c.is_control()));
                prop_assert!(name.as_str().split('/').all(|part| part != "." && part != ".."));
            }
        }
    }
}
