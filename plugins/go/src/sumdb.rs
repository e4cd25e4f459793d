//! The checksum database, passed through where the upstream passes it through. A hosted repository has none: then the go command asks
//! the database itself, but for modules in `GONOSUMDB`.

use crate::module::Module;
use crate::{hosted, proxy};
use packhouse_sdk::{Context, Failure, Freshness, Intent, Params, Request, Response, percent_encode};

/// Bytes of a tile or a record.
const LIMIT: u64 = 4 << 20;

/// The module that a database is asked for, in the fourth segment on: `sumdb/NAME/lookup/MODULE@VERSION`.
fn module(path: &[String]) -> Option<Module> {
    let [_, lookup, rest @ ..] = path else { return None };
    let whole = rest.join("/");
    let (module, _) = whole.split_once('@').filter(|_| lookup == "lookup")?;
    Module::unescape(module)
}

/// A lookup names a module, of which no upstream hears where it is one of ours.
pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let path = params.segments("path");
    let intent = Intent::read().subject(path.join("/"));
    let is_lookup = path.get(1).is_some_and(|second| second == "lookup");
    match module(path) {
        Some(module) => Ok(intent.about_package(module.as_str())),
        None if is_lookup => Err(missing()),
        None => Ok(intent.many_packages()),
    }
}

pub(crate) fn get(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let path = params.segments("path");
    // The database's own `latest` moves; tiles that are full and records do not.
    let moving = path.get(1).is_none_or(|second| second == "latest" || second == "supported");
    let target: Vec<String> =
        path.iter().map(|segment| percent_encode(segment).replace("%40", "@").replace("%21", "!")).collect();
    let (proxies, mut left_out) = (cx.proxies()?, cx.left_out());
    for source in &proxies {
        let fetch = cx.upstream("GET", &format!("/sumdb/{}", target.join("/"))).limit(LIMIT).metadata();
        let fetch = if moving { fetch } else { fetch.fresh(Freshness::Immutable) };
        let answer = fetch.start(source).map_err(Failure::from).and_then(proxy::found);
        if let Some(body) = left_out.unless_failed(source, answer)? {
            let response = Response::blob(body).content_type("text/plain; charset=utf-8");
            return Ok(if moving { response.revalidate() } else { response.immutable() });
        }
    }
    left_out.or_failure(None::<()>)?;
    Err(match module(path) {
        Some(module) if is_published(cx, &module)? => own(&module),
        Some(module) if !proxies.is_empty() => unknown(&module),
        _ => missing(),
    })
}

/// Whether a module is published here. Of such a one no upstream hears.
fn is_published(cx: &Context, module: &Module) -> Result<bool, Failure> {
    for source in cx.hosted()? {
        if hosted::versions(source, module)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn own(module: &Module) -> Failure {
    Failure::not_found(format!(
        "not found: {module} is published in this repository, and no checksum database is asked for it; name it in GONOSUMDB"
    ))
}

fn unknown(module: &Module) -> Failure {
    Failure::not_found(format!("not found: the upstream passes no checksum of {module} through"))
}

fn missing() -> Failure {
    Failure::not_found(
        "not found: this repository passes no checksum database through; name your own modules in GONOSUMDB",
    )
}

#[cfg(test)]
mod tests {
    use super::module;

    #[test]
    fn a_lookup_names_its_module() {
        let of = |path: &str| {
            let path: Vec<String> = path.split('/').map(str::to_owned).collect();
            module(&path).map(|module| module.to_string())
        };
        assert_eq!(of("sum.golang.org/lookup/github.com/!a/b@v1.0.0").as_deref(), Some("github.com/A/b"));
        for path in [
            "sum.golang.org/supported",
            "sum.golang.org/latest",
            "sum.golang.org/tile/8/0/001",
            "sum.golang.org/lookup/x",
            "x",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
