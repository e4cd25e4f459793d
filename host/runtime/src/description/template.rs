//! Strings and JSON with placeholders, such as `{message}`. Descriptions use them to define the
//! host's answers.

use serde_json::{Map, Value};

/// One piece of a text: plain, or a placeholder.
enum TemplatePiece<'a> {
    Plain(&'a str),
    Placeholder(&'a str),
}

/// Returns the pieces of a text, in order. A brace that opens no placeholder is plain.
fn pieces(text: &str) -> Vec<TemplatePiece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, behind)) = after.split_once('}') else { break };
        if !before.is_empty() {
            pieces.push(TemplatePiece::Plain(before));
        }
        pieces.push(TemplatePiece::Placeholder(name));
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(TemplatePiece::Plain(rest));
    }
    pieces
}

/// Fills the placeholders of a text with values from `found`. Placeholders without a value are left
/// out.
#[must_use]
pub fn fill_text(template: &str, found: &dyn Fn(&str) -> Option<Value>) -> String {
    let filled = pieces(template).into_iter().map(|piece| match piece {
        TemplatePiece::Plain(text) => text.to_owned(),
        TemplatePiece::Placeholder(name) => match found(name) {
            None => String::new(),
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
        },
    });
    filled.collect()
}

/// Fills the placeholders of JSON strings with values from `found`. A string that consists of one
/// placeholder becomes the placeholder's value, of any type. A member or item that is one
/// placeholder without a value is left out.
#[must_use]
pub fn fill(template: &Value, found: &dyn Fn(&str) -> Option<Value>) -> Option<Value> {
    match template {
        Value::String(text) => match pieces(text).as_slice() {
            [TemplatePiece::Placeholder(name)] => found(name),
            _ => Some(Value::String(fill_text(text, found))),
        },
        Value::Array(items) => Some(items.iter().filter_map(|item| fill(item, found)).collect()),
        Value::Object(members) => Some(Value::Object(fill_members(members, found))),
        other => Some(other.clone()),
    }
}

/// Fills the placeholders of an object's members.
#[must_use]
pub fn fill_members(
    members: &Map<String, Value>,
    found: &dyn Fn(&str) -> Option<Value>,
) -> Map<String, Value> {
    let filled = members.iter().filter_map(|(name, value)| Some((name.clone(), fill(value, found)?)));
    filled.collect()
}

/// Returns an error that names the first placeholder of this text that is not in `known`.
pub(crate) fn check_text(what: &str, text: &str, known: &[&str]) -> Result<(), String> {
    let unknown = pieces(text).into_iter().find_map(|piece| match piece {
        TemplatePiece::Placeholder(name) => (!known.contains(&name)).then_some(name),
        TemplatePiece::Plain(plain) => plain.contains(['{', '}']).then_some(plain),
    });
    match unknown {
        None => Ok(()),
        Some(found) => Err(format!("the placeholders of {what} are {}, not {found:?}", known.join(", "))),
    }
}

/// Returns an error that names the first placeholder in this JSON that is not in `known`.
pub(crate) fn check(what: &str, template: &Value, known: &[&str]) -> Result<(), String> {
    match template {
        Value::String(text) => check_text(what, text, known),
        Value::Array(items) => items.iter().try_for_each(|item| check(what, item, known)),
        Value::Object(members) => members.values().try_for_each(|member| check(what, member, known)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(name: &str) -> Option<Value> {
        match name {
            "status" => Some(json!(404)),
            "message" => Some(json!("no such thing")),
            "detail" => None,
            _ => panic!("{name} is not expected"),
        }
    }

    #[test]
    fn a_single_placeholder_keeps_its_type_and_is_left_out_without_a_value() {
        let template =
            json!({"s": "{status}", "t": "{status}: {message}", "d": "{detail}", "n": [1, "{detail}"]});
        let filled = fill(&template, &found).unwrap();
        assert_eq!(filled, json!({"s": 404, "t": "404: no such thing", "n": [1]}));
        assert_eq!(fill_text("{detail}{message}.", &found), "no such thing.");
    }

    #[test]
    fn unknown_placeholders_and_stray_braces_are_refused() {
        let known = ["status"];
        assert!(check("x", &json!(["{status}", 1, {"a": "plain"}]), &known).is_ok());
        for wrong in ["{code}", "{status", "status}", "{}"] {
            assert!(check("x", &json!([{ "a": wrong }]), &known).is_err(), "{wrong}");
        }
    }
}
