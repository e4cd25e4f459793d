//! `npm audit`: advisories, of which a hosted repository knows none, and the keys that signatures are checked with.

use crate::audit_request::AuditRequest;
use crate::proxy;
use packhouse_sdk::{
    Content, Context, Failure, Intent, Params, ReadAt, Repository, Request, Response, Timestamp,
};
use serde_json::{Value, json};

/// Bytes of a question, compressed.
const QUESTION: u64 = 8 << 20;
/// Where advisories are asked for by name.
const BULK: &str = "-/npm/v1/security/advisories/bulk";
/// Bytes of an upstream's keys.
const KEYS: u64 = 1 << 20;

pub(crate) fn plan(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().body(QUESTION).many_packages())
}

/// `npm audit` and every `npm install`: advisories by name of the packages that are asked for.
pub(crate) fn advisories(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    answer(cx, request, BULK, &json!({}))
}

/// The form of older clients.
pub(crate) fn audits(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let none = json!({"info": 0, "low": 0, "moderate": 0, "high": 0, "critical": 0});
    let counted = json!({
        "vulnerabilities": none, "dependencies": 0, "devDependencies": 0, "optionalDependencies": 0, "totalDependencies": 0,
    });
    let nothing = json!({"actions": [], "advisories": {}, "muted": [], "metadata": counted});
    answer(cx, request, &request.path.join("/"), &nothing)
}

/// What the proxy's upstream says, or that of the first proxy in a group; nothing where there is none. It is asked about no package
/// that is not looked for there.
fn answer(cx: &Context, request: &Request, target: &str, nothing: &Value) -> Result<Response, Failure> {
    let content = match cx.proxies()?.into_iter().next() {
        Some(proxy) => ask(cx, request, proxy, target)?,
        None => None,
    };
    Ok(match content {
        Some(content) => Response::ok().content_type("application/json").content(content),
        None => Response::json(nothing)?,
    })
}

fn ask(
    cx: &Context,
    request: &Request,
    proxy: &Repository,
    target: &str,
) -> Result<Option<Content>, Failure> {
    let body = request.planned_body()?;
    let encoding = request.header("content-encoding");
    let question = AuditRequest::read(&body, encoding, target == BULK)?;
    let withheld = proxy.withheld(&question.names())?;
    if withheld.is_empty() {
        let kind = request.header("content-type").map(|kind| ("content-type", kind));
        let as_it_came = kind.into_iter().chain(encoding.map(|encoding| ("content-encoding", encoding)));
        return proxy::ask(cx, proxy, target, as_it_came, &body.read_all(QUESTION)?);
    }
    match question.without(&withheld)? {
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
    for proxy in cx.proxies()? {
        let Some(Content::Blob(blob)) = proxy::pass_on(cx, proxy, "-/npm/v1/keys")? else { continue };
        let document: Value = serde_json::from_slice(&blob.read_all(KEYS)?).unwrap_or_default();
        keys.extend(document.get("keys").and_then(Value::as_array).into_iter().flatten().cloned());
    }
    Ok(Response::json(&json!({"keys": keys}))?.revalidate())
}
