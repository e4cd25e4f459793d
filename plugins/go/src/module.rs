//! Module paths such as `example.com/tools/v2`, and their escaped form in request paths.

use std::fmt;

/// Maximum bytes of a module path. A record key contains the path and a version, and may have at
/// most 1,024 bytes.
const LIMIT: usize = 512;

/// A module path that the go command accepts for a fetched module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module(String);

impl Module {
    /// Parses an unescaped path, as in a `go.mod`. Returns `None` if the path is not a valid module
    /// path.
    pub(crate) fn new(path: &str) -> Option<Self> {
        let mut elements = path.split('/');
        let first = elements.next().unwrap_or_default();
        let host =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        let is_host = first.contains('.') && !first.starts_with('-') && first.bytes().all(host);
        let good =
            path.len() <= LIMIT && is_host && path.split('/').all(is_element) && split_major(path).is_some();
        good.then(|| Self(path.to_owned()))
    }

    /// Parses an escaped path of a request, in which `!` and a small letter stand for a capital.
    pub(crate) fn unescape(text: &str) -> Option<Self> {
        Self::new(&unescape(text)?)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the escaped form of the path, for requests.
    pub(crate) fn escaped(&self) -> String {
        escape(&self.0)
    }

    /// Returns the major version suffix of the path: empty, `/v2`, or `.v3` at gopkg.in.
    pub(crate) fn major(&self) -> &str {
        split_major(&self.0).map(|(_, major)| major).unwrap_or_default()
    }
}

impl fmt::Display for Module {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Returns true if a path element is valid. It must not have a dot at either end, or a character
/// that is special to a file system or a shell.
fn is_element(element: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    !element.is_empty() && !element.starts_with('.') && !element.ends_with('.') && element.bytes().all(fine)
}

/// Splits a path into its base and its major version. Returns `None` if the suffix is invalid, such
/// as `/v1` or `/v02`.
fn split_major(path: &str) -> Option<(&str, &str)> {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if path.starts_with("gopkg.in/") {
        let at = path.rfind(".v")?;
        let (before, major) = path.split_at(at);
        let digits = major.get(2..)?.trim_end_matches("-unstable");
        let good = number(digits) && (digits == "0" || !digits.starts_with('0'));
        return good.then_some((before, major));
    }
    let Some(at) = path.rfind("/v") else { return Some((path, "")) };
    let (before, major) = path.split_at(at);
    let digits = major.get(2..)?;
    if !number(digits) {
        return Some((path, ""));
    }
    (!digits.starts_with('0') && digits != "1").then_some((before, major))
}

/// Escapes each capital as `!` and the small letter.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for symbol in text.chars() {
        if symbol.is_ascii_uppercase() {
            escaped.push('!');
        }
        escaped.push(symbol.to_ascii_lowercase());
    }
    escaped
}

/// Reverses [`escape`]. Returns `None` if the text has a capital, or a `!` without a small letter
/// after it.
pub(crate) fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut symbols = text.chars();
    while let Some(symbol) = symbols.next() {
        match symbol {
            '!' => plain.push(symbols.next().filter(char::is_ascii_lowercase)?.to_ascii_uppercase()),
            symbol if symbol.is_ascii_uppercase() => return None,
            symbol => plain.push(symbol),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn module_paths_are_validated() {
        for good in [
            "example.com/a",
            "github.com/BurntSushi/toml",
            "example.com",
            "a.b/c/v2",
            "gopkg.in/yaml.v3",
            "a.b/v/vx",
        ] {
            assert!(Module::new(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "a",
            "a/b",
            "Example.com/a",
            "-a.com/b",
            "a.com/",
            "a.com//b",
            "a.com/.b",
            "a.com/b.",
            "a.com/v1",
            "a.com/v0",
            "a.com/v02",
            "gopkg.in/yaml",
            "a.com/ä",
            "a.com/b@v1",
            "a.com/!b",
        ] {
            assert_eq!(Module::new(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_path_has_its_major_version() {
        for (path, major) in
            [("a.b/c", ""), ("a.b/c/v2", "/v2"), ("gopkg.in/yaml.v3", ".v3"), ("a.b/c/vx", "")]
        {
            assert_eq!(Module::new(path).unwrap().major(), major, "{path}");
        }
    }

    #[test]
    fn capitals_are_escaped() {
        assert_eq!(escape("github.com/BurntSushi"), "github.com/!burnt!sushi");
        assert_eq!(unescape("!burnt!sushi").as_deref(), Some("BurntSushi"));
        for bad in ["A", "!", "!A", "!1", "!!a"] {
            assert_eq!(unescape(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn escaping_can_be_reversed(text in "[ -~&&[^!]]{0,40}") {
            prop_assert_eq!(unescape(&escape(&text)), Some(text));
        }

        #[test]
        fn any_path_is_read(text in "\\PC{0,60}", more in "[a-z.]{1,6}/[!a-zA-Z./v0-9]{0,20}") {
            let _ = (Module::new(&text), Module::unescape(&text), Module::new(&more));
            if let Some(module) = Module::unescape(&more) {
                prop_assert_eq!(Module::unescape(&module.escaped()), Some(module));
            }
        }
    }
}
