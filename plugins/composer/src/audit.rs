//! `composer audit`: the advisories that the operator imported, beside those of the upstreams.

use crate::upstream::{self, unusable};
use crate::{advisory, form, name, proxy};
use packhouse_sdk::{
    Context, Failure, Freshness, Intent, Output, Params, Repository, Request, Response, percent_encode,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// The size limit of a question, in bytes.
const QUESTION: u64 = 2 << 20;
/// The number of packages in a question at most.
const PACKAGES: usize = 10_000;
/// The size limit of an upstream's answer, in bytes.
const ANSWER: u64 = 8 << 20;

/// Advisories as JSON, by the names of their packages.
type Told = BTreeMap<String, Vec<String>>;

pub(crate) fn plan(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().body(QUESTION).many_packages())
}

/// `GET` or `POST /security-advisories`, with names in `packages[]`.
pub(crate) fn advisories(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let names = asked(request)?;
    let mut told = Told::new();
    for proxy in cx.proxies()? {
        if !is_offline(proxy)? {
            ask(cx, proxy, &names, &mut told)?;
        }
    }
    for (package, known) in cx.target()?.advisories(&names)? {
        let told = told.entry(package.clone()).or_default();
        let upstreams: Vec<Value> = told.iter().filter_map(|json| serde_json::from_str(json).ok()).collect();
        let new = known.iter().filter(|one| !upstreams.iter().any(|it| advisory::is_same(it, one)));
        told.extend(new.filter_map(|one| advisory::written(one, &package)).map(|it| it.to_string()));
    }
    told.retain(|_, advisories| !advisories.is_empty());
    written(cx, &told)
}

fn written(cx: &Context, told: &Told) -> Result<Response, Failure> {
    let mut out = Output::new(cx);
    out.push(r#"{"advisories":{"#)?;
    for (at, (package, advisories)) in told.iter().enumerate() {
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

/// The packages that a request names, in its query or in a form.
fn asked(request: &Request) -> Result<Vec<String>, Failure> {
    let body = match request.take_body() {
        Some(body) => body.text(QUESTION).map_err(|_| Failure::invalid("The body is not a form"))?,
        None => String::new(),
    };
    let fields = form::fields(&body).chain(request.query_pairs().iter().cloned());
    let packages = fields.filter(|(field, _)| field == "packages" || field.starts_with("packages["));
    let names: BTreeSet<String> = packages
        .map(|(_, package)| package.to_ascii_lowercase())
        .filter(|package| name::is_name(package))
        .take(PACKAGES)
        .collect();
    if names.is_empty() {
        return Err(Failure::invalid("Name the packages in `packages[]`, as vendor/package"));
    }
    Ok(names.into_iter().collect())
}

/// Whether the proxy never asks its upstream. Then the imported advisories are all that is known.
fn is_offline(proxy: &Repository) -> Result<bool, Failure> {
    let settings: Value = proxy.settings()?;
    Ok(settings.get("offline").and_then(Value::as_bool).unwrap_or_default())
}

/// An upstream's answer.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    advisories: &'a RawValue,
}

/// Adds what an upstream knows about these packages. Nothing is asked about a package that must not
/// be looked for at the upstream.
///
/// # Errors
/// 502 if the upstream does not answer: without its answer the packages would look harmless.
fn ask(cx: &Context, proxy: &Repository, names: &[String], told: &mut Told) -> Result<(), Failure> {
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
        .limit(ANSWER)
        .metadata()
        .body(fields.collect::<Vec<_>>().join("&").as_bytes());
    let reply = fetch.start(proxy)?;
    let path = reply.path().to_owned();
    let Some(body) = upstream::found(reply)? else {
        return Err(unusable(&path, "the upstream does not answer which advisories there are"));
    };
    let text = upstream::text(&body, &path, ANSWER)?;
    let read = read(&text).ok_or_else(|| unusable(&path, "no advisories"))?;
    for name in names {
        let advisories = read.get(name.as_str()).map(|raw| list(raw)).unwrap_or_default();
        told.entry(name.clone()).or_default().extend(advisories);
    }
    Ok(())
}

/// The advisories of an answer, by package; none for another document.
fn read(text: &str) -> Option<BTreeMap<String, &RawValue>> {
    let answer: Answer<'_> = serde_json::from_str(text).ok()?;
    // PHP writes an empty map as an empty list.
    serde_json::from_str(answer.advisories.get()).ok().or_else(|| {
        let list: Vec<&RawValue> = serde_json::from_str(answer.advisories.get()).ok()?;
        list.is_empty().then(BTreeMap::new)
    })
}

/// The advisories about a package that are objects. PHP writes a list with gaps as a map.
fn list(raw: &RawValue) -> Vec<String> {
    let all = match serde_json::from_str::<Value>(raw.get()) {
        Ok(Value::Array(all)) => all,
        Ok(Value::Object(all)) => all.into_iter().map(|(_, advisory)| advisory).collect(),
        _ => Vec::new(),
    };
    all.iter().filter(|one| one.is_object()).map(Value::to_string).collect()
}
