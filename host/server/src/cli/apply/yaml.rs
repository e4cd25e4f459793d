//! Writer of YAML documents: block style, with every text in double quotes.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Writes an object as a document.
pub(super) fn document(fields: &Map<String, Value>) -> String {
    let mut out = String::new();
    object(&mut out, fields, 0);
    out
}

fn object(out: &mut String, fields: &Map<String, Value>, indent: usize) {
    for (name, value) in fields {
        field(out, name, value, indent);
    }
}

fn field(out: &mut String, name: &str, value: &Value, indent: usize) {
    pad(out, indent);
    key(out, name);
    out.push(':');
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            object(out, fields, indent + 2);
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            out.push('\n');
            for item in items {
                pad(out, indent + 2);
                out.push_str("- ");
                flow(out, item);
                out.push('\n');
            }
        }
        other => {
            out.push(' ');
            flow(out, other);
            out.push('\n');
        }
    }
}

/// Writes a value on one line, in flow style.
fn flow(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => quoted(out, text),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                flow(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (at, (name, value)) in fields.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                key(out, name);
                out.push_str(": ");
                flow(out, value);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

/// Writes the name of a field: plain if no reader of YAML could take it for something else.
fn key(out: &mut String, name: &str) {
    const RESERVED: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let is_plain = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !RESERVED.contains(&name.to_ascii_lowercase().as_str());
    if is_plain { out.push_str(name) } else { quoted(out, name) }
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
            // Writing to a text cannot fail.
            other => write!(out, "\\u{:04x}", u32::from(other)).unwrap_or_default(),
        }
    }
    out.push('"');
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_written_document_is_read_as_the_same_value() {
        let value = json!({
            "name": "a", "yes": "no", "123": "0x7", "empty": [], "none": {}, "nothing": null, "number": 5,
            "text": "two\nlines\t\"quoted\" \\ and ä 日本 🦀 \u{7f}\u{2028}\u{feff}",
            "list": ["x", "*", "@a/b"], "deep": {"er": {"list": [{"a": [1, true], "b: c": {}}, ["y"]]}},
        });
        let text = document(value.as_object().unwrap());
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read, value, "{text}");
        let short = json!({"a": [{"b": "c"}], "d": ["e", "f"]});
        let expected = "a:\n  - {b: \"c\"}\nd: [\"e\", \"f\"]\n";
        assert_eq!(document(short.as_object().unwrap()), expected);
    }
}
