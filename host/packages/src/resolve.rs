//! The step resolve: from a request's host and path to the route that it takes, before anything is looked up. Malformed requests
//! end here.

use std::sync::Arc;

use http::request::Parts;
use packhouse_runtime::{Claim, ErrorFormat, Plugin, PluginSet, Runtime};

use crate::error_response::HttpError;
use crate::health::{self, Health};
use crate::request_context::no_format;
use packhouse_wire::catalogue;
use packhouse_wire::host::host;
use packhouse_wire::path::{self, Path, PathError};

/// Bytes of a path with its query.
const MAX_TARGET_BYTES: usize = 8 * 1024;
/// Bytes of all header fields together.
const MAX_HEADER_BYTES: usize = 32 * 1024;
/// Header fields. The connection's own limit lets one more through, so that HTTP/2 has the same.
const MAX_HEADERS: usize = 100;

/// Where a path leads.
pub(crate) enum Route {
    /// To what the host answers itself.
    Host(HostRoute),
    /// Below a repository's address, or below a claim.
    Repository(RepositoryAddress),
}

/// What the host answers itself.
pub(crate) enum HostRoute {
    /// The root, which checks no credential.
    Root,
    /// How the server is, which checks no credential either.
    Health(Health),
    /// Nothing that is served.
    NotServed,
    /// Nothing that is served yet: whose it is only components tell that are still being compiled.
    Awaited,
    /// Where this plugin's clients exchange ID tokens, by this path.
    Exchange(Arc<Plugin>, Vec<String>),
    /// A path of trusted publishing at which nothing is offered: clients then use their token.
    NotEnabled,
    /// The list of what a credential reaches.
    RepositoryList,
    /// The token service of this plugin's format.
    TokenService(Arc<Plugin>),
}

/// A path below a repository's address, or below a claim.
pub(crate) struct RepositoryAddress {
    /// The repository's name, which may be no repository's; none below a claim that names none.
    pub name: Option<String>,
    /// What follows, as plugins see it.
    pub path: Arc<[String]>,
    /// Whether a segment came with an encoded slash.
    pub encoded_slash: bool,
    /// The claim on a root path that led here.
    pub claim: Option<ClaimMatch>,
    /// What stands between the host and `path`, without a slash at its end.
    pub base: String,
}

/// A claim on a root path that a path lies below.
pub(crate) struct ClaimMatch {
    /// Whose it is.
    pub plugin: Arc<Plugin>,
    /// Its name in the description.
    pub name: String,
    /// The template of its scopes.
    pub challenge: Option<String>,
}

/// A request's target, read.
pub(crate) struct RequestTarget {
    /// Its host as the client wrote it, in lower case.
    pub host: Option<String>,
    /// Where its path leads.
    pub route: Route,
    /// Its query.
    pub query: Vec<(String, String)>,
}

/// The host that a request names, as the client wrote it, in lower case. 400 for what is malformed, 414 and 431 for what is too long.
pub(crate) fn read_host(parts: &Parts) -> Result<Option<String>, HttpError> {
    within_limits(parts)?;
    host(parts).map_err(|sentence| HttpError::with(&catalogue::INVALID_REQUEST, sentence))
}

/// Reads a request's target, whose path is given without that of the public address. 400 for what is malformed, 414 for what is too
/// long.
pub(crate) fn resolve(
    parts: &Parts,
    host: Option<String>,
    path: &str,
    runtime: &Runtime,
) -> Result<RequestTarget, HttpError> {
    let path = Path::parse(path).map_err(malformed)?;
    let query = path::parse_query(parts.uri.query().unwrap_or_default()).map_err(malformed)?;
    Ok(RequestTarget { host, route: find_route(path, &runtime.current()), query })
}

/// How errors look below the claim that a path lies below, as far as can be told of a path that may be malformed: whoever speaks a
/// format's protocol is answered in it, whatever is wrong.
pub(crate) fn error_format(path: &str, runtime: &Runtime) -> Arc<ErrorFormat> {
    let below = |claim: &Claim| {
        let fixed = claim.path.split('{').next().unwrap_or_default();
        path.starts_with(fixed) || path == fixed.trim_end_matches('/')
    };
    let current = runtime.current();
    let served = current.claims().map(|(plugin, claim)| (plugin.description(), claim));
    let awaited = current.awaited_claims().map(|(description, claim)| (&**description, claim));
    let all = served.chain(awaited).filter(|(_, claim)| below(claim));
    all.max_by_key(|(_, claim)| claim.path.len())
        .map_or_else(no_format, |(description, _)| Arc::clone(&description.error_format))
}

fn within_limits(parts: &Parts) -> Result<(), HttpError> {
    let target = parts.uri.path().len() + parts.uri.query().map_or(0, str::len);
    if target > MAX_TARGET_BYTES {
        return Err(HttpError::of(&catalogue::URI_TOO_LONG));
    }
    let bytes: usize = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > MAX_HEADER_BYTES || parts.headers.len() > MAX_HEADERS {
        return Err(HttpError::of(&catalogue::HEADERS_TOO_LARGE));
    }
    Ok(())
}

fn malformed(error: PathError) -> HttpError {
    match error {
        PathError::TooLong => HttpError::of(&catalogue::URI_TOO_LONG),
        other => HttpError::with(&catalogue::MALFORMED_ADDRESS, &other.to_string()),
    }
}

