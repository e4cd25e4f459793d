//! What is known to be wrong with packages, from the advisories that the operator brought in: lists of them, and the questions of programs that
//! know the interface of OSV.

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

use crate::Answer;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::SignedIn;
use crate::error::ApiError;
use crate::operations::advisories::{self, AdvisoryPage, Answered, BatchAnswered, Mark, Question};
use crate::operations::loaded;
use crate::paging::{self, Page};

/// Questions of one call.
const MAX_QUESTIONS: usize = 1_000;

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(list), routes!(show), routes!(query), routes!(query_batch)]
}

/// An advisory about a version.
#[derive(Serialize, ToSchema)]
pub(crate) struct AdvisoryMark {
    /// As `GHSA-…`.
    id: String,
    /// `unknown`, `low`, `moderate`, `high` or `critical`.
    severity: &'static str,
    /// Whether the version does harm by itself.
    malware: bool,
    /// One line.
    summary: String,
    /// Versions that fix it.
    fixed: Vec<String>,
    /// Where it is described; empty: nowhere.
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
    /// Whether it is about what does harm by itself.
    malware: bool,
    /// One line.
    summary: String,
    /// When it was last changed, in ms since 1970.
    modified: i64,
    /// Since when it holds no longer, in ms since 1970; null while it does.
    withdrawn: Option<i64>,
}

impl From<ListedAdvisory> for AdvisoryView {
    fn from(listed: ListedAdvisory) -> AdvisoryView {
        let ListedAdvisory { id, modified, withdrawn, severity, malware, summary } = listed;
        let severity = Severity::of_rank(severity).as_str();
        AdvisoryView { id, severity, malware, summary, modified, withdrawn }
    }
}

/// Which records are wanted, as OSV asks. A question about a commit finds nothing.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(default)]
pub(crate) struct OsvQuery {
    #[schema(value_type = Option<OsvPackage>)]
    package: Option<Map<String, Value>>,
    /// Without one, all records about the package are wanted.
    version: Option<String>,
    /// What an earlier answer gave as `next_page_token`.
    page_token: Option<String>,
}

/// A package, by its ecosystem and name or by its purl.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(default)]
pub(crate) struct OsvPackage {
    /// As `npm` or `PyPI`.
    ecosystem: Option<String>,
    name: Option<String>,
    /// As `pkg:npm/%40scope/name@1.0.0`.
    purl: Option<String>,
}

/// Several questions.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(default)]
pub(crate) struct OsvQueries {
    /// At most 1,000.
    #[schema(value_type = Vec<OsvQuery>)]
    queries: Vec<Map<String, Value>>,
}

/// Lists the advisories that the operator brought in, by id.
#[utoipa::path(get, path = "/v1/advisories", operation_id = "list_advisories",
    extensions(("x-right" = json!(SignedIn))),
    params(("ecosystem" = Option<String>, Query, description = "With `package`: what OSV calls its ecosystem"),
        ("package" = Option<String>, Query, description = "About this package"),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<AdvisoryView>)))]
async fn list(call: Call) -> Answer {
    call.only(&["ecosystem", "package", "limit", "after"])?;
    let package = match (call.query("ecosystem"), call.query("package")) {
        (None, None) => None,
        (Some(ecosystem), Some(package)) => Some((ecosystem.replace('\0', ""), package.replace('\0', ""))),
        _ => return Err(ApiError::invalid("`ecosystem` and `package` stand together.")),
    };
    let after = call.query("after").unwrap_or_default().replace('\0', "");
    let filter = AdvisoryFilter { package, after };
    let AdvisoryPage { advisories, next } =
        advisories::list(call.actor()?, filter, paging::limit(&call)?).await?;
    let items = advisories.into_iter().map(AdvisoryView::from).collect();
    Ok(Json(Page { items, next }).into_response())
}

/// Shows the record of an advisory, as OSV does.
#[utoipa::path(get, path = "/v1/vulns/{id}", operation_id = "show_advisory",
    extensions(("x-right" = json!(SignedIn))),
    params(("id" = String, Path)),
    responses((status = 200, body = Object)))]
