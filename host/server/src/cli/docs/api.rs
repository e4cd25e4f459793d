//! The page of the management API, from its OpenAPI document.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::{Map, Value};

use super::markdown::{cell, code, prose, table};
use super::schema::{Schemas, description};

const INTRO: &str = "\
# Management API

This page lists every endpoint of the management API: its right, its parameters, its body, its responses and its errors.
[API conventions](api-conventions.md) describes what all endpoints share: sign-in, confirmations, lists in pages and
errors. `GET /v1/openapi.json` serves the same as an OpenAPI document.

";

const COMMON: &str = "\
## Common errors

Endpoints return these errors where they apply: 401 only if the endpoint needs a session, 403 only if it needs a
permission, and 404 only if its path has parameters. The endpoints below list other errors.

";

const SHAPES: &str = "\
## Objects

Each object that a body or a response contains, with its fields.

";

/// Descriptions of errors by their status.
type Errors = BTreeMap<String, String>;

/// The page of this OpenAPI document.
pub(super) fn page(document: &Value) -> String {
    let nothing = Map::new();
    let paths = document.get("paths").and_then(Value::as_object).unwrap_or(&nothing);
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object).unwrap_or(&nothing);
    let schemas = Schemas(schemas);
    let common = common_errors(paths);
    let rows: Vec<_> = common.iter().map(|(status, text)| [status_text(status), cell(text)]).collect();
    let mut text = format!("{INTRO}{COMMON}{}", table(["status", "meaning"], &rows));
    let mut family = "";
    for (path, methods) in paths {
        let first = path.split('/').nth(2).unwrap_or_default();
        if first != family {
            family = first;
            text.push_str(&format!("## /v1/{family}\n\n"));
        }
        for (method, operation) in methods.as_object().into_iter().flatten() {
            text.push_str(&format!("### {} {path}\n\n", method.to_uppercase()));
            text.push_str(&endpoint(operation, &schemas, &common));
        }
    }
    text.push_str(SHAPES);
    for (name, schema) in schemas.0 {
        text.push_str(&format!("### {name}\n\n{}", shape(schema, &schemas)));
    }
    text
}

fn endpoint(operation: &Value, schemas: &Schemas<'_>, common: &Errors) -> String {
    let summary = operation.get("summary").and_then(Value::as_str).unwrap_or_default();
    let mut text = format!("{}\n\n", prose(summary));
    if let Some(more) = operation.get("description").and_then(Value::as_str) {
        text.push_str(&format!("{}\n\n", prose(more)));
    }
    text.push_str(&format!("- Right: {}.\n", right(operation.get("x-right"))));
    if let Some(scopes) = scopes(operation) {
        text.push_str(&format!("- API token: {scopes}.\n"));
    }
    if let Some(action) = operation.get("x-confirmation").and_then(Value::as_str) {
        text.push_str(&format!("- Confirmation: {}.\n", code(action)));
    }
    text.push('\n');
    let parameters = list(operation, "parameters").map(|parameter| {
        let name = parameter.get("name").and_then(Value::as_str).unwrap_or_default();
        let place = parameter.get("in").and_then(Value::as_str).unwrap_or_default();
        let schema = parameter.get("schema").unwrap_or(&Value::Null);
        let is_required = parameter.get("required") == Some(&Value::Bool(true));
        let required = if is_required { "yes" } else { "" };
        let meaning = cell(description(parameter));
        [code(name), place.to_owned(), cell(&schemas.type_of(schema)), required.to_owned(), meaning]
    });
    let parameters: Vec<_> = parameters.collect();
    text.push_str(&table(["parameter", "in", "type", "required", "meaning"], &parameters));
    text.push_str(&body(operation, schemas));
    text.push_str(&responses(operation, schemas, common));
    text
}

