//! A plugin's request to an upstream, with all that decides its response.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use packhouse_runtime::{Fetch, Freshness, RepositoryView, ServiceError};
use packhouse_store::{CacheName, RepositoryId};
use sha2::{Digest as _, Sha256};

use super::cache_key::CacheKey;
use super::request::{self, Target, UpstreamRequest};
use super::settings::ProxySettings;

/// See the module.
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
    /// The largest response, in bytes.
    pub limit: u64,
    /// Package, version and path.
    pub show_as: Option<(String, String, String)>,
    /// The packages and versions by whose state, age and advisories the response is judged: it may be served where one of them may.
    pub judged_as: Vec<(String, String)>,
    /// Whether the format's proxies present credentials at all.
    pub presents_credentials: bool,
}

impl FetchPlan {
    /// Reads what a plugin asked for. `Denied` for a repository that is no proxy, `Invalid` for a target or header that cannot be.
    pub(crate) fn new(
        proxy: &RepositoryView,
        fetch: Fetch,
        presents_credentials: bool,
    ) -> Result<FetchPlan, ServiceError> {
        let settings = ProxySettings::of(proxy)?;
        let Target { url, below_upstream } = Target::resolve(&settings.upstream, &fetch.target)?;
        let headers = request::plugin_headers(&fetch.headers)?;
        let judged_as = fetch.judged_as().iter();
        let judged_as = judged_as.map(|(name, version, _)| (name.clone(), version.clone())).collect();
        let method: Method = fetch
            .method
            .parse()
            .map_err(|_| ServiceError::Invalid(format!("a method {:?}", fetch.method)))?;
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

    /// The target for people and logs: without its query, which may hold a signature.
    pub(crate) fn path(&self) -> &str {
        self.target.split(['?', '#']).next().unwrap_or_default()
    }

    /// The path for clients: of an absolute target without its host, which may be one of an inner
    /// network.
    pub(crate) fn public_path(&self) -> &str {
        let path = self.path();
        let host = path.split_once("://").map(|(_, rest)| rest);
        host.map_or(path, |rest| rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/"))
    }

    /// The key of its response in the caches.
    pub(crate) fn key(&self) -> CacheKey {
        CacheKey { repository: self.repository, name: self.name }
    }

    /// Whether its response may be cached.
    pub(crate) fn is_cacheable(&self) -> bool {
        self.request.method == Method::GET || self.request.method == Method::HEAD
    }

    /// Whether a plugin must have read its response before it is cached: metadata, and every response to a `HEAD`, which no digest
    /// vouches for.
    pub(crate) fn needs_verification(&self) -> bool {
        self.request.method == Method::HEAD || (self.request.method == Method::GET && !self.is_file())
    }

    /// Whether it asks for a file that never changes, and so for its exact bytes.
    pub(crate) fn is_file(&self) -> bool {
        self.freshness == Some(Freshness::Immutable)
    }
}

/// The name of a response in the cache. It contains the whole address, so that another upstream's response has another name.
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
    fn clients_see_no_host_and_nobody_a_query() {
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
    fn what_may_be_answered_otherwise_has_another_name() {
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
