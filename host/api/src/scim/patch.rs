//! Bodies of PATCH (RFC 7644, section 3.5.2), in the forms that directories send: operators in any
//! case, and a path or an object of attributes.

use packhouse_wire::catalogue;
use serde_json::{Map, Value};

use super::attribute;
use super::filter::AttributePath;
use crate::error::ApiError;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PatchKind {
    Add,
    Replace,
    Remove,
}

/// Operation on one attribute of a resource.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PatchOperation {
    pub(crate) kind: PatchKind,
    pub(crate) path: AttributePath,
    /// Value of the operation; null if it has none.
    pub(crate) value: Value,
}

/// Reads the operations of a body, in order. An operation without a path becomes one operation for
/// each attribute of its value. Attributes whose names are malformed are left out there, like other
/// unknown attributes.
pub(crate) fn operations(body: &Map<String, Value>) -> Result<Vec<PatchOperation>, ApiError> {
    let listed = attribute(body, "Operations").and_then(Value::as_array);
    let listed = listed.ok_or_else(|| ApiError::invalid("`Operations` must be a list of operations."))?;
    let mut operations = Vec::with_capacity(listed.len());
    for operation in listed {
        let operation = operation.as_object();
        let operation = operation.ok_or_else(|| ApiError::invalid("Each operation must be an object."))?;
        read(operation, &mut operations)?;
    }
    Ok(operations)
}

fn read(operation: &Map<String, Value>, operations: &mut Vec<PatchOperation>) -> Result<(), ApiError> {
    let kind = kind(operation)?;
    let value = attribute(operation, "value").cloned().unwrap_or_default();
    match attribute(operation, "path") {
        Some(Value::String(path)) => {
            let path = AttributePath::parse(path)
                .ok_or_else(|| ApiError::with(&catalogue::INVALID_SCIM_PATH, path))?;
            operations.push(PatchOperation { kind, path, value });
            Ok(())
        }
        Some(Value::Null) | None => match value {
            _ if kind == PatchKind::Remove => Err(ApiError::from(&catalogue::SCIM_TARGET_REQUIRED)),
            Value::Object(attributes) => {
                let known = attributes.into_iter().filter_map(|(name, value)| {
                    Some(PatchOperation { kind, path: AttributePath::parse(&name)?, value })
                });
                operations.extend(known);
                Ok(())
            }
            _ => Err(ApiError::with(
                &catalogue::INVALID_SCIM_VALUE,
                "an operation without a `path` needs an object as its `value`",
            )),
        },
        Some(_) => Err(ApiError::with(&catalogue::INVALID_SCIM_PATH, "not a text")),
    }
}

fn kind(operation: &Map<String, Value>) -> Result<PatchKind, ApiError> {
    let name = attribute(operation, "op").and_then(Value::as_str).unwrap_or_default();
    match name.to_ascii_lowercase().as_str() {
        "add" => Ok(PatchKind::Add),
        "replace" => Ok(PatchKind::Replace),
        "remove" => Ok(PatchKind::Remove),
        _ => Err(ApiError::invalid("`op` must be `add`, `replace` or `remove`.")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(body: Value) -> Result<Vec<PatchOperation>, &'static str> {
        operations(body.as_object().unwrap()).map_err(|error| error.code().unwrap().code)
    }

    #[test]
    fn an_operation_has_a_path_or_an_object_of_attributes() {
        let read = read(json!({"operations": [
            {"OP": "Replace", "path": "active", "value": "False"},
            {"op": "replace", "value": {"active": false, "name.formatted": "A", "": 1}},
            {"op": "remove", "path": "members[value eq \"7\"]"},
        ]}));
        let read = read.unwrap();
        let short: Vec<_> =
            read.iter().map(|one| (one.kind, one.path.attribute.as_str(), &one.value)).collect();
        let (text, no) = (json!("False"), json!(false));
        assert_eq!(short[0], (PatchKind::Replace, "active", &text));
        assert_eq!(short[1], (PatchKind::Replace, "active", &no));
        assert_eq!(read[2].path, AttributePath::of("name", Some("formatted")));
        assert_eq!(short[3], (PatchKind::Remove, "members", &Value::Null));
        assert_eq!(short.len(), 4);
    }

    #[test]
    fn a_malformed_operation_is_refused_with_the_reason() {
        for (operation, code) in [
            (json!({"op": "move", "path": "active"}), "invalid_request"),
            (json!({"path": "active"}), "invalid_request"),
            (json!("add"), "invalid_request"),
            (json!({"op": "remove"}), "no_target"),
            (json!({"op": "add", "value": true}), "invalid_value"),
            (json!({"op": "add", "path": "a b", "value": true}), "invalid_path"),
            (json!({"op": "add", "path": 7, "value": true}), "invalid_path"),
        ] {
            assert_eq!(read(json!({"Operations": [operation.clone()]})), Err(code), "{operation}");
        }
        assert_eq!(read(json!({})), Err("invalid_request"));
        assert_eq!(read(json!({"Operations": {}})), Err("invalid_request"));
        assert_eq!(read(json!({"Operations": []})), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn no_operation_makes_the_parser_panic(op in ".*", path in ".*", name in ".*", with_path in any::<bool>()) {
            let value = json!({ name: 1 });
            let operation = if with_path {
                json!({"op": "add", "path": path, "value": value})
            } else {
                json!({"op": op, "value": value})
            };
            drop(operations(json!({"Operations": [operation]}).as_object().unwrap()));
        }
    }
}
