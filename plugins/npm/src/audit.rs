//! `npm audit`: advisories, of which a hosted repository knows none, and the keys that signatures are checked with.

use crate::proxy;
use packhouse_sdk::{Content, Context, Failure, Intent, Params, ReadAt, Repository, Request, Response};
use serde_json::{Value, json};

/// Bytes of a question, compressed.
const QUESTION: u64 = 8 << 20;
/// Bytes of an upstream's keys.
const KEYS: u64 = 1 << 20;

pub(crate) fn plan(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().body(QUESTION))
}

/// `npm audit` and every `npm install`: advisories by name of the packages that are asked for.
pub(crate) fn advisories(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    answer(cx, request, "-/npm/v1/security/advisories/bulk", &json!({}))
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

/// What the proxy's upstream says, or that of the first proxy in a group; nothing where there is none.
fn answer(cx: &Context, request: &Request, target: &str, nothing: &Value) -> Result<Response, Failure> {
    let proxy = proxies(cx)?.into_iter().next();
    let content = match proxy {
        Some(proxy) => proxy::ask(cx, proxy, request, target, QUESTION)?,
        None => None,
    };
    Ok(match content {
        Some(content) => Response::ok().content_type("application/json").content(content),
        None => Response::json(nothing)?,
    })
}

/// The repositories that have an upstream: the target, or a group's members.
pub(crate) fn proxies(cx: &Context) -> Result<Vec<&Repository>, Failure> {
    let all = std::iter::once(cx.target()?).chain(cx.others());
    Ok(all.filter(|repository| repository.kind() == "proxy").collect())
}

/// The keys of `npm audit signatures`: this registry's own, and those of its upstreams.
pub(crate) fn keys(cx: &Context, _request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let mut keys = Vec::new();
    if cx.target()?.kind() != "proxy" {
        keys.extend(cx.signing().keys()?.into_iter().map(|key| {
            json!({
                "keyid": key.id, "keytype": key.kind, "scheme": key.kind, "key": key.key,
                "expires": key.expires.map(crate::instant::text),
            })
        }));
    }
    for proxy in proxies(cx)? {
        let Some(Content::Blob(blob)) = proxy::pass_on(cx, proxy, "-/npm/v1/keys")? else { continue };
        let document: Value = serde_json::from_slice(&blob.read_all(KEYS)?).unwrap_or_default();
        keys.extend(document.get("keys").and_then(Value::as_array).into_iter().flatten().cloned());
    }
    Ok(Response::json(&json!({"keys": keys}))?.revalidate())
}
