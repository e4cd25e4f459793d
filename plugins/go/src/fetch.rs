//! `GET` and `HEAD` requests: version lists, version information and files.

use crate::address::{Address, Endpoint, FileKind};
use crate::module::Module;
use crate::records::{Info, missing};
use crate::version::Version;
use crate::{hosted, proxy};
use packhouse_sdk::{Context, Failure, Intent, Output, Params, Repository, Request, Response};
use std::collections::BTreeSet;

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let address = Address::of(request)?;
    Ok(Intent::read().subject(address.subject()).about_package(address.module.as_str()))
}

pub(crate) fn get(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let address = Address::of(request)?;
    let module = &address.module;
    let found = match &address.endpoint {
        Endpoint::List => return list(cx, module),
        Endpoint::Latest => latest(cx, module)?,
        Endpoint::Query(query) => {
            cx.first(
                |source| {
                    if source.is_proxy() { proxy::query(cx, source, module, query) } else { Ok(None) }
                },
            )?
        }
        Endpoint::File(version, kind) => cx.first(|source| file(cx, source, module, version, *kind))?,
    };
    found.ok_or_else(|| missing(&address.subject()))
}

fn file(
    cx: &Context,
    source: &Repository,
    module: &Module,
    version: &Version,
    kind: FileKind,
) -> Result<Option<Response>, Failure> {
    if source.is_proxy() {
        proxy::file(cx, source, module, version, kind)
    } else {
        hosted::file(source, module, version, kind)
    }
}

/// Lists all versions except pseudo-versions. A pseudo-version names a commit, and the protocol
/// leaves it out of the list.
fn list(cx: &Context, module: &Module) -> Result<Response, Failure> {
    let found = cx.all(|source| {
        if source.is_proxy() { proxy::versions(cx, source, module) } else { hosted::versions(source, module) }
    })?;
    if found.is_empty() {
        return Err(missing(module.as_str()));
    }
    let all: BTreeSet<Version> = found.into_iter().flatten().filter(|version| !version.is_pseudo()).collect();
    let mut out = Output::new(cx);
    for version in all {
        out.push(version.as_str())?;
        out.push("\n")?;
    }
    Ok(Response::ok().content_type("text/plain; charset=utf-8").revalidate().content(out.finish()?))
}

/// Returns information about the highest-ranked version among the latest versions of the
/// repositories.
fn latest(cx: &Context, module: &Module) -> Result<Option<Response>, Failure> {
    let found: Vec<Info> = cx.all(|source| {
        if source.is_proxy() { proxy::latest(cx, source, module) } else { hosted::latest(source, module) }
    })?;
    let all = found.into_iter().filter_map(|info| Some((Version::new(&info.version)?, info)));
    let best = all.max_by(|(one, _), (other, _)| one.rank().cmp(&other.rank()));
    best.map(|(_, info)| Ok(Response::json(&info)?.revalidate())).transpose()
}
