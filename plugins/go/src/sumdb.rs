//! Checksum databases. A proxy passes requests for a checksum database on to its upstream. A hosted
//! repository answers them with 404. The go command then contacts the database directly, except for
//! modules in `GONOSUMDB`.

use crate::module::Module;
use crate::{hosted, proxy};
use packhouse_sdk::{Context, Failure, Freshness, Intent, Params, Request, Response, percent_encode};

/// Maximum bytes of a tile or a record.
const LIMIT: u64 = 4 << 20;

/// Returns the module of a look-up, `sumdb/NAME/lookup/MODULE@VERSION`; `None` for other requests.
/// `path` starts with the name of the database.
fn module(path: &[String]) -> Option<Module> {
    let [_, lookup, rest @ ..] = path else { return None };
    let whole = rest.join("/");
    let (module, _) = whole.split_once('@').filter(|_| lookup == "lookup")?;
    Module::unescape(module)
}

/// Names the module of a look-up in the intent. If a hosted member of a group has the module, the
/// host then leaves out the group's proxies, so that no upstream learns the name.
pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let path = params.segments("path");
    let intent = Intent::read().subject(path.join("/"));
    let is_lookup = path.get(1).is_some_and(|second| second == "lookup");
    match module(path) {
        Some(module) => Ok(intent.about_package(module.as_str())),
        None if is_lookup => Err(no_database()),
        None => Ok(intent.many_packages()),
    }
}

pub(crate) fn get(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let path = params.segments("path");
    // Only the database's `latest` and `supported` change. Tiles and records never change.
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
        Some(module) if is_published(cx, &module)? => published_here(&module),
        Some(module) if !proxies.is_empty() => no_checksums(&module),
        _ => no_database(),
    })
}

/// Returns true if a hosted repository has the module. `get` then explains in its error why it
/// asked no upstream.
fn is_published(cx: &Context, module: &Module) -> Result<bool, Failure> {
    for source in cx.hosted()? {
        if hosted::versions(source, module)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn published_here(module: &Module) -> Failure {
    Failure::not_found(format!(
        "not found: {module} is published in this repository, so its checksums are not looked up elsewhere; add it to GONOSUMDB"
    ))
}

fn no_checksums(module: &Module) -> Failure {
    Failure::not_found(format!("not found: the upstream has no checksums of {module}"))
}

fn no_database() -> Failure {
    Failure::not_found(
        "not found: this repository serves no checksum database; list your own modules in GONOSUMDB",
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
