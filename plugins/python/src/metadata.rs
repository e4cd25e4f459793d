//! A distribution's core metadata, as `METADATA` and `PKG-INFO` hold it: header fields, a blank line, the description.

use crate::name;
use crate::version::Version;
use std::borrow::Cow;

/// Bytes of the document: a description can be long.
pub(crate) const LIMIT: u64 = 4 << 20;
/// Fields: some projects have hundreds of `Requires-Dist`.
const FIELDS: usize = 20_000;

/// The fields, as they stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metadata {
    /// Names in lower case, in their order.
    fields: Vec<(String, String)>,
    /// What stands behind the fields.
    pub(crate) description: String,
}

impl Metadata {
    /// Reads a document; the error is a sentence. It must say its version, and the name and version of what it describes. Bytes that are
    /// not UTF-8 are Latin-1, as old tools wrote them.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = match core::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => Cow::Owned(bytes.iter().copied().map(char::from).collect::<String>()),
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut metadata = Self::default();
        let mut rest = text;
        while let Some((line, after)) = next_line(rest) {
            rest = after;
            if line.is_empty() {
                metadata.description = rest.to_owned();
                break;
            }
            metadata.line(line)?;
        }
        for needed in ["metadata-version", "name", "version"] {
            match metadata.all(needed).count() {
                1 => {}
                0 => return Err(format!("its metadata have no field {needed}")),
                _ => return Err(format!("its metadata have the field {needed} twice")),
            }
        }
        Ok(metadata)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.starts_with([' ', '\t']) {
            let (_, value) = self.fields.last_mut().ok_or("its metadata begin with a continued line")?;
            value.push('\n');
            value.push_str(line.trim());
            return Ok(());
        }
        let (name, value) = line.split_once(':').ok_or("a line of its metadata is no field")?;
        let valid = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !valid || self.fields.len() >= FIELDS {
            return Err("a line of its metadata is no field".to_owned());
        }
        self.fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        Ok(())
    }

    /// The first value of a field; its name in lower case.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// All values of a field.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// The project that it describes, normalised.
    pub(crate) fn project(&self) -> Option<String> {
        name::project(self.get("name")?)
    }

    /// The version that it describes.
    pub(crate) fn version(&self) -> Option<Version> {
        Version::parse(self.get("version")?)
    }

    /// Which Pythons it runs on, where that is said in a form that clients can read.
    pub(crate) fn requires_python(&self) -> Option<&str> {
        self.get("requires-python").filter(|text| is_python_requirement(text))
    }

    /// The licence that its author states: the expression, else what a classifier says, else the first line of the old field.
    pub(crate) fn license(&self) -> String {
        let classified = || {
            let named =
                |text: &str| text.strip_prefix("License :: ")?.rsplit(" :: ").next().map(str::to_owned);
            self.all("classifier").filter_map(named).find(|name| name != "OSI Approved")
        };
        let first = || self.get("license")?.lines().next().map(str::to_owned);
        let stated = self.get("license-expression").map(str::to_owned).or_else(classified).or_else(first);
        stated.unwrap_or_default().chars().filter(|symbol| !symbol.is_control()).take(512).collect()
    }

    /// One line for a list.
    pub(crate) fn summary(&self) -> String {
        let line = self.get("summary").unwrap_or_default().lines().next().unwrap_or_default();
        line.chars().filter(|symbol| !symbol.is_control()).take(512).collect()
    }
}

/// Whether clients can read this as versions of Python.
pub(crate) fn is_python_requirement(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"<>=!~.,*+- ".contains(&byte);
    !text.is_empty() && text.len() <= 200 && text.bytes().all(plain)
}

/// The next line without its end, and what follows. None at the end.
fn next_line(text: &str) -> Option<(&str, &str)> {
    if text.is_empty() {
        return None;
    }
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    Some((line.strip_suffix('\r').unwrap_or(line), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_and_description_are_read() {
        let text = "Metadata-Version: 2.1\r\nName: Foo.Bar\r\nVersion: 1.0\r\nSummary: a  \r\nClassifier: A :: B\r\n\
            classifier: C\r\nLicense: one\r\n        two\r\nRequires-Python: >=3.8, <4\r\n\r\nName: not a field\r\n";
        let metadata = Metadata::parse(text.as_bytes()).unwrap();
        assert_eq!(metadata.project().as_deref(), Some("foo-bar"));
        assert_eq!(metadata.version().unwrap().to_string(), "1.0");
        assert_eq!(metadata.summary(), "a");
        assert_eq!(metadata.all("classifier").collect::<Vec<_>>(), ["A :: B", "C"]);
        assert_eq!(metadata.get("license"), Some("one\ntwo"));
        assert_eq!(metadata.requires_python(), Some(">=3.8, <4"));
        assert_eq!(metadata.license(), "one");
        let license = |fields: &str| {
            let text = format!("Metadata-Version: 2.4\nName: a\nVersion: 1\n{fields}\n");
            Metadata::parse(text.as_bytes()).unwrap().license()
        };
        let classified = "Classifier: License :: OSI Approved :: MIT License\nLicense: see there";
        assert_eq!(license(classified), "MIT License");
        assert_eq!(
            license(&format!("License-Expression: MIT OR Apache-2.0\n{classified}")),
            "MIT OR Apache-2.0"
        );
        assert_eq!(license("Summary: b"), "");
        assert_eq!(metadata.description, "Name: not a field\r\n");
    }

    #[test]
    fn what_says_too_little_or_twice_is_refused() {
        let whole = "Metadata-Version: 2.1\nName: a\nVersion: 1\n";
        assert!(Metadata::parse(whole.as_bytes()).is_ok());
        for (text, wrong) in [
            (whole.replace("Name: a\n", ""), "no field name"),
            (format!("{whole}Name: b\n"), "name twice"),
            (format!("{whole}Version: 2\n"), "version twice"),
            (format!("{whole}no field\n"), "is no field"),
            (format!(" a\n{whole}"), "continued"),
            (whole.replace("Version: 1", "Vers\u{0}ion: 1"), "is no field"),
        ] {
            let error = Metadata::parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(wrong), "{text:?}: {error}");
        }
        assert!(Metadata::parse(b"Name: \xff").is_err());
        let latin = [whole.as_bytes(), b"Summary: caf\xe9\n"].concat();
        assert_eq!(Metadata::parse(&latin).unwrap().summary(), "caf\u{e9}");
        let odd = Metadata::parse(format!("{whole}Requires-Python: <&>\n").as_bytes()).unwrap();
        assert_eq!(odd.requires_python(), None);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            name in "[a-z]{1,9}", fields in prop::collection::vec(("x-[a-z]{1,6}", "[ -~]{0,30}"), 0..10), description in ".{0,60}",
        ) {
            let mut text = format!("Metadata-Version: 2.4\nName: {name}\nVersion: 1\n");
            for (field, value) in &fields { text += &format!("{field}: {value}\n"); }
            let read = Metadata::parse(format!("{text}\n{description}").as_bytes()).unwrap();
            prop_assert_eq!(read.get("name"), Some(name.as_str()));
            prop_assert_eq!(&read.description, &description);
            let found: Vec<(String, String)> = read.fields[3..].to_vec();
            let given: Vec<(String, String)> = fields.into_iter().map(|(field, value)| (field, value.trim().to_owned())).collect();
            prop_assert_eq!(found, given);
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Metadata::parse(&bytes);
        }
    }
}
