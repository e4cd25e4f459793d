//! Whether two answers are the same for a client: status, content, and all headers but those that say the same in other words or change by
//! themselves.

use std::sync::Arc;

use http::header::{AGE, ETAG};
use http::{HeaderMap, HeaderName, HeaderValue};
use packhouse_runtime::{Content, Failure};
use packhouse_store::{Sha256, StoreError};
use sha2::Digest as _;

use crate::prepared_response::{PreparedResponse, size};

/// What a component made of a request.
pub(super) enum Seen {
    /// An answer.
    Response(Arc<PreparedResponse>),
    /// A refusal.
    Refused(Failure),
    /// Nothing: why, in a word.
    Failed(&'static str),
    /// It would do something else than was allowed.
    OtherIntent,
}

/// Whether both are the same; none where that cannot be told, because bytes are still on their way or cannot be read.
pub(super) async fn same(one: &Seen, other: &Seen) -> Option<bool> {
    match (one, other) {
        (Seen::Response(one), Seen::Response(other)) => same_response(one, other).await,
        (Seen::Refused(one), Seen::Refused(other)) => Some(same_refusal(one, other)),
        (Seen::Failed(one), Seen::Failed(other)) => Some(one == other),
        (Seen::OtherIntent, Seen::OtherIntent) => Some(true),
        _ => Some(false),
    }
}

async fn same_response(one: &PreparedResponse, other: &PreparedResponse) -> Option<bool> {
    if one.status != other.status || compared(&one.headers) != compared(&other.headers) {
        return Some(false);
    }
    if let (Content::Arriving(one), Content::Arriving(other)) = (&one.content, &other.content)
        && one.is_same(other)
    {
        return Some(true);
    }
    let arrives =
        |content: &Content| matches!(content, Content::Arriving(arriving) if arriving.now().is_none());
    if arrives(&one.content) || arrives(&other.content) {
        return None;
    }
    if size(&one.content) != size(&other.content) {
        return Some(false);
    }
    let (one, other) = (digest(&one.content).await, digest(&other.content).await);
    Some(one.ok()? == other.ok()?)
}

/// The tag of an answer is made of its content, and of the parts that it was put together of.
fn compared(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in [ETAG, AGE] {
        headers.remove(name);
    }
    headers
}

async fn digest(content: &Content) -> Result<Option<Sha256>, StoreError> {
    Ok(Some(match content {
        Content::None => return Ok(None),
        Content::Inline(bytes) => Sha256::of(bytes),
        Content::Joined(joined) => {
            let mut hash = sha2::Sha256::new();
            joined.parts().iter().for_each(|part| hash.update(&part.bytes));
            Sha256(hash.finalize().into())
        }
        Content::Blob(blob) => blob.sha256().await?,
        Content::Arriving(arriving) => arriving.wait().await?.sha256().await?,
    }))
}

fn same_refusal(one: &Failure, other: &Failure) -> bool {
    one.status == other.status && one.problems == other.problems && sorted(one) == sorted(other)
}

fn sorted(failure: &Failure) -> Vec<(&HeaderName, &HeaderValue)> {
    let mut headers: Vec<_> = failure.headers.iter().map(|(name, value)| (name, value)).collect();
    headers.sort_by(|one, other| {
        (one.0.as_str(), one.1.as_bytes()).cmp(&(other.0.as_str(), other.1.as_bytes()))
    });
    headers
}

#[cfg(test)]
mod tests {
    use packhouse_runtime::{Answer, Joined, JoinedPart, Looked, Problem, Reads};

    use super::*;
    use crate::prepared_response::prepare;

    async fn response(status: u16, header: &'static str, content: Content) -> Seen {
        let headers = vec![(http::header::CONTENT_TYPE, HeaderValue::from_static(header))];
        let (reads, cache_uses) = (Reads::default(), Vec::new());
        let (modified, keepable, confidential, until) = (None, true, false, None);
        let (looked, committed) = (Looked::default(), false);
        let answer = Answer {
            status,
            headers,
            content,
            modified,
            keepable,
            looked,
            committed,
            newest_found: None,
            confidential,
            reads,
            until,
            cache_uses,
        };
        Seen::Response(Arc::new(prepare(answer, true).await.unwrap()))
    }

    fn inline(text: &'static str) -> Content {
        Content::Inline(bytes::Bytes::from_static(text.as_bytes()))
    }

    #[tokio::test]
    async fn what_a_client_would_see_decides() {
        let one = response(200, "text/plain", inline("abc")).await;
        let part =
            |text: &'static str| JoinedPart { bytes: bytes::Bytes::from_static(text.as_bytes()), cut: None };
        let joined = Content::Joined(Joined::of(vec![part("a"), part("bc")]));
        assert_eq!(same(&one, &response(200, "text/plain", joined).await).await, Some(true));
        for (status, kind, text) in
            [(201, "text/plain", "abc"), (200, "text/html", "abc"), (200, "text/plain", "abd")]
        {
            assert_eq!(same(&one, &response(status, kind, inline(text)).await).await, Some(false), "{text}");
        }
        let refused = |message: &str| {
            let problem = Problem { code: "c".to_owned(), message: message.to_owned(), detail: None };
            Seen::Refused(Failure { status: 404, headers: Vec::new(), problems: vec![problem], torn: false })
        };
        assert_eq!(same(&refused("a"), &refused("a")).await, Some(true));
        assert_eq!(same(&refused("a"), &refused("b")).await, Some(false));
        assert_eq!(same(&refused("a"), &one).await, Some(false));
        assert_eq!(same(&Seen::Failed("trap"), &Seen::Failed("deadline")).await, Some(false));
    }
}
