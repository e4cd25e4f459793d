//! `npm audit`: advisories, of which a hosted repository knows none, and the keys that signatures are checked with.

use packhouse_sdk::{Context, Failure, Intent, Params, Request, Response};
use serde_json::{Value, json};

/// Bytes of a question, compressed.
const QUESTION: u64 = 8 << 20;

pub(crate) fn plan(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().body(QUESTION))
}

/// `npm audit` and every `npm install`: advisories by name of the packages that are asked for.
pub(crate) fn advisories(
    _cx: &Context,
    _request: &Request,
    _params: &Params<'_>,
) -> Result<Response, Failure> {
    Ok(Response::json(&json!({}))?)
}

/// The form of older clients.
pub(crate) fn audits(_cx: &Context, _request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let none = json!({"info": 0, "low": 0, "moderate": 0, "high": 0, "critical": 0});
    let counted = json!({"vulnerabilities": none, "dependencies": 0, "devDependencies": 0, "optionalDependencies": 0, "totalDependencies": 0});
    Ok(Response::json(&json!({"actions": [], "advisories": {}, "muted": [], "metadata": counted}))?)
}

/// The keys of `npm audit signatures`.
pub(crate) fn keys(cx: &Context, _request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let keys: Vec<Value> = cx
        .signing()
        .keys()?
        .into_iter()
        .map(|key| {
            json!({
                "keyid": key.id, "keytype": key.kind, "scheme": key.kind, "key": key.key,
                "expires": key.expires.map(crate::instant::text),
            })
        })
        .collect();
    Ok(Response::json(&json!({"keys": keys}))?.revalidate())
}
