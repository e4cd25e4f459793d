//! JSON Schema of the documents, for editors and for checks before a commit.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::kinds::DocumentKind;
use super::specs::{
    PolicySpec, RepositorySpec, RetentionPolicySpec, ServiceAccountSpec, TeamSpec, TrustedPublisherSpec,
    WebhookSpec,
};

/// Prefix of references in OpenAPI documents.
const COMPONENTS: &str = "#/components/schemas/";
/// Prefix of references in a JSON Schema.
const DEFINITIONS: &str = "#/$defs/";

/// Returns the schema of one document.
pub(super) fn schema() -> anyhow::Result<Value> {
    let mut definitions = BTreeMap::new();
    let mut alternatives = Vec::new();
    for kind in DocumentKind::ALL {
        let (spec, mut nested) = spec_of(kind);
        nested.push((spec_name(kind), spec));
        for (name, schema) in nested {
            let mut schema = serde_json::to_value(schema)?;
            use_definitions(&mut schema);
            definitions.insert(name, schema);
        }
        alternatives.push(json!({
            "properties": {
                "kind": {"const": kind.name()},
                "spec": {"$ref": format!("{DEFINITIONS}{}", spec_name(kind))},
            },
        }));
    }
    Ok(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Packhouse configuration",
        "type": "object",
        "required": ["kind", "name", "spec"],
        "properties": {
            "kind": {"enum": DocumentKind::ALL.map(DocumentKind::name)},
            "name": {"type": "string"},
            "spec": {"type": "object"},
        },
        "additionalProperties": false,
        "oneOf": alternatives,
        "$defs": definitions,
    }))
}

/// Schemas with the names that references use.
type NamedSchemas = Vec<(String, RefOr<Schema>)>;

fn spec_name(kind: DocumentKind) -> String {
    format!("{}Spec", kind.name())
}

/// Returns the schema of a kind's spec, and the schemas to which it refers.
fn spec_of(kind: DocumentKind) -> (RefOr<Schema>, NamedSchemas) {
    fn of<T: ToSchema>() -> (RefOr<Schema>, NamedSchemas) {
        let mut nested = Vec::new();
        <T as ToSchema>::schemas(&mut nested);
        (<T as PartialSchema>::schema(), nested)
    }
    match kind {
        DocumentKind::Repository => of::<RepositorySpec>(),
        DocumentKind::Team => of::<TeamSpec>(),
        DocumentKind::ServiceAccount => of::<ServiceAccountSpec>(),
        DocumentKind::TrustedPublisher => of::<TrustedPublisherSpec>(),
        DocumentKind::Policy => of::<PolicySpec>(),
        DocumentKind::RetentionPolicy => of::<RetentionPolicySpec>(),
        DocumentKind::Webhook => of::<WebhookSpec>(),
    }
}

/// Makes references lead to the schema's own definitions.
fn use_definitions(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let reference = fields.get("$ref").and_then(Value::as_str);
            let name = reference.and_then(|reference| reference.strip_prefix(COMPONENTS));
            if let Some(name) = name.map(|name| format!("{DEFINITIONS}{name}")) {
                fields.insert("$ref".to_owned(), json!(name));
            }
            fields.values_mut().for_each(use_definitions);
        }
        Value::Array(items) => items.iter_mut().for_each(use_definitions),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Map;

    use super::*;

    /// Paths of all fields of a schema, such as `permissions.repositories.actions`. `all` has the
    /// schemas to which it refers.
    fn paths(schema: &Value, all: &Map<String, Value>, prefix: &str, found: &mut BTreeSet<String>) {
        if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
            return paths(&all[name], all, prefix, found);
        }
        for several in ["allOf", "oneOf", "anyOf"] {
            for part in schema[several].as_array().into_iter().flatten() {
                paths(part, all, prefix, found);
            }
        }
        paths_of_items(schema, all, prefix, found);
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            paths(field, all, &path, found);
            found.insert(path);
        }
    }

    fn paths_of_items(schema: &Value, all: &Map<String, Value>, prefix: &str, found: &mut BTreeSet<String>) {
        if schema["items"].is_object() {
            paths(&schema["items"], all, prefix, found);
        }
    }

    fn fields_of_spec(kind: DocumentKind) -> BTreeSet<String> {
        let schema = schema().unwrap();
        let mut found = BTreeSet::new();
        let definitions = schema["$defs"].as_object().unwrap();
        paths(&definitions[&spec_name(kind)], definitions, "", &mut found);
        found
    }

    fn fields_of_body(document: &Value, path: &str, method: &str) -> BTreeSet<String> {
        let body = &document["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"];
        assert!(body.is_object(), "{method} {path} has no body in JSON");
        let mut found = BTreeSet::new();
        paths(body, document["components"]["schemas"].as_object().unwrap(), "", &mut found);
        assert!(!found.is_empty(), "{method} {path}");
        found
    }

    /// Fields of bodies that are not fields of a spec, with the reason.
    const ELSEWHERE: [(&str, &str); 3] = [
        ("name", "the name of the document"),
        ("confirmation_token", "the API token stands for the confirmation"),
        ("url", "the name of a webhook's document; a repository has `upstream.url`"),
    ];

    #[test]
    fn every_field_of_the_api_has_a_place_in_a_document() {
        let document = packhouse_api::openapi_document().unwrap();
        let mut missing = Vec::new();
        for kind in DocumentKind::ALL {
            let fields = fields_of_spec(kind);
            let all = format!("/v1/{}", kind.segment());
            let one = format!("{all}/{{id}}");
            let mut bodies = vec![(all, "post", "")];
            match kind {
                // The API has no call that changes a publisher.
                DocumentKind::TrustedPublisher => {}
                _ => bodies.push((one.clone(), "patch", "")),
            }
            if kind == DocumentKind::Repository {
                bodies.push((format!("{one}/upstream-credentials"), "put", "upstream.credentials."));
            }
            for (path, method, prefix) in bodies {
                for field in fields_of_body(&document, &path, method) {
                    let is_elsewhere = ELSEWHERE.iter().any(|(name, _)| *name == field);
                    if !is_elsewhere && !fields.contains(&format!("{prefix}{field}")) {
                        missing.push(format!("{method} {path}: {field}"));
                    }
                }
            }
        }
        assert!(missing.is_empty(), "add these fields to cli/apply/specs.rs, or to ELSEWHERE: {missing:#?}");
    }

    #[test]
    fn the_schema_describes_each_kind() {
        let schema = schema().unwrap();
        assert_eq!(schema["oneOf"].as_array().unwrap().len(), DocumentKind::ALL.len());
        let text = schema.to_string();
        assert!(!text.contains(COMPONENTS), "{text}");
        for reference in text.split(DEFINITIONS).skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(schema["$defs"][name].is_object(), "{name}");
        }
        let password = fields_of_spec(DocumentKind::Repository);
        assert!(password.contains("upstream.credentials.password.from_env"), "{password:?}");
        assert!(schema["$defs"]["RepositorySpec"]["additionalProperties"] == json!(false), "{text}");
    }
}
