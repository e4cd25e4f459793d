//! Texts and JSON with placeholders, as `{message}`: how a description says what an answer of the host's looks like.

use serde_json::{Map, Value};

/// One piece of a text: as it stands, or a placeholder by its name.
enum Piece<'a> {
    Plain(&'a str),
    Placeholder(&'a str),
}

/// The pieces of a text, in order. A brace that opens no placeholder is plain.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, behind)) = after.split_once('}') else { break };
        if !before.is_empty() {
            pieces.push(Piece::Plain(before));
        }
        pieces.push(Piece::Placeholder(name));
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Plain(rest));
    }
    pieces
}

/// A text with its placeholders filled in by `found`. What has no value is left out.
#[must_use]
pub fn fill_text(template: &str, found: &dyn Fn(&str) -> Option<Value>) -> String {
    let filled = pieces(template).into_iter().map(|piece| match piece {
        Piece::Plain(text) => text.to_owned(),
        Piece::Placeholder(name) => match found(name) {
            None => String::new(),
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
        },
    });
    filled.collect()
}

/// JSON with the placeholders of its texts filled in by `found`. A text that is one placeholder becomes its value, of whatever type;
/// a member or an item whose one placeholder has no value is left out.
#[must_use]
pub fn fill(template: &Value, found: &dyn Fn(&str) -> Option<Value>) -> Option<Value> {
    match template {
        Value::String(text) => match pieces(text).as_slice() {
            [Piece::Placeholder(name)] => found(name),
            _ => Some(Value::String(fill_text(text, found))),
        },
        Value::Array(items) => Some(items.iter().filter_map(|item| fill(item, found)).collect()),
        Value::Object(members) => Some(Value::Object(fill_members(members, found))),
        other => Some(other.clone()),
    }
}

/// The same of an object's members.
#[must_use]
pub fn fill_members(
    members: &Map<String, Value>,
    found: &dyn Fn(&str) -> Option<Value>,
) -> Map<String, Value> {
    let filled = members.iter().filter_map(|(name, value)| Some((name.clone(), fill(value, found)?)));
    filled.collect()
}

/// Says which placeholder of this text is none of `known`.
pub(crate) fn check_text(what: &str, text: &str, known: &[&str]) -> Result<(), String> {
    let unknown = pieces(text).into_iter().find_map(|piece| match piece {
        Piece::Placeholder(name) => (!known.contains(&name)).then_some(name),
        Piece::Plain(plain) => plain.contains(['{', '}']).then_some(plain),
    });
    match unknown {
        None => Ok(()),
        Some(found) => Err(format!("the placeholders of {what} are {}, not {found:?}", known.join(", "))),
    }
}

/// Says which placeholder in this JSON is none of `known`.
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
            _ => panic!("{name} is not asked for"),
        }
    }

    #[test]
    fn a_text_that_is_one_placeholder_keeps_its_type_and_what_has_no_value_is_left_out() {
        let template =
            json!({"s": "{status}", "t": "{status}: {message}", "d": "{detail}", "n": [1, "{detail}"]});
        let filled = fill(&template, &found).unwrap();
        assert_eq!(filled, json!({"s": 404, "t": "404: no such thing", "n": [1]}));
        assert_eq!(fill_text("{detail}{message}.", &found), "no such thing.");
    }

    #[test]
    fn unknown_placeholders_and_lost_braces_are_told() {
        let known = ["status"];
        assert!(check("x", &json!(["{status}", 1, {"a": "plain"}]), &known).is_ok());
        for wrong in ["{code}", "{status", "status}", "{}"] {
            assert!(check("x", &json!([{ "a": wrong }]), &known).is_err(), "{wrong}");
        }
    }
}
