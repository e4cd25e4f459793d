//! The step resolve: determines the route of a request from its host and path, before any look-up.
//! It refuses malformed requests.

use std::sync::Arc;

use http::request::Parts;
use packhouse_runtime::{Claim, ErrorFormat, Plugin, PluginSet, Runtime};

use crate::error_response::HttpError;
use crate::health::{self, HealthEndpoint};
use crate::request_context::no_format;
use packhouse_wire::catalogue;
use packhouse_wire::host::host;
use packhouse_wire::path::{self, Path, PathError};

/// Maximum size of a path with its query, in bytes.
const MAX_TARGET_BYTES: usize = 8 * 1024;
/// Maximum size of all header fields, in bytes.
const MAX_HEADER_BYTES: usize = 32 * 1024;
/// Maximum number of header fields. The limit of the connection is higher by one, so that this
/// limit takes effect for HTTP/2 too.
const MAX_HEADERS: usize = 100;

/// The route of a request.
pub(crate) enum Route {
    /// A route that the host answers without a plugin.
    Host(HostRoute),
    /// A path below a repository's address or below a claim.
    Repository(RepositoryAddress),
}

/// The routes that the host answers without a plugin.
pub(crate) enum HostRoute {
    /// The root, which requires no credential.
    Root,
    /// Health, which requires no credential.
    Health(HealthEndpoint),
    /// A path that the server does not serve.
    NotServed,
    /// A path that the server may serve later: a component that is still being compiled may claim
    /// it.
    Awaited,
    /// A request of trusted publishing from a client of this plugin's format, with its path.
    Exchange(Arc<Plugin>, Vec<String>),
    /// A path of trusted publishing that has no endpoint. Clients then use their token.
    NotEnabled,
    /// The list of repositories that a credential reaches.
    RepositoryList,
    TokenService(Arc<Plugin>),
}

/// A path below a repository's address or below a claim.
pub(crate) struct RepositoryAddress {
    /// The name in the path, even if there is no such repository. `None` below a claim without a
    /// repository.
    pub name: Option<String>,
    /// The rest of the path, which the plugin sees.
    pub path: Arc<[String]>,
    /// True if a segment contained an encoded slash.
    pub encoded_slash: bool,
    /// The claim that contains the path, if any.
    pub claim: Option<ClaimMatch>,
    /// The part of the path before `path`, without a trailing slash.
    pub base: String,
}

/// A claim that contains the path of a request.
pub(crate) struct ClaimMatch {
    pub plugin: Arc<Plugin>,
    /// Name of the claim in the format's description.
    pub name: String,
    pub challenge: Option<String>,
}

/// The parsed target of a request.
pub(crate) struct RequestTarget {
    /// Host name that the client sent, in lower case.
    pub host: Option<String>,
    pub route: Route,
    pub query: Vec<(String, String)>,
}

/// Returns the host name that the client sent, in lower case. Fails with 400 for a malformed
/// request, and with 414 or 431 for a request that exceeds the limits.
pub(crate) fn read_host(parts: &Parts) -> Result<Option<String>, HttpError> {
    within_limits(parts)?;
    host(parts).map_err(|sentence| HttpError::with(&catalogue::INVALID_REQUEST, sentence))
}

/// Parses the target of a request. `path` is the path without the path of the public URL. Fails
/// with 400 for a malformed target, and with 414 for a path or query that is too long.
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

/// Returns the error format of the claim that contains this path, even if the path is malformed.
/// Clients of a format's protocol get every error in that protocol.
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

/// Returns the rest of a path. Treats a single trailing slash as no rest.
fn tail(segments: impl Iterator<Item = String>) -> Arc<[String]> {
    let rest: Arc<[String]> = segments.collect();
    if rest.len() == 1 && rest.iter().all(String::is_empty) { Arc::default() } else { rest }
}

/// Returns the route to the longest claim that contains this path.
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

/// Returns the number of segments that a claim matches, and the repository that the path names.
/// Returns `None` if the claim does not match.
fn match_claim(claim: &str, segments: &[String]) -> Option<(usize, Option<String>)> {
    let mut name = None;
    let mut length = 0;
    for expected in claim.trim_matches('/').split('/') {
        let found = segments.get(length)?;
        if expected == "{repository}" && !found.is_empty() {
            name = Some(found.clone());
        } else if expected != found {
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
