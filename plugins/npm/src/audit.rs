//! `npm audit`: advisories that the operator imported, advisories of upstreams, and the keys for
//! `npm audit signatures`.

use crate::audit_request::AuditRequest;
use crate::tree_audit::{self, Tree};
use crate::{bulk, proxy};
use packhouse_sdk::{
    Blob, Content, Context, Failure, Intent, Output, Params, ReadAt, Reply, Repository, Request, Response,
    Timestamp,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Maximum number of bytes of an audit request, compressed.
const QUESTION: u64 = 8 << 20;
/// Path of bulk advisory requests.
const BULK: &str = "-/npm/v1/security/advisories/bulk";
/// Maximum number of bytes of an upstream's response.
const ANSWER: u64 = 16 << 20;
/// Maximum number of bytes of an upstream's keys.
const KEYS: u64 = 1 << 20;

pub(crate) fn plan(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().body(QUESTION).many_packages())
}

/// `npm audit` and every `npm install`: returns the advisories for the requested packages, by
/// package name.
pub(crate) fn advisories(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let body = request.planned_body()?;
    let encoding = request.header("content-encoding");
    let question = AuditRequest::read(&body, encoding, true)?;
    let known = match &question {
        AuditRequest::Bulk(packages) => bulk::known(cx.target()?, packages)?,
        AuditRequest::Tree(_) => BTreeMap::new(),
    };
    let mut merged = Map::new();
    for answer in ask_all(cx, BULK, &ReceivedAudit { request, body: &body, question })? {
        bulk::add(&mut merged, answer);
    }
    bulk::merge(&mut merged, known);
    json_response(cx, &merged)
}

fn json_response(cx: &Context, document: &Map<String, Value>) -> Result<Response, Failure> {
    let mut out = Output::new(cx);
    out.json(document)?;
    Ok(Response::ok().content_type("application/json").content(out.finish()?))
}

fn is_offline(proxy: &Repository) -> Result<bool, Failure> {
    let settings: Value = proxy.settings()?;
    Ok(settings.get("offline").and_then(Value::as_bool).unwrap_or_default())
}

/// The audit of pnpm and older npm, whose request has the tree of a lock file.
pub(crate) fn audits(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let body = request.planned_body()?;
    let question = AuditRequest::read(&body, request.header("content-encoding"), false)?;
    let tree = match &question {
        AuditRequest::Tree(question) => Tree::of(question),
        AuditRequest::Bulk(_) => Tree::default(),
    };
    let reports = ask_all(cx, &request.path.join("/"), &ReceivedAudit { request, body: &body, question })?;
    json_response(cx, &tree.answer(cx.target()?, tree_audit::merged(reports))?)
}

/// An audit request, both as received and parsed.
struct ReceivedAudit<'a> {
    request: &'a Request<'a>,
    body: &'a Blob,
    question: AuditRequest,
}

/// Asks the upstreams of all proxies at the same time and returns their responses. Leaves out
/// upstreams that do not support audits.
///
/// # Errors
/// 502 if an upstream fails and no other upstream answers: an audit without any response would make
/// the packages look harmless.
fn ask_all(
    cx: &Context,
    target: &str,
    audit: &ReceivedAudit<'_>,
) -> Result<Vec<Map<String, Value>>, Failure> {
    let mut replies = Vec::new();
    for proxy in cx.proxies()? {
        // A request to the upstream of an offline proxy would fail. The audit would then fail too,
        // although local advisories are available.
        if !is_offline(proxy)?
            && let Some(reply) = ask(cx, proxy, target, audit)?
        {
            replies.push((proxy, reply));
        }
    }
    let (mut left_out, mut answers) = (cx.left_out(), Vec::new());
    for (proxy, reply) in replies {
        answers.extend(left_out.unless_failed(proxy, read(reply))?);
    }
    let answers = Some(answers).filter(|answers| !answers.is_empty());
    Ok(left_out.or_failure(answers)?.unwrap_or_default())
}

/// Passes the audit on to the proxy's upstream, without the packages that the host withholds from
/// upstreams. Returns `None` if no package is left.
fn ask(
    cx: &Context,
    proxy: &Repository,
    target: &str,
    audit: &ReceivedAudit<'_>,
) -> Result<Option<Reply>, Failure> {
    let ReceivedAudit { request, body, question } = audit;
    let withheld = proxy.withheld(&question.names())?;
    if withheld.is_empty() {
        let kind = request.header("content-type").map(|kind| ("content-type", kind));
        let encoding = request.header("content-encoding").map(|encoding| ("content-encoding", encoding));
        let body = body.read_all(QUESTION)?;
        return Ok(Some(proxy::ask(cx, proxy, target, kind.into_iter().chain(encoding), &body)?));
    }
    let Some(body) = question.clone().without(&withheld)? else { return Ok(None) };
    Ok(Some(proxy::ask(cx, proxy, target, [("content-type", "application/json")], &body)?))
}

/// Returns an upstream's response, or `None` if the upstream does not support audits.
///
/// # Errors
/// 502 if the upstream fails, refuses the audit, or answers with an invalid document.
fn read(reply: Reply) -> Result<Option<Map<String, Value>>, Failure> {
    match reply.status()? {
        501 => return Ok(None),
        status @ (401..=403 | 451) => {
            return Err(reply.unusable(format!("the upstream refuses audits with status {status}")));
        }
        _ => {}
    }
    let path = reply.path().to_owned();
    let Some(reply) = reply.found()? else { return Ok(None) };
    let answer = serde_json::from_slice(&reply.body()?.read_all(ANSWER)?);
    let problem = format!("its response to an audit is not a JSON object, for {path}");
    answer.map(Some).map_err(|_| Failure::unusable_upstream(problem))
}

/// `npm audit signatures`: returns this repository's own keys and its upstreams' keys.
pub(crate) fn keys(cx: &Context, _request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let mut keys = Vec::new();
    if !cx.target()?.is_proxy() {
        keys.extend(cx.signing().keys()?.into_iter().map(|key| {
            json!({
                "keyid": key.id, "keytype": key.kind, "scheme": key.kind, "key": key.key,
                "expires": key.expires.map(|ms| Timestamp::from_ms(ms).to_rfc3339()),
            })
        }));
    }
    let mut left_out = cx.left_out();
    for proxy in cx.proxies()? {
        let Some(document) = left_out.unless_failed(proxy, keys_of(cx, proxy))? else { continue };
        keys.extend(document.get("keys").and_then(Value::as_array).into_iter().flatten().cloned());
    }
    Ok(Response::json(&json!({"keys": keys}))?.revalidate())
}

/// Returns an upstream's keys, or `None` if it has no keys.
fn keys_of(cx: &Context, proxy: &Repository) -> Result<Option<Value>, Failure> {
    match proxy::pass_on(cx, proxy, "-/npm/v1/keys")? {
        Some(Content::Blob(blob)) => {
            Ok(Some(serde_json::from_slice(&blob.read_all(KEYS)?).unwrap_or_default()))
        }
        _ => Ok(None),
    }
}