fn find_route(path: Path, plugins: &PluginSet) -> Route {
    if path.segments.is_empty() {
        return Route::Host(HostRoute::Root);
    }
    if path.segments.first().is_some_and(|first| first == "repositories") {
        return below_repositories(path);
    }
    if let Some(health) = health::find(&path.segments) {
        return Route::Host(HostRoute::Health(health));
    }
    let gives = |plugin: &&Arc<Plugin>| plugin.description().exchanges_at(&path.segments).next().is_some();
    if let Some(plugin) = plugins.plugins().iter().find(gives) {
        return Route::Host(HostRoute::Exchange(Arc::clone(plugin), path.segments));
    }
    let exchanges = |plugin: &Arc<Plugin>| plugin.description().exchanges_identities_at(&path.segments);
    if plugins.plugins().iter().any(exchanges) {
        return Route::Host(HostRoute::NotEnabled);
    }
    if let Some(plugin) = token_service(&path.segments, plugins) {
        return Route::Host(HostRoute::TokenService(plugin));
    }
    claimed(path, plugins)
}

fn token_service(segments: &[String], plugins: &PluginSet) -> Option<Arc<Plugin>> {
    let is_here = |plugin: &&Arc<Plugin>| {
        let service = plugin.description().token_service.as_ref();
        service.is_some_and(|service| {
            service.path.trim_matches('/').split('/').eq(segments.iter().map(String::as_str))
        })
    };
    plugins.plugins().iter().find(is_here).cloned()
}

fn below_repositories(path: Path) -> Route {
    let encoded_slash = path.encoded_slash;
    let is_list = path.segments.len() == 2;
    let mut segments = path.segments.into_iter().skip(1);
    match segments.next().filter(|name| !name.is_empty()) {
        Some(name) => {
            let base = ["/repositories/", &name].concat();
            Route::Repository(RepositoryAddress {
                name: Some(name),
                path: tail(segments),
                encoded_slash,
                claim: None,
                base,
            })
        }
        None if is_list => Route::Host(HostRoute::RepositoryList),
        None => Route::Host(HostRoute::NotServed),
    }
}

/// The rest of a path; an address with nothing but a slash behind it is the address itself.
fn tail(segments: impl Iterator<Item = String>) -> Arc<[String]> {
    let rest: Arc<[String]> = segments.collect();
    if rest.len() == 1 && rest.iter().all(String::is_empty) { Arc::default() } else { rest }
}

/// The longest claim on a root path that this path lies below.
fn claimed(path: Path, plugins: &PluginSet) -> Route {
    let matches = plugins.claims().filter_map(|(plugin, claim)| {
        let (length, name) = match_claim(&claim.path, &path.segments)?;
        Some((length, name, plugin, claim))
    });
    let Some((length, name, plugin, claim)) = matches.max_by_key(|(length, ..)| *length) else {
        let is_whole = plugins.awaited().is_empty();
        return Route::Host(if is_whole { HostRoute::NotServed } else { HostRoute::Awaited });
    };
    let base = claim.path.trim_end_matches('/').replace("{repository}", name.as_deref().unwrap_or_default());
    Route::Repository(RepositoryAddress {
        name,
        encoded_slash: path.encoded_slash,
        path: tail(path.segments.into_iter().skip(length)),
        claim: Some(ClaimMatch {
            plugin: Arc::clone(plugin),
            name: claim.name.clone(),
            challenge: claim.challenge.clone(),
        }),
        base,
    })
}

/// How many segments a claim takes, and the repository that it names.
fn match_claim(claim: &str, segments: &[String]) -> Option<(usize, Option<String>)> {
    let mut name = None;
    let mut length = 0;
    for wanted in claim.trim_matches('/').split('/') {
        let found = segments.get(length)?;
        if wanted == "{repository}" && !found.is_empty() {
            name = Some(found.clone());
        } else if wanted != found {
            return None;
        }
        length += 1;
    }
    Some((length, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(path: &str) -> Vec<String> {
        Path::parse(path).unwrap().segments
    }

    #[test]
    fn claims_take_their_segments() {
        assert_eq!(match_claim("/v2/", &segments("/v2/")), Some((1, None)));
        assert_eq!(match_claim("/v2/", &segments("/v3/")), None);
        let found = match_claim("/v2/repositories/{repository}/", &segments("/v2/repositories/r/image"));
        assert_eq!(found, Some((3, Some("r".to_owned()))));
        assert_eq!(match_claim("/v2/repositories/{repository}/", &segments("/v2/repositories/")), None);
    }

    #[test]
    fn a_repository_is_the_second_segment() {
        for (raw, name, rest) in [
            ("/repositories/r", "r", vec![]),
            ("/repositories/r/", "r", vec![]),
            ("/repositories/r/a/", "r", vec!["a", ""]),
        ] {
            let Route::Repository(address) = below_repositories(Path::parse(raw).unwrap()) else {
                panic!("{raw}")
            };
            assert_eq!(
                (address.name.as_deref(), address.path),
                (Some(name), rest.iter().map(ToString::to_string).collect())
            );
        }
        assert!(matches!(
            below_repositories(Path::parse("/repositories").unwrap()),
            Route::Host(HostRoute::NotServed)
        ));
        assert!(matches!(
            below_repositories(Path::parse("/repositories/").unwrap()),
            Route::Host(HostRoute::RepositoryList)
        ));
    }
}
