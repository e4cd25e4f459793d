//! Writes YAML that every reader understands in the same way: block style, with each text in double
//! quotes and with only printable characters. If a client cannot read one of the texts, it cannot
//! read any part of the index.

use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Adds the fields of a map, each on its own lines, indented by `indent` spaces.
pub(crate) fn fields(out: &mut String, map: &Map<String, Value>, indent: usize) {
    for (name, value) in map {
        pad(out, indent);
        field(out, name, value, indent);
    }
}

/// Adds an item of a list. The first field of a map is on the line of the dash.
pub(crate) fn item(out: &mut String, value: &Value, indent: usize) {
    pad(out, indent);
    out.push_str("- ");
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (at, (name, value)) in map.iter().enumerate() {
                if at > 0 {
                    pad(out, indent + 2);
                }
                field(out, name, value, indent + 2);
            }
        }
        other => {
            inline(out, other);
            out.push('\n');
        }
    }
}

/// Adds a key and its colon.
pub(crate) fn key(out: &mut String, name: &str) {
    const RESERVED: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && !RESERVED.contains(&name.to_ascii_lowercase().as_str());
    if plain {
        out.push_str(name)
    } else {
        quoted(out, name)
    }
    out.push(':');
}

fn field(out: &mut String, name: &str, value: &Value, indent: usize) {
    key(out, name);
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            fields(out, map, indent + 2);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            items.iter().for_each(|one| item(out, one, indent));
        }
        other => {
            out.push(' ');
            inline(out, other);
            out.push('\n');
        }
    }
}

/// Adds a value on a single line, as JSON, which is also YAML in flow style.
fn inline(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => quoted(out, text),
        Value::Array(items) => {
            out.push('[');
            for (at, one) in items.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                inline(out, one);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (at, (name, one)) in map.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                quoted(out, name);
                out.push_str(": ");
                inline(out, one);
            }
            out.push('}');
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for symbol in text.chars() {
        match symbol {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' => {
                out.push(symbol)
            }
            '\u{ff00}'..='\u{fffd}' | '\u{10000}'.. => out.push(symbol),
            other => {
                let _ = write!(out, "\\u{:04x}", u32::from(other));
            }
        }
    }
    out.push('"');
}

fn pad(out: &mut String, indent: usize) {
    (0..indent).for_each(|_| out.push(' '));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn written(value: &Value) -> String {
        let mut out = String::new();
        fields(&mut out, value.as_object().unwrap(), 0);
        out
    }

    #[test]
    fn written_yaml_is_read_as_the_same_value() {
        let value = json!({
            "name": "a", "yes": "no", "123": "0x7", "list": ["x", ["y"], {"k": [1, true, null], "e": {}}], "map": {"deep": {"er": "\u{7f}\u{85}\u{2028}\u{feff}"}},
            "empty": [], "none": {}, "text": "two\nlines\t\"quoted\" \\ and ä 日本 🦀", "on": {"off": false},
        });
        let read: Value = serde_saphyr::from_str(&written(&value)).unwrap();
        assert_eq!(read, value, "{}", written(&value));
        assert_eq!(written(&json!({"a": [{"b": "c", "d": ["e"]}]})), "a:\n- b: \"c\"\n  d:\n  - \"e\"\n");
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            (-1000i64..1000).prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("\\PC{1,8}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_document_is_read_as_the_same_value(value in prop::collection::btree_map("[a-z0-9]{1,6}", values(), 1..4)) {
            let value = Value::Object(value.into_iter().filter(|(name, _)| name != "<<").collect());
            let text = written(&value);
            let read: Value = serde_saphyr::from_str(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
            prop_assert_eq!(read, value, "{}", text);
        }
    }
}
