//! Filters and attribute paths of SCIM (RFC 7644, sections 3.4.2.2 and 3.5.2). The only operator is
//! `eq`, which is what directories send. Names of attributes and the operator are case-insensitive.

use serde_json::Value;

/// Beginnings of an attribute that is named together with its schema.
const CORE: [&str; 2] =
    ["urn:ietf:params:scim:schemas:core:2.0:user:", "urn:ietf:params:scim:schemas:core:2.0:group:"];

/// Comparison such as `userName eq "jane@example.com"`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Comparison {
    pub(crate) path: AttributePath,
    /// A text, a number, a boolean or null.
    pub(crate) value: Value,
}

/// Path such as `active`, `name.familyName` or `emails[type eq "work"].value`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AttributePath {
    /// Name of the attribute in lower case, without the schema of users and groups. An attribute of
    /// another schema keeps it.
    pub(crate) attribute: String,
    /// Comparison in brackets, which selects values of the attribute.
    pub(crate) selection: Option<Box<Comparison>>,
    /// Name of the sub-attribute in lower case.
    pub(crate) sub: Option<String>,
}

impl Comparison {
    /// Parses a filter. Returns `None` if it is malformed, or more than one comparison by `eq`.
    pub(crate) fn parse(text: &str) -> Option<Comparison> {
        let (path, rest) = AttributePath::read(text.trim())?;
        Comparison::of(path, rest)
    }

    /// Parses a comparison without brackets.
    fn plain(text: &str) -> Option<Comparison> {
        let (name, rest) = split_name(text.trim());
        let (attribute, sub) = names(name)?;
        Comparison::of(AttributePath { attribute, selection: None, sub }, rest)
    }

    /// Parses the operator and the value after the path.
    fn of(path: AttributePath, rest: &str) -> Option<Comparison> {
        if !rest.starts_with(char::is_whitespace) {
            return None;
        }
        let (operator, value) = rest.trim_start().split_once(char::is_whitespace)?;
        if !operator.eq_ignore_ascii_case("eq") {
            return None;
        }
        let value: Value = serde_json::from_str(value.trim()).ok()?;
        (!value.is_object() && !value.is_array()).then_some(Comparison { path, value })
    }
}

impl AttributePath {
    /// Parses a path. Returns `None` if it is malformed.
    pub(crate) fn parse(text: &str) -> Option<AttributePath> {
        let (path, rest) = AttributePath::read(text.trim())?;
        rest.is_empty().then_some(path)
    }

    /// Path of an attribute, or of a sub-attribute, with names in lower case.
    pub(crate) fn of(attribute: &str, sub: Option<&str>) -> AttributePath {
        AttributePath { attribute: attribute.to_owned(), selection: None, sub: sub.map(str::to_owned) }
    }

    /// Reads a path at the start of a text. Returns it with the rest of the text.
    fn read(text: &str) -> Option<(AttributePath, &str)> {
        let (name, rest) = split_name(text);
        let (attribute, sub) = names(name)?;
        let Some(inner) = rest.strip_prefix('[') else {
            return Some((AttributePath { attribute, selection: None, sub }, rest));
        };
        if sub.is_some() {
            return None;
        }
        let (inner, rest) = split_at_bracket(inner)?;
        let selection = Some(Box::new(Comparison::plain(inner)?));
        let (sub, rest) = match rest.strip_prefix('.') {
            Some(rest) => {
                let (sub, rest) = split_name(rest);
                (Some(checked(&sub.to_ascii_lowercase())?), rest)
            }
            None => (None, rest),
        };
        Some((AttributePath { attribute, selection, sub }, rest))
    }
}

/// Splits a text before the first bracket or space.
fn split_name(text: &str) -> (&str, &str) {
    let ends = |letter: char| letter == '[' || letter.is_whitespace();
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

/// Splits a text at its first closing bracket outside of a JSON text.
fn split_at_bracket(text: &str) -> Option<(&str, &str)> {
    let (mut is_text, mut is_escaped) = (false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_text => is_escaped = true,
            '"' => is_text = !is_text,
            ']' if !is_text => {
                let (inner, rest) = text.split_at(at);
                return Some((inner, rest.strip_prefix(']')?));
            }
            _ => {}
        }
    }
    None
}

