//! A form that comes twice is done once: a double click, or a button pressed again while the answer is on its way.
//!
//! Each form has a number of its own, `once`. The database notes it, so that of all servers one does the work; who sends it again within
//! a few seconds to the server that did gets the same answer, and later a page that offers to send it anew. The work goes on when the
//! browser that sent it first has gone.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use tokio::sync::watch;

/// How long an answer is given again after it was made.
const KEPT: Duration = Duration::from_secs(5);
/// Forms that are remembered at one time; of more, the rest is done without.
const MOST: usize = 1000;

/// An answer that may be given again.
#[derive(Clone, Debug)]
struct Kept {
    status: StatusCode,
    headers: HeaderMap,
    bytes: Bytes,
    until: Instant,
}

impl Kept {
    fn answer(&self) -> Response {
        let mut answer = Response::new(Body::from(self.bytes.clone()));
        *answer.status_mut() = self.status;
        *answer.headers_mut() = self.headers.clone();
        answer
    }
}

type Waiting = watch::Receiver<Option<Kept>>;

/// Forms that came in a moment ago.
#[derive(Default)]
pub(crate) struct Sent(Mutex<HashMap<[u8; 32], Waiting>>);

impl Sent {
    /// The answer to the form of this key: that of `work`, or of the same form that came before.
    pub(crate) async fn once(
        &self,
        key: [u8; 32],
        work: impl Future<Output = Response> + Send + 'static,
    ) -> Response {
        let mut waiting = match self.join(key) {
            Ok(waiting) => waiting,
            Err(begun) => {
                let waiting = begun.subscribe();
                tokio::spawn(async move {
                    let kept = keep(work.await).await;
                    begun.send_replace(Some(kept));
                });
                waiting
            }
        };
        let kept = waiting.wait_for(Option::is_some).await;
        let kept = kept.ok().and_then(|kept| kept.as_ref().map(Kept::answer));
        kept.unwrap_or_else(|| {
            let mut answer =
                Response::new(Body::from("This could not be done; see whether it was, and try again."));
            *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            answer
        })
    }

    /// Whoever works on it already, or the place to begin.
    fn join(&self, key: [u8; 32]) -> Result<Waiting, watch::Sender<Option<Kept>>> {
        let mut forms = self.forms();
        let now = Instant::now();
        // One whose work broke off has neither an answer nor anybody at it.
        forms.retain(|_, waiting| match waiting.borrow().as_ref() {
            Some(kept) => kept.until > now,
            None => waiting.has_changed().is_ok(),
        });
        if let Some(waiting) = forms.get(&key) {
            return Ok(waiting.clone());
        }
        let (begun, waiting) = watch::channel(None);
        if forms.len() < MOST {
            forms.insert(key, waiting);
        }
        Err(begun)
    }

    fn forms(&self) -> MutexGuard<'_, HashMap<[u8; 32], Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A page's bytes, which this program has just made and are in memory as they are.
async fn keep(answer: Response) -> Kept {
    let (parts, mut body) = answer.into_parts();
    let mut bytes = BytesMut::new();
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    Kept { status: parts.status, headers: parts.headers, bytes: bytes.freeze(), until: Instant::now() + KEPT }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use axum::response::IntoResponse;

    use super::*;

    #[tokio::test]
    async fn of_many_at_one_time_one_works_and_all_get_its_answer() {
        let (sent, worked) = (Arc::new(Sent::default()), Arc::new(AtomicU32::new(0)));
        let send = |key: u8| {
            let (sent, worked) = (Arc::clone(&sent), Arc::clone(&worked));
            let work = async move {
                tokio::task::yield_now().await;
                (StatusCode::CREATED, format!("{key}:{}", worked.fetch_add(1, Ordering::Relaxed)))
                    .into_response()
            };
            async move { keep(sent.once([key; 32], work).await).await }
        };
        let (one, two, three) = tokio::join!(send(1), send(1), send(1));
        assert_eq!((one.status, &one.bytes), (StatusCode::CREATED, &two.bytes));
        assert_eq!(&one.bytes[..], b"1:0");
        assert_eq!(two.bytes, three.bytes);
        assert_eq!(&send(2).await.bytes[..], b"2:1", "another form is another");
    }

    #[tokio::test]
    async fn the_work_goes_on_without_who_sent_it() {
        let sent = Arc::new(Sent::default());
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let work = async move {
            let _ = gone.await;
            "done".into_response()
        };
        let first = tokio::time::timeout(Duration::from_millis(20), sent.once([7; 32], work)).await;
        assert!(first.is_err(), "its browser has gone");
        go.send(()).unwrap();
        let second = sent.once([7; 32], async { "again".into_response() }).await;
        assert_eq!(&keep(second).await.bytes[..], b"done");
    }
}