async fn show(call: Call) -> Answer {
    call.only(&[])?;
    Ok(written(advisories::record(call.origin(), &call.path("id").replace('\0', "")).await?))
}

/// Finds the records about a package, or about a version of it, as OSV does: by the format's own order of versions.
#[utoipa::path(post, path = "/v1/query", operation_id = "query_advisories",
    extensions(("x-right" = json!(SignedIn))),
    request_body = OsvQuery,
    responses((status = 200, body = Object)))]
async fn query(mut call: Call) -> Answer {
    call.only(&[])?;
    let asked = object(call.body()?)?;
    let Some(question) = question(&call, asked)? else { return Ok(written("{}".to_owned())) };
    let Answered { records, next } = advisories::answer(call.origin(), &question).await?;
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
    Ok(written(members))
}

/// Finds the ids of the records for several questions, in their order, as OSV does.
#[utoipa::path(post, path = "/v1/querybatch", operation_id = "query_advisories_together",
    extensions(("x-right" = json!(SignedIn))),
    request_body = OsvQueries,
    responses((status = 200, body = Object)))]
async fn query_batch(mut call: Call) -> Answer {
    call.only(&[])?;
    let OsvQueries { queries } = call.body()?;
    if queries.len() > MAX_QUESTIONS {
        return Err(ApiError::invalid("`queries` are at most 1,000."));
    }
    let asked = queries.into_iter().map(|asked| question(&call, object(asked)?));
    let asked = asked.collect::<Result<Vec<Option<Question>>, ApiError>>()?;
    let questions: Vec<Question> = asked.iter().flatten().cloned().collect();
    let answered = advisories::answer_together(call.origin(), &questions).await?;
    let mut answered = answered.iter();
    let of = |asked: &Option<Question>| asked.as_ref().and_then(|_| answered.next());
    let results = asked.iter().map(of).map(|answered| answered.map(BatchResult::of).unwrap_or_default());
    Ok(Json(BatchResults { results: results.collect() }).into_response())
}

#[derive(Serialize)]
struct BatchResults<'a> {
    results: Vec<BatchResult<'a>>,
}

/// The answer to one question of several.
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
    fn of(answered: &BatchAnswered) -> BatchResult<'_> {
        let found = answered.found.iter();
        BatchResult {
            vulns: found.map(|found| ShortRecord { id: &found.id, modified: &found.modified }).collect(),
            next_page_token: answered.next.as_deref(),
        }
    }
}

/// What an object says; a list is none, in whatever order its values are.
fn object<T: DeserializeOwned>(members: Map<String, Value>) -> Result<T, ApiError> {
    let read = serde_json::from_value(Value::Object(members));
    read.map_err(|error| ApiError::invalid(&format!("The body is not right: {error}.")))
}

/// What is asked; none where nothing can be found.
fn question(call: &Call, asked: OsvQuery) -> Result<Option<Question>, ApiError> {
    let Some(package) = asked.package else { return Ok(None) };
    let package: OsvPackage = object(package)?;
    let named = match (package.purl.as_deref(), package.ecosystem, package.name) {
        (Some(purl), ..) => parsed(call, purl)?,
        (None, Some(ecosystem), Some(name)) => Some((ecosystem, name, None)),
        _ => None,
    };
    let Some((ecosystem, name, version)) = named else {
        return Err(ApiError::invalid("`package` has an `ecosystem` and a `name`, or a `purl`."));
    };
    // No package is called so, and a database cannot look for it.
    if ecosystem.contains('\0') || name.contains('\0') {
        return Ok(None);
    }
    let version = asked.version.filter(|version| !version.is_empty()).or(version);
    let after = asked.page_token.unwrap_or_default();
    Ok(Some(Question { ecosystem, name, version, after }))
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

/// A record is JSON already.
fn written(json: String) -> Response {
    ([(CONTENT_TYPE, "application/json")], json).into_response()
}