/// Returns the names of an attribute and of a sub-attribute, in lower case.
fn names(text: &str) -> Option<(String, Option<String>)> {
    let lower = text.to_ascii_lowercase();
    let name = match CORE.iter().find_map(|schema| lower.strip_prefix(*schema)) {
        Some(name) => name,
        None if lower.starts_with("urn:") => return Some((lower.clone(), None)),
        None => lower.as_str(),
    };
    match name.split_once('.') {
        Some((attribute, sub)) => Some((checked(attribute)?, Some(checked(sub)?))),
        None => Some((checked(name)?, None)),
    }
}

/// Returns a name if it has only the letters of attribute names.
fn checked(name: &str) -> Option<String> {
    let is_valid = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '$');
    (!name.is_empty() && name.chars().all(is_valid)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_filter_compares_one_attribute() {
        let of = |text: &str| {
            let Comparison { path, value } = Comparison::parse(text)?;
            Some((path.attribute, path.sub, value))
        };
        let found = |attribute: &str, sub: Option<&str>, value: Value| {
            Some((attribute.to_owned(), sub.map(str::to_owned), value))
        };
        for (text, expected) in [
            (r#"userName eq "a@b""#, found("username", None, json!("a@b"))),
            (r#"  USERNAME   Eq  "a \"b\" c"  "#, found("username", None, json!("a \"b\" c"))),
            (r#"emails.value eq "a@b""#, found("emails", Some("value"), json!("a@b"))),
            (r#"emails[type eq "work"].value eq "a@b""#, found("emails", Some("value"), json!("a@b"))),
            (
                r#"urn:ietf:params:scim:schemas:core:2.0:User:userName eq "x""#,
                found("username", None, json!("x")),
            ),
            ("active eq true", found("active", None, json!(true))),
            ("x eq null", found("x", None, json!(null))),
            (r#"userName sw "a""#, None),
            (r#"userName eq "a" and active eq true"#, None),
            (r#"not (userName eq "a")"#, None),
            (r#"(userName eq "a")"#, None),
            ("userName eq a", None),
            ("userName eq 'a'", None),
            (r#"userName eq {"a": 1}"#, None),
            ("userName pr", None),
            ("userName", None),
            ("", None),
            (r#"userName eq "a"#, None),
            (r#"a.b.c eq "x""#, None),
            (r#"emails[type eq "work""#, None),
            (r#"a[b[c eq 1] eq 2] eq 3"#, None),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn a_path_names_an_attribute_and_selects_values() {
        let path = AttributePath::parse(r#"emails[type eq "wo]rk"].Value"#).unwrap();
        assert_eq!((path.attribute.as_str(), path.sub.as_deref()), ("emails", Some("value")));
        let selection = path.selection.unwrap();
        assert_eq!((selection.path.attribute.as_str(), selection.value), ("type", json!("wo]rk")));
        let family = AttributePath::of("name", Some("familyname"));
        assert_eq!(AttributePath::parse("name.familyName"), Some(family));
        assert_eq!(AttributePath::parse("Active"), Some(AttributePath::of("active", None)));
        let extension = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department";
        assert_eq!(AttributePath::parse(extension).unwrap().attribute, extension.to_ascii_lowercase());
        let all = "|.|a.|.a|a b|a[]|a[b]|a[b eq 1|a[b eq 1].|a[b eq 1]c|a.b[c eq 1]";
        for malformed in all.split('|') {
            assert_eq!(AttributePath::parse(malformed), None, "{malformed}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in ".*", name in "[a-zA-Z.$]{0,9}", rest in "[\\[\\]\". eq\\\\a-z]*") {
            drop(Comparison::parse(&text));
            drop(AttributePath::parse(&text));
            drop(Comparison::parse(&format!("{name}{rest}")));
            drop(AttributePath::parse(&format!("{name}{rest}")));
        }

        #[test]
        fn every_text_can_be_the_value(text in ".*") {
            let filter = format!("userName eq {}", json!(text));
            prop_assert_eq!(Comparison::parse(&filter).map(|found| found.value), Some(json!(text)));
        }
    }
}
