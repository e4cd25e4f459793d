//! Listen: accepts connections and speaks HTTP/1.1 and HTTP/2 (h2c) on them, for both hosts. What a connection may cost is
//! bounded here: how many there are, how long a head may take, how large it may be, how many streams there are on one.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::config::Limits;
use crate::wire::guard::{Guard, GuardTimes};

/// Room for one head, with an address of 64 KiB in it, so that it can be refused as too long and not just as too large.
const HEAD_BYTES: usize = 128 * 1024;
/// Bytes of all header fields of one HTTP/2 request.
const HEADER_LIST_BYTES: u32 = 40 * 1024;
/// HTTP/2 streams at one time on one connection.
const STREAMS: u32 = 128;
/// Bytes in flight on one HTTP/2 stream, and on all of a connection.
const WINDOWS: (u32, u32) = (1024 * 1024, 4 * 1024 * 1024);
/// How often a quiet HTTP/2 connection is asked whether it is still there, and how long the answer may take.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));
/// Time for a client that takes no byte of its answer.
const STALLED_WRITE: Duration = Duration::from_secs(120);
/// Time to wait when the system has no more sockets to give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop`, then lets what is in flight finish within the limit. `make` gives each connection its service.
pub(crate) async fn serve<M, S, B>(listener: TcpListener, limits: Limits, stop: CancellationToken, make: M)
where
    M: Fn(SocketAddr) -> S,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let places = Arc::new(Semaphore::new(limits.connections));
    let builder = builder(limits);
    let graceful = GracefulShutdown::new();
    while let Some((stream, peer, place)) = next(&listener, &places, &stop).await {
        let times = GuardTimes { first_head: limits.header, stalled_write: STALLED_WRITE };
        let io = TokioIo::new(Guard::new(stream, times));
        let connection = graceful.watch(builder.serve_connection(io, make(peer)).into_owned());
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%peer, error, "a connection ended");
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(limits.shutdown, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests were still in flight at the end of the time for them");
    }
}

/// The next connection, once there is room for one; none when it is time to stop.
async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    stop: &CancellationToken,
) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let accepted = async {
        let place = Arc::clone(places).acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    // Without it small answers wait for the client's acknowledgement; where it fails they just do.
                    let _ = stream.set_nodelay(true);
                    return Some((stream, peer, place));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => None,
        accepted = accepted => accepted,
    }
}

fn builder(limits: Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.header).max_buf_size(HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER_LIST_BYTES)
        .initial_stream_window_size(WINDOWS.0)
        .initial_connection_window_size(WINDOWS.1)
        .keep_alive_interval(KEEP_ALIVE.0)
        .keep_alive_timeout(KEEP_ALIVE.1);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::Arriving;
    use crate::wire::body::Body;
    use hyper::service::service_fn;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const LIMITS: Limits = Limits {
        api_body_bytes: 0,
        api_json_tokens: 0,
        body_idle: Duration::from_secs(30),
        header: Duration::from_secs(30),
        connections: 100,
        shutdown: Duration::from_secs(30),
    };

    /// Serves answers without content once the body is read, and says what each connection was sent.
    async fn exchange(requests: &[&[u8]]) -> Vec<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let service = |_| {
            service_fn(|request: Request<Incoming>| async {
                let mut body = Arriving::new(request.into_body(), LIMITS.body_idle);
                let status = loop {
                    match body.next().await {
                        Ok(Some(_)) => {}
                        Ok(None) => break http::StatusCode::OK,
                        Err(refused) => break refused.status(),
                    }
                };
                Ok(Response::builder().status(status).body(Body::empty()).unwrap())
            })
        };
        let server = tokio::spawn(serve(listener, LIMITS, stop.clone(), service));
        let mut answers = Vec::new();
        for request in requests {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            answers.push(String::from_utf8_lossy(&answer).into_owned());
        }
        stop.cancel();
        server.await.unwrap();
        answers
    }

    #[tokio::test]
    async fn requests_that_another_server_may_read_otherwise_are_refused() {
        let many_fields = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(101));
        let long_address = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(65_536));
        let table: &[(&[u8], &str)] = &[
            (b"PUT / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "200"),
            (b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "200"),
            (b"PUT / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"),
            (b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", "400"),
            (b"PUT / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "400"),
            (b"PUT / HTTP/1.1\r\nContent-Length: +5\r\n\r\nhello", "400"),
            (b"PUT / HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "400"),
            (b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", "400"),
            (b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", "400"),
            (b"PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"),
            (b"GET / HTTP/1.1\nHost: a\n\n", "400"),
            (b"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", "400"),
            (b"GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", "400"),
            (many_fields.as_bytes(), "431"),
            (long_address.as_bytes(), "414"),
        ];
        let requests: Vec<&[u8]> = table.iter().map(|(request, _)| *request).collect();
        let answers = exchange(&requests).await;
        for ((request, status), answer) in table.iter().zip(answers) {
            let request = String::from_utf8_lossy(&request[..request.len().min(90)]);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request}\n→ {answer}");
        }
    }

    #[tokio::test]
    async fn nothing_behind_a_refused_request_is_answered() {
        let smuggled = b"PUT / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        let answers = exchange(&[smuggled]).await;
        assert_eq!(answers[0].matches("HTTP/1.1").count(), 1, "{answers:?}");
    }
}
