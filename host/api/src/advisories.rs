//! Advisories that the operator imported: lists of them, and queries of programs that use the OSV
//! API.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use packhouse_advisories::Severity;
use packhouse_advisories::purl::{self, PurlType};
use packhouse_store::{AdvisoryFilter, ListedAdvisory};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::SignedIn;
use crate::error::ApiError;
use crate::operations::advisories::{self, AdvisoryPage, AdvisoryQuery, AdvisoryRecords, BatchAnswer, Mark};
use crate::operations::loaded;
use crate::paging::{self, Page};
use crate::scope::Family;

/// Maximum number of queries in one call.
const MAX_QUERIES: usize = 1_000;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(list), routes!(show), routes!(query), routes!(query_batch)]
}

/// An advisory about a version.
#[derive(Serialize, ToSchema)]
pub(crate) struct AdvisoryMark {
    /// Identifier, for example `GHSA-…`.
    id: String,
    /// `unknown`, `low`, `moderate`, `high` or `critical`.
    severity: &'static str,
    /// True if the version is malware.
    malware: bool,
    /// One line of text.
    summary: String,
    /// Versions that fix it.
    fixed: Vec<String>,
    /// Address of its description; empty if it has none.
    url: String,
}

impl From<Mark> for AdvisoryMark {
    fn from(mark: Mark) -> AdvisoryMark {
        let Mark { id, severity, malware, summary, fixed, url } = mark;
        AdvisoryMark { id, severity: severity.as_str(), malware, summary, fixed, url }
    }
}

/// An advisory in a list.
#[derive(Serialize, ToSchema)]
pub(crate) struct AdvisoryView {
    id: String,
    /// `unknown`, `low`, `moderate`, `high` or `critical`.
    severity: &'static str,
    /// True if it is about malware.
    malware: bool,
    /// One line of text.
    summary: String,
    /// Time of its last change, in ms since 1970.
    modified: i64,
    /// Time at which it was withdrawn, in ms since 1970; null if it is in force.
    withdrawn: Option<i64>,
}

impl From<ListedAdvisory> for AdvisoryView {
    fn from(listed: ListedAdvisory) -> AdvisoryView {
        let ListedAdvisory { id, modified, withdrawn, severity, malware, summary } = listed;
        let severity = Severity::of_rank(severity).as_str();
        AdvisoryView { id, severity, malware, summary, modified, withdrawn }
    }
}

/// A query in the form of the OSV API. A query about a commit finds nothing.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(default)]
pub(crate) struct OsvQuery {
    #[schema(value_type = Option<OsvPackage>)]
    package: Option<Map<String, Value>>,
    /// A version of the package; without it, the query returns all records about the package.
    version: Option<String>,
    /// The `next_page_token` of an earlier response.
    page_token: Option<String>,
}

/// A package, named by its ecosystem and name or by its purl.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(default)]
pub(crate) struct OsvPackage {
    /// Ecosystem, for example `npm` or `PyPI`.
    ecosystem: Option<String>,
    name: Option<String>,
    /// Package URL, for example `pkg:npm/%40scope/name@1.0.0`.
    purl: Option<String>,
}

/// Several queries.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(default)]
pub(crate) struct OsvQueries {
    /// The queries, at most 1,000.
    #[schema(value_type = Vec<OsvQuery>)]
    queries: Vec<Map<String, Value>>,
}

/// Lists the advisories that the operator imported, by id.
#[utoipa::path(get, path = "/v1/advisories", operation_id = "list_advisories",
    extensions(("x-right" = json!(SignedIn)), ("x-scope" = json!(Family::Policies))),
    params(("ecosystem" = Option<String>, Query, description = "Ecosystem of `package`, by its OSV name"),
        ("package" = Option<String>, Query, description = "Only advisories about this package"),
        ("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<AdvisoryView>)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["ecosystem", "package", "limit", "after"])?;
    let package = match (call.query("ecosystem"), call.query("package")) {
        (None, None) => None,
        (Some(ecosystem), Some(package)) => Some((ecosystem.replace('\0', ""), package.replace('\0', ""))),
        _ => return Err(ApiError::invalid("`ecosystem` and `package` must be given together.")),
    };
    let after = call.query("after").unwrap_or_default().replace('\0', "");
    let filter = AdvisoryFilter { package, after };
    let AdvisoryPage { advisories, next } =
        advisories::list(call.actor()?, filter, paging::limit(&call)?).await?;
    let items = advisories.into_iter().map(AdvisoryView::from).collect();
    Ok(Json(Page { items, next }).into_response())
}

/// Returns the record of an advisory, as the OSV API does.
#[utoipa::path(get, path = "/v1/vulns/{id}", operation_id = "show_advisory",
    extensions(("x-right" = json!(SignedIn)), ("x-scope" = json!(Family::Policies))),
    params(("id" = String, Path)),
    responses((status = 200, body = Object)))]
async fn show(call: Call) -> HandlerResult {
    call.only(&[])?;
    Ok(json_response(advisories::record(call.origin(), &call.path("id").replace('\0', "")).await?))
}

