//! `npm audit`: advisories, those that the operator brought in beside an upstream's, and the keys that signatures are checked with.

use crate::audit_request::AuditRequest;
use crate::tree_audit::Tree;
use crate::{bulk, proxy};
use packhouse_sdk::{
    Blob, Content, Context, Failure, Intent, Params, ReadAt, Repository, Request, Response, Timestamp,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Bytes of a question, compressed.
const QUESTION: u64 = 8 << 20;
/// Where advisories are asked for by name.
const BULK: &str = "-/npm/v1/security/advisories/bulk";
/// Bytes of an upstream's answer.
const ANSWER: u64 = 16 << 20;
/// Bytes of an upstream's keys.
const KEYS: u64 = 1 << 20;

pub(crate) fn plan(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().body(QUESTION).many_packages())
}

/// `npm audit` and every `npm install`: advisories by name of the packages that are asked for.
pub(crate) fn advisories(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let body = request.planned_body()?;
    let encoding = request.header("content-encoding");
    let question = AuditRequest::read(&body, encoding, true)?;
    let known = match &question {
        AuditRequest::Bulk(packages) => bulk::known(cx.target()?, packages)?,
        AuditRequest::Tree(_) => BTreeMap::new(),
    };
    let proxy = cx.proxies()?.into_iter().next();
    let told = match proxy {
        // One that must not ask would fail, where what is known here is all that there is to know.
        Some(proxy) if !is_offline(proxy)? => {
            ask(cx, proxy, BULK, &Asked { request, body: &body, question })?
        }
        _ => None,
    };
    Ok(match told {
        Some(content) if known.is_empty() => Response::ok().content_type("application/json").content(content),
        Some(content) => {
            let mut told = read(content)?;
            bulk::merge(&mut told, known);
            Response::json(&told)?
        }
        None => {
            let mut told = Map::new();
            bulk::merge(&mut told, known);
            Response::json(&told)?
        }
    })
}

fn is_offline(proxy: &Repository) -> Result<bool, Failure> {
    let settings: Value = proxy.settings()?;
    Ok(settings.get("offline").and_then(Value::as_bool).unwrap_or_default())
}

/// An upstream's answer, read. What is none stands for nothing: what is known here is told all the same.
fn read(content: Content) -> Result<Map<String, Value>, Failure> {
    let bytes = match content {
        Content::None => Vec::new(),
        Content::Inline(bytes) => bytes,
        Content::Blob(blob) => blob.read_all(ANSWER)?,
    };
    Ok(serde_json::from_slice(&bytes).unwrap_or_default())
}

/// The form of pnpm and older npm: the tree of a lock file.
pub(crate) fn audits(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let body = request.planned_body()?;
    let question = AuditRequest::read(&body, request.header("content-encoding"), false)?;
    let tree = match &question {
        AuditRequest::Tree(question) => Tree::of(question),
        AuditRequest::Bulk(_) => Tree::default(),
    };
    let told = match cx.proxies()?.into_iter().next() {
        Some(proxy) if !is_offline(proxy)? => {
            ask(cx, proxy, &request.path.join("/"), &Asked { request, body: &body, question })?
        }
        _ => None,
    };
    let told = told.map(read).transpose()?;
    Ok(Response::json(&tree.answer(cx.target()?, told)?)?)
}

/// A question as it came, and read.
struct Asked<'a> {
    request: &'a Request<'a>,
    body: &'a Blob,
    question: AuditRequest,
}

/// What the proxy's upstream says. It is asked about no package that is not looked for there.
fn ask(
    cx: &Context,
    proxy: &Repository,
    target: &str,
    asked: &Asked<'_>,
) -> Result<Option<Content>, Failure> {
    let Asked { request, body, question } = asked;
    let withheld = proxy.withheld(&question.names())?;
    if withheld.is_empty() {
        let kind = request.header("content-type").map(|kind| ("content-type", kind));
        let encoding = request.header("content-encoding").map(|encoding| ("content-encoding", encoding));
        return proxy::ask(cx, proxy, target, kind.into_iter().chain(encoding), &body.read_all(QUESTION)?);
    }
    match question.clone().without(&withheld)? {
        Some(body) => proxy::ask(cx, proxy, target, [("content-type", "application/json")], &body),
        None => Ok(None),
    }
}

/// The keys of `npm audit signatures`: this registry's own, and those of its upstreams.
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
        let answer = left_out.unless_failed(proxy, proxy::pass_on(cx, proxy, "-/npm/v1/keys"))?;
        let Some(Content::Blob(blob)) = answer else { continue };
        let document: Value = serde_json::from_slice(&blob.read_all(KEYS)?).unwrap_or_default();
        keys.extend(document.get("keys").and_then(Value::as_array).into_iter().flatten().cloned());
    }
    Ok(Response::json(&json!({"keys": keys}))?.revalidate())
}
