//! Processes a form only once if it is submitted twice, for example by a double click.
//!
//! Each form carries a unique number, `once`, which the database records, so that only one server
//! processes the form. A repeated submission to that server within a few seconds gets the same
//! response. A later submission gets a page that offers to submit the form again. Processing
//! continues if the client disconnects.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use tokio::sync::watch;

/// How long a finished response is replayed to repeated submissions.
const REPLAY_TIME: Duration = Duration::from_secs(5);
/// Maximum number of forms in memory. Further forms get no replayed response.
const MAX_FORMS: usize = 1000;

/// A response that can be replayed.
#[derive(Clone, Debug)]
struct StoredResponse {
    status: StatusCode,
    headers: HeaderMap,
    bytes: Bytes,
    until: Instant,
}

impl StoredResponse {
    fn response(&self) -> Response {
        let mut response = Response::new(Body::from(self.bytes.clone()));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers.clone();
        response
    }
}

type ResponseReceiver = watch::Receiver<Option<StoredResponse>>;

/// Forms submitted in the last few seconds, by their key.
#[derive(Default)]
pub(crate) struct FormDedup(Mutex<HashMap<[u8; 32], ResponseReceiver>>);

impl FormDedup {
    /// Returns the response to the form of this key: the result of `work`, or the response to an
    /// earlier submission of the same form.
    pub(crate) async fn once(
        &self,
        key: [u8; 32],
        work: impl Future<Output = Response> + Send + 'static,
    ) -> Response {
        let mut receiver = match self.join(key) {
            Ok(receiver) => receiver,
            Err(sender) => {
                let receiver = sender.subscribe();
                tokio::spawn(async move {
                    let stored = store_response(work.await).await;
                    sender.send_replace(Some(stored));
                });
                receiver
            }
        };
        let stored = receiver.wait_for(Option::is_some).await;
        let stored = stored.ok().and_then(|stored| stored.as_ref().map(StoredResponse::response));
        stored.unwrap_or_else(|| {
            let mut response = Response::new(Body::from(
                "The request failed. Check whether your change was saved before trying again.",
            ));
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        })
    }

    /// Returns a receiver for the submission in progress, or the sender for a new one.
    fn join(&self, key: [u8; 32]) -> Result<ResponseReceiver, watch::Sender<Option<StoredResponse>>> {
        let mut forms = self.forms();
        let now = Instant::now();
        // A form whose processing was aborted has neither a response nor a live sender.
        forms.retain(|_, receiver| match receiver.borrow().as_ref() {
            Some(stored) => stored.until > now,
            None => receiver.has_changed().is_ok(),
        });
        if let Some(receiver) = forms.get(&key) {
            return Ok(receiver.clone());
        }
        let (sender, receiver) = watch::channel(None);
        if forms.len() < MAX_FORMS {
            forms.insert(key, receiver);
        }
        Err(sender)
    }

    fn forms(&self) -> MutexGuard<'_, HashMap<[u8; 32], ResponseReceiver>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the whole body of a page. Pages are built in memory, so this needs no bound.
async fn store_response(response: Response) -> StoredResponse {
    let (parts, mut body) = response.into_parts();
    let mut bytes = BytesMut::new();
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    StoredResponse {
        status: parts.status,
        headers: parts.headers,
        bytes: bytes.freeze(),
        until: Instant::now() + REPLAY_TIME,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use axum::response::IntoResponse;

    use super::*;

    #[tokio::test]
    async fn concurrent_submissions_run_once_and_share_the_response() {
        let (dedup, worked) = (Arc::new(FormDedup::default()), Arc::new(AtomicU32::new(0)));
        let send = |key: u8| {
            let (dedup, worked) = (Arc::clone(&dedup), Arc::clone(&worked));
            let work = async move {
                tokio::task::yield_now().await;
                (StatusCode::CREATED, format!("{key}:{}", worked.fetch_add(1, Ordering::Relaxed)))
                    .into_response()
            };
            async move { store_response(dedup.once([key; 32], work).await).await }
        };
        let (one, two, three) = tokio::join!(send(1), send(1), send(1));
        assert_eq!((one.status, &one.bytes), (StatusCode::CREATED, &two.bytes));
        assert_eq!(&one.bytes[..], b"1:0");
        assert_eq!(two.bytes, three.bytes);
        assert_eq!(&send(2).await.bytes[..], b"2:1", "a different key is processed separately");
    }

    #[tokio::test]
    async fn the_work_continues_after_the_client_disconnects() {
        let dedup = Arc::new(FormDedup::default());
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let work = async move {
            let _ = gone.await;
            "done".into_response()
        };
        let first = tokio::time::timeout(Duration::from_millis(20), dedup.once([7; 32], work)).await;
        assert!(first.is_err(), "the first client disconnected");
        go.send(()).unwrap();
        let second = dedup.once([7; 32], async { "again".into_response() }).await;
        assert_eq!(&store_response(second).await.bytes[..], b"done");
    }
}
