//! A plugin's request to an upstream, with everything that determines its response.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use packhouse_runtime::{Fetch, Freshness, RepositoryView, ServiceError};
use packhouse_store::{CacheName, RepositoryId};
use sha2::{Digest as _, Sha256};

use super::cache_key::CacheKey;
use super::request::{self, FetchTarget, UpstreamRequest};
use super::settings::ProxySettings;

/// A plugin's request to an upstream; see the module.
pub(crate) struct FetchPlan {
    pub repository: RepositoryId,
    pub repository_name: Arc<str>,
    pub settings: ProxySettings,
    pub request: UpstreamRequest,
    /// The target as the plugin wrote it.
    pub target: String,
    pub name: CacheName,
    /// The name of a `GET` for the same target, whose cached response can answer a `HEAD`.
    pub get_name: CacheName,
    pub freshness: Option<Freshness>,
    /// Maximum size of the response, in bytes.
    pub limit: u64,
    /// Package, version and path that the response is listed under.
    pub show_as: Option<(String, String, String)>,
    /// Packages and versions whose state, age and advisories decide whether the response may be
    /// served. One version that may be served is enough.
    pub judged_as: Vec<(String, String)>,
    /// True if the format's proxies use credentials.
    pub presents_credentials: bool,
}

impl FetchPlan {
    /// Reads a plugin's request. `Denied` if the repository is not a proxy, `Invalid` for an
    /// invalid method, target or header.
    pub(crate) fn new(
        proxy: &RepositoryView,
        fetch: Fetch,
        presents_credentials: bool,
    ) -> Result<FetchPlan, ServiceError> {
        let settings = ProxySettings::of(proxy)?;
        let FetchTarget { url, below_upstream } = FetchTarget::resolve(&settings.upstream, &fetch.target)?;
        let headers = request::plugin_headers(&fetch.headers)?;
        let judged_as = fetch.judged_as().iter();
        let judged_as = judged_as.map(|(name, version, _)| (name.clone(), version.clone())).collect();
        let method: Method = fetch
            .method
            .parse()
            .map_err(|_| ServiceError::Invalid(format!("the method {:?} is not valid", fetch.method)))?;
        let body = fetch.body.map(Bytes::from);
        let request = UpstreamRequest { method, url, headers, body, below_upstream };
        Ok(FetchPlan {
            repository: proxy.id,
            repository_name: Arc::clone(&proxy.name),
            judged_as,
            name: cache_name(request.method.as_str(), &request),
            get_name: cache_name("GET", &request),
            limit: ProxySettings::limit(fetch.limit, fetch.fresh),
            settings,
            request,
            target: fetch.target,
            freshness: fetch.fresh,
            show_as: fetch.show_as,
            presents_credentials,
        })
    }

    /// Returns the target for people and logs, without its query, which may contain a signature.
    pub(crate) fn path(&self) -> &str {
        self.target.split(['?', '#']).next().unwrap_or_default()
    }

    /// Returns the path for clients. The host of an absolute target is removed, because it may be
    /// internal.
    pub(crate) fn public_path(&self) -> &str {
        let path = self.path();
        let host = path.split_once("://").map(|(_, rest)| rest);
        host.map_or(path, |rest| rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/"))
    }

    /// Returns the key of the response in the caches.
    pub(crate) fn key(&self) -> CacheKey {
        CacheKey { repository: self.repository, name: self.name }
    }

    /// Returns true if the response may be cached.
    pub(crate) fn is_cacheable(&self) -> bool {
        self.request.method == Method::GET || self.request.method == Method::HEAD
    }

    /// Returns true if a plugin must have read the response before it is cached: metadata, and
    /// every response to a `HEAD`, which no digest verifies.
    pub(crate) fn needs_verification(&self) -> bool {
        self.request.method == Method::HEAD || (self.request.method == Method::GET && !self.is_file())
    }

    /// Returns true for a file that never changes, whose exact bytes are required.
    pub(crate) fn is_file(&self) -> bool {
        self.freshness == Some(Freshness::Immutable)
    }
}

/// Computes the name of a response in the cache. The name covers the whole address, so that
/// responses of different upstreams have different names.
fn cache_name(method: &str, request: &UpstreamRequest) -> CacheName {
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    };
    add(method.as_bytes());
    add(request.url.as_str().as_bytes());
    for (name, value) in sorted(&request.headers) {
        add(name.as_bytes());
        add(value);
    }
    hash.finalize().into()
}

fn sorted(headers: &HeaderMap) -> Vec<(&str, &[u8])> {
    let mut all: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(method: &str, target: &str, headers: &[(&str, &str)]) -> CacheName {
        plan(method, target, headers).name
    }

    fn plan(method: &str, target: &str, headers: &[(&str, &str)]) -> FetchPlan {
        let mut settings = packhouse_config::repository_settings::effective("{}", false, None);
        settings.insert("upstream".to_owned(), "https://upstream.test/x/".into());
        let view = RepositoryView {
            id: RepositoryId(1),
            revision: 0,
            name: "p".into(),
            kind: "proxy".into(),
            settings: serde_json::Value::Object(settings).to_string().into(),
        };
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let fetch =
            Fetch { method: method.to_owned(), target: target.to_owned(), headers, ..Fetch::default() };
        FetchPlan::new(&view, fetch, false).unwrap()
    }

    #[test]
    fn paths_for_clients_have_no_host_and_no_path_has_a_query() {
        for (target, path, public) in [
            ("/a/b?signature=x", "/a/b", "/a/b"),
            ("a/b", "a/b", "a/b"),
            ("http://10.0.0.1:81/a/b?x#y", "http://10.0.0.1:81/a/b", "/a/b"),
            ("http://10.0.0.1", "http://10.0.0.1", "/"),
        ] {
            let plan = plan("GET", target, &[]);
            assert_eq!((plan.path(), plan.public_path()), (path, public), "{target}");
        }
    }

    #[test]
    fn requests_with_different_responses_have_different_names() {
        let all = [
            named("GET", "/a", &[]),
            named("HEAD", "/a", &[]),
            named("GET", "/a?x", &[]),
            named("GET", "/a", &[("accept", "b")]),
            named("GET", "/a", &[("accept", "c")]),
            named("GET", "https://elsewhere.test/x/a", &[]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all.iter().skip(at + 1).all(|other| other != one), "{at}");
        }
        assert_eq!(named("GET", "a", &[]), named("GET", "/a", &[]));
        assert_eq!(
            named("GET", "/a", &[("accept", "b"), ("x-y", "c")]),
            named("GET", "/a", &[("x-y", "c"), ("accept", "b")])
        );
    }
}
