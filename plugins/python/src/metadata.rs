//! A distribution's core metadata, the format of `METADATA` and `PKG-INFO`: header fields, a blank
//! line and the description.

use crate::name;
use crate::version::Version;
use std::borrow::Cow;

/// Maximum bytes of the document, whose description can be long.
pub(crate) const LIMIT: u64 = 4 << 20;
/// Maximum number of fields. Some projects have hundreds of `Requires-Dist`.
const FIELDS: usize = 20_000;

/// Parsed core metadata, with unchanged values.
#[derive(Clone, Debug, Default)]
pub(crate) struct CoreMetadata {
    /// Names, in lower case, and values of the fields, in the order of the document.
    fields: Vec<(String, String)>,
    /// The text after the fields.
    pub(crate) description: String,
}

impl CoreMetadata {
    /// Parses a document. The metadata version, name and version must each occur once. Reads input
    /// that is not UTF-8 as Latin-1, because old tools wrote Latin-1.
    ///
    /// # Errors
    /// Returns a clause about the file, such as `its metadata has no field name`, for a message to
    /// the client.
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
                0 => return Err(format!("its metadata has no field {needed}")),
                _ => return Err(format!("its metadata has the field {needed} twice")),
            }
        }
        Ok(metadata)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.starts_with([' ', '\t']) {
            let (_, value) = self.fields.last_mut().ok_or("its metadata begins with a continuation line")?;
            value.push('\n');
            value.push_str(line.trim());
            return Ok(());
        }
        let (name, value) = line.split_once(':').ok_or("its metadata has a line that is not a field")?;
        let valid = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !valid || self.fields.len() >= FIELDS {
            return Err("its metadata has a line that is not a field".to_owned());
        }
        self.fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        Ok(())
    }

    /// Returns the first value of a field. `name` is in lower case.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// Returns all values of a field. `name` is in lower case.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// Returns the normalized name of the project.
    pub(crate) fn project(&self) -> Option<String> {
        name::project(self.get("name")?)
    }

    /// Returns the parsed version.
    pub(crate) fn version(&self) -> Option<Version> {
        Version::parse(self.get("version")?)
    }

    /// Returns the supported versions of Python, if clients can read the field's value.
    pub(crate) fn requires_python(&self) -> Option<&str> {
        self.get("requires-python").filter(|text| is_python_requirement(text))
    }

    /// Returns the author's licence: the licence expression, else the first licence classifier
    /// other than `OSI Approved`, else the first line of the old licence field.
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

    /// Returns the first line of the summary, for lists.
    pub(crate) fn summary(&self) -> String {
        let line = self.get("summary").unwrap_or_default().lines().next().unwrap_or_default();
        line.chars().filter(|symbol| !symbol.is_control()).take(512).collect()
    }
}

/// Returns true if clients can read this text as versions of Python.
pub(crate) fn is_python_requirement(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"<>=!~.,*+- ".contains(&byte);
    !text.is_empty() && text.len() <= 200 && text.bytes().all(plain)
}

/// Returns the next line without its line end, and the rest. `None` at the end of the text.
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
        let metadata = CoreMetadata::parse(text.as_bytes()).unwrap();
        assert_eq!(metadata.project().as_deref(), Some("foo-bar"));
        assert_eq!(metadata.version().unwrap().to_string(), "1.0");
        assert_eq!(metadata.summary(), "a");
        assert_eq!(metadata.all("classifier").collect::<Vec<_>>(), ["A :: B", "C"]);
        assert_eq!(metadata.get("license"), Some("one\ntwo"));
        assert_eq!(metadata.requires_python(), Some(">=3.8, <4"));
        assert_eq!(metadata.license(), "one");
        let license = |fields: &str| {
            let text = format!("Metadata-Version: 2.4\nName: a\nVersion: 1\n{fields}\n");
            CoreMetadata::parse(text.as_bytes()).unwrap().license()
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
    fn missing_and_repeated_fields_are_refused() {
        let whole = "Metadata-Version: 2.1\nName: a\nVersion: 1\n";
        assert!(CoreMetadata::parse(whole.as_bytes()).is_ok());
        for (text, wrong) in [
            (whole.replace("Name: a\n", ""), "no field name"),
            (format!("{whole}Name: b\n"), "name twice"),
            (format!("{whole}Version: 2\n"), "version twice"),
            (format!("{whole}no field\n"), "is not a field"),
            (format!(" a\n{whole}"), "continuation"),
            (whole.replace("Version: 1", "Vers\u{0}ion: 1"), "is not a field"),
        ] {
            let error = CoreMetadata::parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(wrong), "{text:?}: {error}");
        }
        assert!(CoreMetadata::parse(b"Name: \xff").is_err());
        let latin = [whole.as_bytes(), b"Summary: caf\xe9\n"].concat();
        assert_eq!(CoreMetadata::parse(&latin).unwrap().summary(), "caf\u{e9}");
        let odd = CoreMetadata::parse(format!("{whole}Requires-Python: <&>\n").as_bytes()).unwrap();
        assert_eq!(odd.requires_python(), None);
    }

    proptest! {
        #[test]
        fn written_fields_are_read(
            name in "[a-z]{1,9}", fields in prop::collection::vec(("x-[a-z]{1,6}", "[ -~]{0,30}"), 0..10), description in ".{0,60}",
        ) {
            let mut text = format!("Metadata-Version: 2.4\nName: {name}\nVersion: 1\n");
            for (field, value) in &fields { text += &format!("{field}: {value}\n"); }
            let read = CoreMetadata::parse(format!("{text}\n{description}").as_bytes()).unwrap();
            prop_assert_eq!(read.get("name"), Some(name.as_str()));
            prop_assert_eq!(&read.description, &description);
            let found: Vec<(String, String)> = read.fields[3..].to_vec();
            let given: Vec<(String, String)> = fields.into_iter().map(|(field, value)| (field, value.trim().to_owned())).collect();
            prop_assert_eq!(found, given);
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = CoreMetadata::parse(&bytes);
        }
    }
}
