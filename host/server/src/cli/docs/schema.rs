//! Shapes of JSON in the OpenAPI document, as text and as rows of a table.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::markdown::{cell, code};

/// A field: its path, its type, whether it is required, and its meaning.
pub(super) type Row = [String; 4];

/// Shapes of the document by their names.
pub(super) struct Schemas<'a>(pub(super) &'a Map<String, Value>);

impl Schemas<'_> {
    /// The type of a shape in words, as Markdown.
    pub(super) fn type_of(&self, schema: &Value) -> String {
        if let Some(name) = self.name_of(schema) {
            return format!("[{name}](#{})", name.to_lowercase());
        }
        for several in ["oneOf", "anyOf"] {
            if let Some(parts) = schema.get(several).and_then(Value::as_array) {
                return parts.iter().map(|part| self.type_of(part)).collect::<Vec<_>>().join(" or ");
            }
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            return parts.iter().map(|part| self.type_of(part)).collect::<Vec<_>>().join(" with ");
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return values.iter().map(literal).collect::<Vec<_>>().join(", ");
        }
        match schema.get("type") {
            Some(Value::String(name)) => self.named(name, schema),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str).map(|name| self.named(name, schema));
                names.collect::<Vec<_>>().join(" or ")
            }
            _ => "any".to_owned(),
        }
    }

    fn named(&self, name: &str, schema: &Value) -> String {
        match (name, schema.get("items")) {
            ("array", Some(items)) => format!("list of {}", self.type_of(items)),
            _ => name.to_owned(),
        }
    }

    /// The fields of a shape. Fields of an object that has no name of its own come after the
    /// object.
    pub(super) fn rows(&self, schema: &Value) -> Vec<Row> {
        let mut rows = Vec::new();
        self.add_rows("", schema, &mut rows);
        rows
    }

    fn add_rows(&self, prefix: &str, schema: &Value, rows: &mut Vec<Row>) {
        for part in parts(schema, "allOf") {
            if prefix.is_empty() && self.name_of(part).is_some() {
                rows.push([String::new(), self.type_of(part), String::new(), "All fields of it.".to_owned()]);
            }
            self.add_nested(prefix, part, rows);
        }
        for part in parts(schema, "oneOf") {
            self.add_nested(prefix, part, rows);
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let required: BTreeSet<&str> = required.filter_map(Value::as_str).collect();
        for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let path = format!("{prefix}{name}");
            let is_required = if required.contains(name.as_str()) { "yes" } else { "" };
            let meaning = cell(description(field));
            rows.push([code(&path), cell(&self.type_of(field)), is_required.to_owned(), meaning]);
            match field.get("items") {
                Some(items) => self.add_nested(&format!("{path}[]."), items, rows),
                None => self.add_nested(&format!("{path}."), field, rows),
            }
        }
    }

    fn add_nested(&self, prefix: &str, schema: &Value, rows: &mut Vec<Row>) {
        if self.name_of(schema).is_none() {
            self.add_rows(prefix, schema, rows);
        }
    }

    /// The name of a shape: the name in a reference, or the name of the listed shape that is
    /// identical.
    fn name_of<'s>(&'s self, schema: &'s Value) -> Option<&'s str> {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return reference.rsplit('/').next();
        }
        schema.get("properties")?;
        let listed = self.0.iter().find(|(_, listed)| *listed == schema);
        listed.map(|(name, _)| name.as_str())
    }
}

/// The description of a shape or a field, or of the only shape that is not null.
pub(super) fn description(schema: &Value) -> &str {
    if let Some(text) = schema.get("description").and_then(Value::as_str) {
        return text;
    }
    parts(schema, "oneOf")
        .find_map(|part| part.get("description").and_then(Value::as_str))
        .unwrap_or_default()
}

fn parts<'a>(schema: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => code(text),
        other => code(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shapes() -> Map<String, Value> {
        let shapes = json!({
            "Item": {"type": "object", "properties": {"id": {"type": "string", "description": "Id."}}},
            "Page": {"type": "object", "required": ["items"], "properties": {
                "items": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string", "description": "Id."}}}},
                "more": {"type": ["object", "null"], "properties": {"kind": {"enum": ["x", 1]}}},
            }},
        });
        serde_json::from_value(shapes).unwrap()
    }

    #[test]
    fn a_shape_that_is_listed_is_linked() {
        let shapes = shapes();
        let schemas = Schemas(&shapes);
        let rows = schemas.rows(&shapes["Page"]);
        let firsts: Vec<_> =
            rows.iter().map(|row| (row[0].as_str(), row[1].as_str(), row[2].as_str())).collect();
        let expected = [
            ("`items`", "list of [Item](#item)", "yes"),
            ("`more`", "object or null", ""),
            ("`more.kind`", "`x`, `1`", ""),
        ];
        assert_eq!(firsts, expected);
        let reference = json!({"oneOf": [{"$ref": "#/components/schemas/Item"}, {"type": "null"}]});
        assert_eq!(schemas.type_of(&reference), "[Item](#item) or null");
    }
}
