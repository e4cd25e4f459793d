//! A response to a plugin's request: its head, and where its content is.

use std::sync::Arc;

use packhouse_store::{Arriving, Blob, CachedAnswer, now_ms};
use tokio::sync::watch;

use super::authentication::CredentialProblem;

/// A response's head, and where its content is. Cheap to clone.
#[derive(Clone)]
pub(crate) struct FetchedResponse {
    pub status: u16,
    pub headers: Arc<Vec<(String, String)>>,
    /// The address that answered, without its query.
    pub address: String,
    pub content: Content,
    /// Whether the upstream confirmed a cached response.
    pub revalidated: bool,
    /// Where the upstream refused the request: how. Plugins see a 404.
    pub refusal: Option<Refusal>,
}

/// How an upstream refuses to say what it has.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub status: u16,
    /// What became of the upstream's credentials, where that is a problem.
    pub problem: Option<CredentialProblem>,
}

impl Refusal {
    /// What happened at this path, in words.
    pub(crate) fn at(&self, path: &str) -> String {
        let problem = self.problem.as_ref().map(|problem| format!("; {problem}")).unwrap_or_default();
        format!("the upstream answered with status {}, for {path}{problem}", self.status)
    }
}

/// Where a response's content is.
#[derive(Clone)]
pub(crate) enum Content {
    /// All of it is here. A cached response without content has none.
    Complete(Option<Blob>),
    /// It is received once somebody demands it.
    Body(watch::Receiver<Option<Arriving>>),
}

impl FetchedResponse {
    /// A response without headers and content.
    pub(crate) fn bare(status: u16, address: &str) -> FetchedResponse {
        FetchedResponse {
            status,
            headers: Arc::default(),
            address: address.to_owned(),
            content: Content::Complete(None),
            revalidated: false,
            refusal: None,
        }
    }

    /// A response from the cache. Its `age` header tells the plugin that it is one, and for how many seconds.
    pub(crate) fn from_cache(cached: &CachedAnswer) -> FetchedResponse {
        let age = now_ms().saturating_sub(cached.validated_at).max(0) / 1000;
        let headers = cached.headers.iter().cloned().chain([("age".to_owned(), age.to_string())]);
        FetchedResponse { headers: Arc::new(headers.collect()), ..Self::from_unverified(cached) }
    }

    /// A response that was received and is not cached yet.
    pub(crate) fn from_unverified(received: &CachedAnswer) -> FetchedResponse {
        FetchedResponse {
            status: received.status,
            headers: Arc::new(received.headers.clone()),
            address: received.address.clone(),
            content: Content::Complete(received.blob.clone()),
            revalidated: false,
            refusal: None,
        }
    }

    /// A header's value; `name` in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}
