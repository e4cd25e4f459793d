//! Paths of modules: `example.com/tools/v2`, and how they are written in addresses.

use std::fmt;

/// Bytes of a path: with a version it is a record's key.
const LIMIT: usize = 512;

/// A module's path, as the go command accepts it for a module that is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module(String);

impl Module {
    /// Of a path as it stands in a `go.mod`; none for what no module is called.
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

    /// Of a path as it stands in an address, where `!` and a letter are a capital.
    pub(crate) fn unescape(text: &str) -> Option<Self> {
        Self::new(&unescape(text)?)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// As it stands in an address.
    pub(crate) fn escaped(&self) -> String {
        escape(&self.0)
    }

    /// What its path says of its major version: nothing, `/v2`, or `.v3` at gopkg.in.
    pub(crate) fn major(&self) -> &str {
        split_major(&self.0).map(|(_, major)| major).unwrap_or_default()
    }
}

impl fmt::Display for Module {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// An element of a path: no dot at either end, and nothing that a disk or a shell would understand.
fn is_element(element: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    !element.is_empty() && !element.starts_with('.') && !element.ends_with('.') && element.bytes().all(fine)
}

/// A path and its major version; none where that is none: `/v1`, `/v02`.
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

/// A capital as `!` and its letter.
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

/// The other way round; none for a capital as it is, and a `!` before anything but a small letter.
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
    fn paths_are_those_of_modules() {
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
    fn a_path_says_its_major_version() {
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
        fn any_text_comes_back(text in "[ -~&&[^!]]{0,40}") {
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