fn right(right: Option<&Value>) -> String {
    match right {
        Some(Value::String(name)) if name == "anyone" => "none, not even a session".to_owned(),
        Some(Value::String(name)) if name == "signed-in" => "a session".to_owned(),
        Some(Value::Object(holds)) => {
            let permission = holds.get("holds").and_then(Value::as_str).unwrap_or_default();
            format!("the permission {}", code(permission))
        }
        _ => "a session, and a right in the requested object".to_owned(),
    }
}

/// Scopes of API tokens that open an endpoint; `None` if it needs no credential.
fn scopes(operation: &Value) -> Option<String> {
    if operation.get("x-right").and_then(Value::as_str) == Some("anyone") {
        return None;
    }
    let names: Vec<String> = list(operation, "x-scope").filter_map(Value::as_str).map(code).collect();
    Some(if names.is_empty() { "none".to_owned() } else { format!("one of the scopes {}", names.join(", ")) })
}

fn body(operation: &Value, schemas: &Schemas<'_>) -> String {
    let Some(body) = operation.get("requestBody") else { return String::new() };
    let optional = if body.get("required") == Some(&Value::Bool(true)) { "" } else { ", optional" };
    let mut text = String::new();
    for (media_type, content) in body.get("content").and_then(Value::as_object).into_iter().flatten() {
        let schema = content.get("schema").unwrap_or(&Value::Null);
        let kind = schemas.type_of(schema);
        text.push_str(&format!("Body ({}{optional}): {kind}.\n\n", code(media_type)));
    }
    text
}

fn responses(operation: &Value, schemas: &Schemas<'_>, common: &Errors) -> String {
    let mut rows = Vec::new();
    for (status, response) in operation.get("responses").and_then(Value::as_object).into_iter().flatten() {
        let meaning = response.get("description").and_then(Value::as_str).unwrap_or_default();
        if common.get(status).is_some_and(|common| common == meaning) {
            continue;
        }
        let kinds = response.get("content").and_then(Value::as_object).into_iter().flatten();
        let kinds = kinds.map(|(media_type, content)| {
            let kind = content.get("schema").map_or_else(String::new, |schema| schemas.type_of(schema));
            if media_type == "application/json" { kind } else { code(media_type) }
        });
        let kinds = kinds.collect::<Vec<_>>().join("<br>");
        rows.push([status_text(status), kinds, cell(meaning)]);
    }
    table(["response", "body", "meaning"], &rows)
}

/// Errors that more than half of the endpoints describe in the same words.
fn common_errors(paths: &Map<String, Value>) -> Errors {
    let operations = paths.values().filter_map(Value::as_object).flat_map(|methods| methods.values());
    let (mut counts, mut all) = (BTreeMap::<(&str, &str), usize>::new(), 0);
    for operation in operations {
        all += 1;
        for (status, response) in operation.get("responses").and_then(Value::as_object).into_iter().flatten()
        {
            let meaning = response.get("description").and_then(Value::as_str).unwrap_or_default();
            if status.starts_with(['4', '5']) && !meaning.is_empty() {
                *counts.entry((status.as_str(), meaning)).or_default() += 1;
            }
        }
    }
    let common = counts.into_iter().filter(|(_, count)| count * 2 > all);
    common.map(|((status, meaning), _)| (status.to_owned(), meaning.to_owned())).collect()
}

fn shape(schema: &Value, schemas: &Schemas<'_>) -> String {
    let mut text = match description(schema) {
        "" => String::new(),
        description => format!("{}\n\n", prose(description)),
    };
    let rows = schemas.rows(schema);
    if rows.is_empty() {
        text.push_str(&format!("Type: {}.\n\n", schemas.type_of(schema)));
    }
    text + &table(["field", "type", "required", "meaning"], &rows)
}

fn status_text(status: &str) -> String {
    let code = status.parse().ok().and_then(|status| StatusCode::from_u16(status).ok());
    let reason = code.and_then(|code| code.canonical_reason()).unwrap_or_default();
    format!("{status} {reason}").trim_end().to_owned()
}

fn list<'a>(operation: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    operation.get(name).and_then(Value::as_array).into_iter().flatten()
}
