//! `index.yaml`, rendered from the listed charts.

use crate::listed::ListedChart;
use crate::listing;
use crate::{name, yaml};
use packhouse_sdk::{Context, Error, Failure, Output, Params, Request, Response, percent_encode};
use serde_json::{Map, Value, json};

/// The value of `generated` in an empty index: a time that every reader accepts.
const NEVER: &str = "1970-01-01T00:00:00Z";

pub(crate) fn get(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let listing = listing::all(cx)?.ok_or_else(missing)?;
    let mut out = Output::new(cx);
    out.push("apiVersion: v1\n")?;
    out.push(if listing.is_empty() { "entries: {}\n" } else { "entries:\n" })?;
    let mut newest = NEVER;
    let mut text = String::new();
    for (name, versions) in &listing {
        text.clear();
        text.push_str("  ");
        yaml::key(&mut text, name);
        text.push('\n');
        for one in versions {
            yaml::item(&mut text, &Value::Object(entry(one)?), 2);
            // `generated` is the time of the last publish, so that the index of the same charts
            // always has the same bytes.
            if one.created.as_str() > newest && one.created.ends_with('Z') {
                newest = &one.created;
            }
        }
        out.push(&text)?;
    }
    text.clear();
    yaml::fields(&mut text, &last_fields(newest, request.address()), 0);
    out.push(&text)?;
    let content = out.finish()?;
    Ok(Response::ok().content_type("application/x-yaml").revalidate().content(content))
}

/// Creates the 404 for a repository whose upstreams have no index or refuse to send it.
pub(crate) fn missing() -> Failure {
    Failure::not_found("There is no index of charts in this repository")
}

/// Returns the fields that come after the charts. Helm's plugin `cm-push` finds the API of
/// ChartMuseum below the `contextPath`.
fn last_fields(generated: &str, address: &str) -> Map<String, Value> {
    let path = address.split_once("://").map_or(address, |(_, rest)| rest);
    let path = path.find('/').and_then(|at| path.get(at..)).unwrap_or_default();
    let fields = [("generated", json!(generated)), ("serverInfo", json!({"contextPath": path}))];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the fields of a version for the index and for ChartMuseum's API.
pub(crate) fn entry(one: &ListedChart) -> Result<Map<String, Value>, Error> {
    let Value::Object(mut fields) = serde_json::to_value(&one.chart)? else { return Ok(Map::new()) };
    let file = name::file(&one.chart.name, &one.chart.version);
    fields.insert("urls".to_owned(), json!([format!("charts/{}", percent_encode(&file))]));
    if !one.created.is_empty() {
        fields.insert("created".to_owned(), json!(one.created));
    }
    if let Some(digest) = &one.digest {
        fields.insert("digest".to_owned(), json!(digest));
    }
    Ok(fields)
}
