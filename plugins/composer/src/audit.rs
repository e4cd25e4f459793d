//! `composer audit`: the advisories that the operator imported, and the advisories of the
//! upstreams.

use crate::upstream::{self, unusable};
use crate::{advisory, form, name, proxy};
use packhouse_sdk::{
    Context, Failure, Freshness, Intent, Output, Params, Repository, Request, Response, percent_encode,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// The size limit of a request, in bytes.
const REQUEST_LIMIT: u64 = 2 << 20;
/// The most packages in a request.
const MAX_PACKAGES: usize = 10_000;
/// The size limit of an upstream's reply, in bytes.
const REPLY_LIMIT: u64 = 8 << 20;

/// Advisories as JSON, by package name.
type AdvisoriesByPackage = BTreeMap<String, Vec<String>>;

pub(crate) fn plan(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().body(REQUEST_LIMIT).many_packages())
}

/// `GET` or `POST /security-advisories`, with names in `packages[]`.
pub(crate) fn advisories(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let names = requested_packages(request)?;
    let mut found = AdvisoriesByPackage::new();
    for proxy in cx.proxies()? {
        if !is_offline(proxy)? {
            query_upstream(cx, proxy, &names, &mut found)?;
        }
    }
    for (package, known) in cx.target()?.advisories(&names)? {
        let listed = found.entry(package.clone()).or_default();
        let upstreams: Vec<Value> =
            listed.iter().filter_map(|json| serde_json::from_str(json).ok()).collect();
        let new = known.iter().filter(|one| !upstreams.iter().any(|it| advisory::is_same(it, one)));
        listed.extend(new.filter_map(|one| advisory::to_json(one, &package)).map(|it| it.to_string()));
    }
    found.retain(|_, advisories| !advisories.is_empty());
    response(cx, &found)
}

fn response(cx: &Context, found: &AdvisoriesByPackage) -> Result<Response, Failure> {
    let mut out = Output::new(cx);
    out.push(r#"{"advisories":{"#)?;
    for (at, (package, advisories)) in found.iter().enumerate() {
        out.push(if at > 0 { "," } else { "" })?;
        out.json(package)?;
        for (at, advisory) in advisories.iter().enumerate() {
            out.push(if at > 0 { "," } else { ":[" })?;
            out.push(advisory)?;
        }
        out.push("]")?;
    }
    out.push("}}")?;
    let content = out.finish()?;
    Ok(Response::ok().content_type("application/json").revalidate().content(content))
}

/// Returns the packages that a request names in its query or in a form.
fn requested_packages(request: &Request) -> Result<Vec<String>, Failure> {
    let body = match request.take_body() {
        Some(body) => body.text(REQUEST_LIMIT).map_err(|_| Failure::invalid("The body is not a form"))?,
        None => String::new(),
    };
    let fields = form::fields(&body).chain(request.query_pairs().iter().cloned());
    let packages = fields.filter(|(field, _)| field == "packages" || field.starts_with("packages["));
    let names: BTreeSet<String> = packages
        .map(|(_, package)| package.to_ascii_lowercase())
        .filter(|package| name::is_name(package))
        .take(MAX_PACKAGES)
        .collect();
    if names.is_empty() {
        return Err(Failure::invalid("State the packages in `packages[]`, each as vendor/package"));
    }
    Ok(names.into_iter().collect())
}

/// True if the proxy never contacts its upstream. Then only imported advisories are known.
fn is_offline(proxy: &Repository) -> Result<bool, Failure> {
    let settings: Value = proxy.settings()?;
    Ok(settings.get("offline").and_then(Value::as_bool).unwrap_or_default())
}

/// An upstream's reply.
#[derive(Deserialize)]
struct AuditReply<'a> {
    #[serde(borrow)]
    advisories: &'a RawValue,
}

/// Adds the advisories of an upstream about these packages. The request leaves out packages that
/// must not be requested from the upstream.
///
/// # Errors
/// 502 if the upstream gives no usable reply. If its advisories were left out instead, the packages
/// would look harmless.
fn query_upstream(
    cx: &Context,
    proxy: &Repository,
    names: &[String],
    found: &mut AdvisoriesByPackage,
) -> Result<(), Failure> {
    let withheld = proxy.withheld(names)?;
    let names: Vec<&String> = names.iter().filter(|name| !withheld.contains(*name)).collect();
    if names.is_empty() {
        return Ok(());
    }
    let root = proxy::root(cx, proxy)?;
    let Some(address) = root.and_then(|root| root.root.advisories) else { return Ok(()) };
    let target = upstream::below(proxy, &address)?;
    let fields =
        names.iter().enumerate().map(|(at, name)| format!("packages%5B{at}%5D={}", percent_encode(name)));
    let fetch = cx
        .upstream("POST", &target)
        .header("accept", "application/json")
        .header("content-type", "application/x-www-form-urlencoded")
        .fresh(Freshness::Never)
        .limit(REPLY_LIMIT)
        .metadata()
        .body(fields.collect::<Vec<_>>().join("&").as_bytes());
    let reply = fetch.start(proxy)?;
    let path = reply.path().to_owned();
    let Some(body) = upstream::body_if_found(reply)? else {
        return Err(unusable(&path, "its API for advisories is missing or refuses the request"));
    };
    let text = upstream::text(&body, &path, REPLY_LIMIT)?;
    let listed = read(&text).ok_or_else(|| unusable(&path, "it is not a document with advisories"))?;
    for name in names {
        let advisories = listed.get(name.as_str()).map(|raw| list(raw)).unwrap_or_default();
        found.entry(name.clone()).or_default().extend(advisories);
    }
    Ok(())
}

/// The advisories of a reply, by package; `None` for any other document.
fn read(text: &str) -> Option<BTreeMap<String, &RawValue>> {
    let reply: AuditReply<'_> = serde_json::from_str(text).ok()?;
    // PHP writes an empty map as an empty list.
    serde_json::from_str(reply.advisories.get()).ok().or_else(|| {
        let list: Vec<&RawValue> = serde_json::from_str(reply.advisories.get()).ok()?;
        list.is_empty().then(BTreeMap::new)
    })
}

/// Returns the advisories about a package, without entries that are not objects. Reads a list or a
/// map, because PHP writes a list with gaps as a map.
fn list(raw: &RawValue) -> Vec<String> {
    let all = match serde_json::from_str::<Value>(raw.get()) {
        Ok(Value::Array(all)) => all,
        Ok(Value::Object(all)) => all.into_iter().map(|(_, advisory)| advisory).collect(),
        _ => Vec::new(),
    };
    all.iter().filter(|one| one.is_object()).map(Value::to_string).collect()
}