/// Finds the records about a package or one of its versions, as the OSV API does. Versions are
/// compared in the order of their format.
#[utoipa::path(post, path = "/v1/query", operation_id = "query_advisories",
    extensions(("x-right" = json!(SignedIn)), ("x-scope" = json!(Family::Policies))),
    request_body = OsvQuery,
    responses((status = 200, body = Object)))]
async fn query(mut call: Call) -> HandlerResult {
    call.only(&[])?;
    let body = object(call.body()?)?;
    let Some(query) = read_query(&call, body)? else { return Ok(json_response("{}".to_owned())) };
    let AdvisoryRecords { records, next } = advisories::answer(call.origin(), &query).await?;
    let mut members =
        String::with_capacity(records.iter().map(|record| record.len() + 1).sum::<usize>() + 64);
    for (number, record) in records.into_iter().enumerate() {
        members.push_str(if number == 0 { "{\"vulns\":[" } else { "," });
        members.push_str(&record);
    }
    members.push_str(if members.is_empty() { "{" } else { "]" });
    if let Some(next) = next {
        members.push_str(&format!(",\"next_page_token\":{}", json!(next)));
    }
    members.push('}');
    Ok(json_response(members))
}

/// Finds the ids of the records for several queries, in their order, as the OSV API does.
#[utoipa::path(post, path = "/v1/querybatch", operation_id = "query_advisories_together",
    extensions(("x-right" = json!(SignedIn)), ("x-scope" = json!(Family::Policies))),
    request_body = OsvQueries,
    responses((status = 200, body = Object)))]
async fn query_batch(mut call: Call) -> HandlerResult {
    call.only(&[])?;
    let OsvQueries { queries } = call.body()?;
    if queries.len() > MAX_QUERIES {
        return Err(ApiError::invalid("`queries` may have at most 1,000 items."));
    }
    let queries = queries.into_iter().map(|body| read_query(&call, object(body)?));
    let queries = queries.collect::<Result<Vec<Option<AdvisoryQuery>>, ApiError>>()?;
    let possible: Vec<AdvisoryQuery> = queries.iter().flatten().cloned().collect();
    let answered = advisories::answer_batch(call.origin(), &possible).await?;
    let mut answered = answered.iter();
    let of = |query: &Option<AdvisoryQuery>| query.as_ref().and_then(|_| answered.next());
    let results = queries.iter().map(of).map(|answered| answered.map(BatchResult::of).unwrap_or_default());
    Ok(Json(BatchResults { results: results.collect() }).into_response())
}

#[derive(Serialize)]
struct BatchResults<'a> {
    results: Vec<BatchResult<'a>>,
}

/// Result of one query of a batch.
#[derive(Default, Serialize)]
struct BatchResult<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    vulns: Vec<ShortRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<&'a str>,
}

#[derive(Serialize)]
struct ShortRecord<'a> {
    id: &'a str,
    modified: &'a str,
}

impl BatchResult<'_> {
    fn of(answered: &BatchAnswer) -> BatchResult<'_> {
        let found = answered.found.iter();
        BatchResult {
            vulns: found.map(|found| ShortRecord { id: &found.id, modified: &found.modified }).collect(),
            next_page_token: answered.next.as_deref(),
        }
    }
}

/// Reads a JSON object. Serde would also accept a list, as the values in field order.
fn object<T: DeserializeOwned>(members: Map<String, Value>) -> Result<T, ApiError> {
    let read = serde_json::from_value(Value::Object(members));
    read.map_err(|error| ApiError::invalid(&format!("The request body is invalid: {error}.")))
}

/// Reads one query. Returns `None` if it cannot find anything.
fn read_query(call: &Call, body: OsvQuery) -> Result<Option<AdvisoryQuery>, ApiError> {
    let Some(package) = body.package else { return Ok(None) };
    let package: OsvPackage = object(package)?;
    let named = match (package.purl.as_deref(), package.ecosystem, package.name) {
        (Some(purl), ..) => parsed(call, purl)?,
        (None, Some(ecosystem), Some(name)) => Some((ecosystem, name, None)),
        _ => None,
    };
    let Some((ecosystem, name, version)) = named else {
        return Err(ApiError::invalid("`package` must have an `ecosystem` and a `name`, or a `purl`."));
    };
    // No package has such a name, and the database cannot look it up.
    if ecosystem.contains('\0') || name.contains('\0') {
        return Ok(None);
    }
    let version = body.version.filter(|version| !version.is_empty()).or(version);
    let after = body.page_token.unwrap_or_default();
    Ok(Some(AdvisoryQuery { ecosystem, name, version, after }))
}

fn parsed(call: &Call, purl: &str) -> Result<Option<(String, String, Option<String>)>, ApiError> {
    let current = call.app.runtime.current();
    let types = current.plugins().iter().filter_map(|plugin| PurlType::of(plugin.description()));
    let parsed = purl::parse(purl, types);
    if parsed.is_none() {
        loaded::all(&call.app)?;
    }
    Ok(parsed)
}

/// Response with a record that is already JSON.
fn json_response(json: String) -> Response {
    ([(CONTENT_TYPE, "application/json")], json).into_response()
}
