//! A response to a plugin's request: its head, and the location of its content.

use std::sync::Arc;

use packhouse_store::{Arriving, Blob, CachedAnswer, now_ms};
use tokio::sync::watch;

use super::authentication::CredentialProblem;

/// A response's head, and the location of its content. Cheap to clone.
#[derive(Clone)]
pub(crate) struct FetchedResponse {
    pub status: u16,
    pub headers: Arc<Vec<(String, String)>>,
    /// The address that answered, without its query.
    pub address: String,
    pub content: ResponseContent,
    /// True if the upstream confirmed a cached response.
    pub revalidated: bool,
    /// The refusal, if the upstream refused the request. Plugins see a 404.
    pub refusal: Option<UpstreamRefusal>,
}

/// A response with which an upstream refuses to disclose something.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamRefusal {
    pub status: u16,
    /// A problem with the upstream's credentials.
    pub problem: Option<CredentialProblem>,
}

impl UpstreamRefusal {
    /// Describes the refusal of a request for this path.
    pub(crate) fn at(&self, path: &str) -> String {
        let problem = self.problem.as_ref().map(|problem| format!("; {problem}")).unwrap_or_default();
        format!("the upstream answered with status {}, for {path}{problem}", self.status)
    }
}

/// Location of a response's content.
#[derive(Clone)]
pub(crate) enum ResponseContent {
    /// The whole content. None for a cached response without content.
    Complete(Option<Blob>),
    /// Content that is received once a call demands it.
    Body(watch::Receiver<Option<Arriving>>),
}

impl FetchedResponse {
    /// Creates a response without headers and content.
    pub(crate) fn bare(status: u16, address: &str) -> FetchedResponse {
        FetchedResponse {
            status,
            headers: Arc::default(),
            address: address.to_owned(),
            content: ResponseContent::Complete(None),
            revalidated: false,
            refusal: None,
        }
    }

    /// Creates a response from the cache. The `age` header tells the plugin how many seconds old
    /// the response is.
    pub(crate) fn from_cache(cached: &CachedAnswer) -> FetchedResponse {
        let age = now_ms().saturating_sub(cached.validated_at).max(0) / 1000;
        let headers = cached.headers.iter().cloned().chain([("age".to_owned(), age.to_string())]);
        FetchedResponse { headers: Arc::new(headers.collect()), ..Self::from_unverified(cached) }
    }

    /// Creates a response that was received but is not cached yet.
    pub(crate) fn from_unverified(received: &CachedAnswer) -> FetchedResponse {
        FetchedResponse {
            status: received.status,
            headers: Arc::new(received.headers.clone()),
            address: received.address.clone(),
            content: ResponseContent::Complete(received.blob.clone()),
            revalidated: false,
            refusal: None,
        }
    }

    /// Returns a header's value. `name` must be in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}
