//! What a plugin asks of an upstream, made sense of.

use bytes::Bytes;
use http::{HeaderMap, Method};
use packhouse_runtime::{Fetch, Freshness, RepositoryView, ServiceError};
use packhouse_store::{CacheName, RepositoryId};
use sha2::{Digest as _, Sha256};

use super::exchange::{self, Question};
use super::policy::Policy;

/// A question with all that decides its answer.
pub(crate) struct Plan {
    pub repository: RepositoryId,
    pub policy: Policy,
    pub question: Question,
    pub target: String,
    pub name: CacheName,
    /// Of a `GET` for the same, whose kept answer can answer a `HEAD`.
    pub as_get: CacheName,
    pub freshness: Option<Freshness>,
    pub limit: u64,
    /// Package, version and path.
    pub show_as: Option<(String, String, String)>,
    /// Whether the format's proxies show credentials at all.
    pub credentials: bool,
}

impl Plan {
    /// `Denied` for a repository that is no proxy, `Invalid` for a target or header that cannot be.
    pub(crate) fn of(view: &RepositoryView, fetch: Fetch) -> Result<Plan, ServiceError> {
        let policy = Policy::of(view)?;
        let (url, own) = Question::address(&policy.upstream, &fetch.target)?;
        let headers = exchange::sendable(&fetch.headers)?;
        let method: Method = fetch
            .method
            .parse()
            .map_err(|_| ServiceError::Invalid(format!("a method {:?}", fetch.method)))?;
        let body = fetch.body.map(Bytes::from);
        let question = Question { method, url, headers, body, own };
        Ok(Plan {
            repository: view.id,
            name: name(question.method.as_str(), &question),
            as_get: name("GET", &question),
            limit: Policy::limit(fetch.limit, fetch.fresh),
            policy,
            question,
            target: fetch.target,
            freshness: fetch.fresh,
            show_as: fetch.show_as,
            credentials: false,
        })
    }

    /// Whether its answers are kept at all.
    pub(crate) fn is_kept(&self) -> bool {
        self.question.method == Method::GET || self.question.method == Method::HEAD
    }

    /// Whether its answer is one that a plugin must make sense of before it is kept: metadata, and every head, which nothing
    /// vouches for.
    pub(crate) fn is_on_trial(&self) -> bool {
        self.question.method == Method::HEAD || (self.question.method == Method::GET && !self.is_file())
    }

    /// Whether it asks for a file that never changes, and so for its very bytes.
    pub(crate) fn is_file(&self) -> bool {
        self.freshness == Some(Freshness::Immutable)
    }
}

/// By what the cache knows the answer: the whole address, so that what another upstream answered is another answer.
fn name(method: &str, question: &Question) -> CacheName {
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    };
    add(method.as_bytes());
    add(question.url.as_str().as_bytes());
    for (name, value) in sorted(&question.headers) {
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
        let mut settings = packhouse_config::repository_settings::effective("{}", false, None);
        settings.insert("upstream".to_owned(), "https://upstream.test/x/".into());
        let view = RepositoryView {
            id: RepositoryId(1),
            name: "p".to_owned(),
            kind: "proxy".to_owned(),
            settings: serde_json::Value::Object(settings).to_string().into(),
        };
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let fetch =
            Fetch { method: method.to_owned(), target: target.to_owned(), headers, ..Fetch::default() };
        Plan::of(&view, fetch).unwrap().name
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
