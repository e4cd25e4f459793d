//! Listener of both hosts: accepts connections, plain or with TLS, and serves HTTP/1.1 and HTTP/2.
//! It limits the number of connections, the time and size of a request head, and the streams per
//! connection. It also limits the idle time, and how long a response may wait for its client.

mod admission;
mod opening;

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{CONNECTION, HOST, STRICT_TRANSPORT_SECURITY};
use http::{HeaderValue, Request, Response, Version};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::admission::{Admission, Admitted};
use self::opening::{OpenedConnection, open};
use crate::connection::ConnectionState;
use crate::guard::{Guard, GuardTimes};
use crate::outbox::{Outgoing, StreamExecutor};
use crate::send_budget::SendBudget;
use crate::tls::Tls;
use packhouse_config::live::Live;
use packhouse_config::{Limits, Network};

/// Maximum bytes of a request head. It leaves room for a target of 64 KiB, so that a longer target
/// gets 414 instead of 431.
const HEAD_BYTES: usize = 128 * 1024;
/// Maximum bytes of all header fields of one HTTP/2 request.
const HEADER_LIST_BYTES: u32 = 40 * 1024;
/// Maximum concurrent HTTP/2 streams on one connection.
const STREAMS: u32 = 128;
/// Maximum bytes that one HTTP/2 stream passes to its connection before the client reads them.
const SEND_BUFFER: usize = 64 * 1024;
/// Interval of pings on a quiet HTTP/2 connection, and the time limit for the reply.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));
/// Pause after accepting failed, for example because no sockets are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a request waits for a slot when the limit of requests in flight is reached.
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);
/// Idle time after which the server ends an HTTP/2 connection that it has asked the client to
/// close.
const FAREWELL: Duration = Duration::from_secs(5);

/// HTTP/2 flow control windows: unread bytes that the server accepts on one stream, and on a whole
/// connection.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    stream: u32,
    connection: u32,
}

impl Windows {
    /// Windows for uploads of files.
    pub const UPLOADS: Windows = Windows { stream: 1024 * 1024, connection: 4 * 1024 * 1024 };
    /// Windows for calls of the API.
    pub const CALLS: Windows = Windows { stream: 64 * 1024, connection: 256 * 1024 };
}

/// Part of the program that counts the memory of responses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Holds {
    /// The service counts the memory, because it knows the contents.
    ByService,
    /// The listener counts the memory by the length of the response.
    ByLength,
}

/// Predicate on the path of a request.
pub type JudgesPath = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Configuration and limits of one listener.
#[derive(Clone)]
pub struct ListenerRules {
    /// Limits from the settings. A change applies to later connections.
    pub limits: Live<Limits>,
    /// Maximum concurrent connections, as far as file descriptors allow.
    pub connections: usize,
    /// Slots for concurrent requests; `None` if requests need no file descriptors. Further requests
    /// wait for a slot.
    pub requests: Option<Arc<Semaphore>>,
    /// Trusted proxies, whose connections serve many clients.
    pub trusted: Live<Vec<Network>>,
    /// True if connections of trusted proxies begin with a PROXY protocol header.
    pub proxy_protocol: bool,
    /// TLS configuration; `None` on a plain listener.
    pub tls: Option<Arc<Tls>>,
    /// `Strict-Transport-Security` header for clients that connect with TLS and a host name.
    pub hsts: Option<HeaderValue>,
    /// HTTP/2 windows for request bodies.
    pub windows: Windows,
    /// Memory budget of responses, shared by all connections.
    pub budget: Arc<SendBudget>,
    /// Part of the program that counts the memory of responses.
    pub holds: Holds,
    /// Tells whether a path belongs to the API; `None` unless the listener serves both packages and
    /// the API. API calls have the same limits as on an API listener: they need no slot, and the
    /// listener counts the memory of their responses by length.
    pub is_call: Option<JudgesPath>,
    /// Cancelled when the server is about to stop. The listener then asks clients to reconnect.
    pub draining: CancellationToken,
    /// Cancelled when the listener must stop accepting connections.
    pub stop: CancellationToken,
}

impl ListenerRules {
    /// Returns the same configuration with this TLS.
    pub fn with_tls(self, tls: Option<Arc<Tls>>) -> Self {
        Self { tls, ..self }
    }

    /// Returns the same configuration with this limit of concurrent requests.
    pub fn with_requests(self, requests: usize) -> Self {
        Self { requests: Some(Arc::new(Semaphore::new(requests))), ..self }
    }

    /// Returns the slots for requests to this path, and the part that counts the memory of their
    /// responses.
    fn bounds_of(&self, path: &str) -> (Option<Arc<Semaphore>>, Holds) {
        match &self.is_call {
            Some(is_call) if is_call(path) => (None, Holds::ByLength),
            _ => (self.requests.clone(), self.holds),
        }
    }
}

/// Marker in the extensions of a request that got no slot. The service must refuse it immediately.
#[derive(Clone, Copy, Debug)]
pub struct NoPlace;

/// Serves until `stop` is cancelled, then lets requests in flight finish within the time limit.
/// `make` creates the service of a connection.
pub async fn serve<M, S, B>(listener: TcpListener, rules: ListenerRules, make: M)
where
    M: Fn(SocketAddr) -> S + Send + Sync + 'static,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let admission = Admission::new(&rules);
    let make = Arc::new(make);
    let connections = TaskTracker::new();
    let accepting = async {
        while let Some((stream, peer, admitted)) = next(&listener, &admission, &rules).await {
            connections.spawn(connection(stream, peer, admitted, rules.clone(), Arc::clone(&make)));
        }
    };
    tokio::select! {
        () = accepting => (),
        () = admission.close_idle() => (),
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(rules.limits.get().in_flight(), connections.wait()).await.is_err() {
        tracing::warn!("shutdown timed out with requests in flight");
    }
}

/// Waits for the next admitted connection; `None` when the listener stops.
async fn next(
    listener: &TcpListener,
    admission: &Arc<Admission>,
    rules: &ListenerRules,
) -> Option<(TcpStream, SocketAddr, Admitted)> {
    let accepted = async {
        loop {
            let place = admission.place().await?;
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let Some(admitted) = admission.admit(peer.ip(), place, rules) else {
                        metrics::counter!("packhouse_connections_refused_total").increment(1);
                        tracing::debug!(%peer, "connection refused: the client network has reached its limit");
                        continue;
                    };
                    // Without `TCP_NODELAY`, small responses wait for the client's acknowledgement.
                    // If the call fails, the responses are only slower.
                    let _ = stream.set_nodelay(true);
                    return Some((stream, peer, admitted));
                }
                Err(error) => {
                    tracing::warn!(%error, "accepting a connection failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = rules.stop.cancelled() => None,
        accepted = accepted => accepted,
    }
}

/// Serves one connection until it ends.
async fn connection<M, S, B>(
    stream: TcpStream,
    peer: SocketAddr,
    admitted: Admitted,
    rules: ListenerRules,
    make: Arc<M>,
) where
    M: Fn(SocketAddr) -> S,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let limits = rules.limits.get();
    let Some(OpenedConnection { stream, peer, hsts }) = open(stream, peer, &admitted, &rules).await else {
        return;
    };
    let state = &admitted.state;
    let streams = StreamExecutor::new(limits.send_idle);
    let builder = builder(&rules, &limits, streams.clone());
    let times = GuardTimes { first_head: limits.header, stalled_write: limits.send_idle };
    let io = TokioIo::new(Guard::new(stream, times));
    let service = Arc::new(make(peer));
    let requests = Requests { service, state: Arc::clone(state), streams, hsts, rules };
    let mut connection = pin!(builder.serve_connection(io, requests));
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = state.closing() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => loop {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection.as_mut() => break ended,
                () = tokio::time::sleep(FAREWELL) => {}
            }
            // An HTTP/1.1 connection ends by itself once its last response is written.
            if state.is_http2() && state.idle_for().is_some_and(|idle| idle >= FAREWELL) {
                break Ok(());
            }
        },
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, error, "connection ended with an error");
    }
}

/// Service for the requests of one connection. It counts the requests in flight.
struct Requests<S> {
    service: Arc<S>,
    state: Arc<ConnectionState>,
    streams: StreamExecutor,
    hsts: Option<HeaderValue>,
    rules: ListenerRules,
}

impl<S, B> Service<Request<Incoming>> for Requests<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
{
    type Response = Response<Outgoing<B>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let http2 = request.version() == Version::HTTP_2;
        // A proxy in front may have chosen another host for an ambiguous request, and may misread
        // the next request on the connection as well. The connection is therefore closed.
        let ambiguous = request.headers().get_all(HOST).iter().nth(1).is_some()
            || crate::host::named(request.uri(), request.headers()).is_err();
        let under_way = self.state.begin();
        let outbox = http2.then(|| self.streams.announce());
        let (service, state, draining) =
            (Arc::clone(&self.service), Arc::clone(&self.state), self.rules.draining.clone());
        let (requests, holds) = self.rules.bounds_of(request.uri().path());
        let hsts = self.hsts.clone();
        Box::pin(async move {
            if http2 {
                state.set_http2();
                state.room().await;
            }
            request.extensions_mut().insert(Arc::clone(&state));
            let place = match requests {
                Some(requests) => {
                    let place = tokio::time::timeout(REQUEST_PATIENCE, requests.acquire_owned()).await;
                    place.ok().and_then(Result::ok).or_else(|| {
                        request.extensions_mut().insert(NoPlace);
                        None
                    })
                }
                None => None,
            };
            let mut response = service.call(request).await?;
            if let Some(hsts) = hsts {
                response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, hsts);
            }
            if !http2 && (ambiguous || draining.is_cancelled()) {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response.map(|body| {
                let length = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
                let hold =
                    length.filter(|_| http2 && holds == Holds::ByLength).map(|length| state.hold(length));
                Outgoing::new(body, outbox, (under_way, place, hold))
            }))
        })
    }
}

fn builder(rules: &ListenerRules, limits: &Limits, streams: StreamExecutor) -> Builder<StreamExecutor> {
    let mut builder = Builder::new(streams);
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.header).max_buf_size(HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER_LIST_BYTES)
        .max_send_buf_size(SEND_BUFFER)
        .initial_stream_window_size(rules.windows.stream)
        .initial_connection_window_size(rules.windows.connection)
        .keep_alive_interval(KEEP_ALIVE.0)
        .keep_alive_timeout(KEEP_ALIVE.1);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;
    use crate::incoming_body::{BodyError, IncomingBody};
    use hyper::service::service_fn;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const LIMITS: Limits = Limits {
        api_body_bytes: 0,
        api_json_tokens: 0,
        api_bodies_bytes: 0,
        api_bodies_bytes_per_address: 0,
        api_body_rate: 0,
        body_idle: Duration::from_secs(30),
        send_idle: Duration::from_secs(30),
        idle: Duration::from_secs(30),
        handshake: Duration::from_secs(30),
        header: Duration::from_secs(30),
        connections: 100,
        connections_per_address: 100,
        organization_request_rate: 0,
        credential_request_rate: 0,
        drain: Duration::ZERO,
        shutdown: Duration::from_secs(30),
    };

    /// Configuration of a plain listener that trusts no proxy.
    pub(super) fn rules(stop: &CancellationToken) -> ListenerRules {
        ListenerRules {
            limits: Live::new(LIMITS),
            connections: LIMITS.connections,
            requests: None,
            trusted: Live::new(Vec::new()),
            proxy_protocol: false,
            tls: None,
            hsts: None,
            windows: Windows::UPLOADS,
            budget: Arc::default(),
            holds: Holds::ByService,
            is_call: None,
            draining: CancellationToken::new(),
            stop: stop.clone(),
        }
    }

    /// Reads each request body and responds without content. Returns the bytes sent on each
    /// connection.
    async fn exchange(requests: &[&[u8]]) -> Vec<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let service = |_| {
            service_fn(|request: Request<Incoming>| async {
                let mut body = IncomingBody::new(request.into_body(), LIMITS.body_idle);
                let status = loop {
                    match body.next().await {
                        Ok(Some(_)) => {}
                        Ok(None) => break http::StatusCode::OK,
                        Err(BodyError::BrokenOff) => break http::StatusCode::REQUEST_TIMEOUT,
                        Err(BodyError::Malformed) => break http::StatusCode::BAD_REQUEST,
                    }
                };
                Ok(Response::builder().status(status).body(Body::empty()).unwrap())
            })
        };
        let server = tokio::spawn(serve(listener, rules(&stop), service));
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
    async fn ambiguous_requests_are_refused() {
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

    #[test]
    fn api_calls_on_a_shared_listener_have_the_limits_of_an_api_listener() {
        let packages = rules(&CancellationToken::new()).with_requests(1);
        let shared = ListenerRules { is_call: Some(Arc::new(|path: &str| path == "/call")), ..packages };
        let (places, holds) = shared.bounds_of("/call");
        assert!(places.is_none() && holds == Holds::ByLength);
        let (places, holds) = shared.bounds_of("/other");
        assert!(places.is_some() && holds == Holds::ByService);
    }

    #[tokio::test]
    async fn requests_after_a_refused_one_are_ignored() {
        let smuggled = b"PUT / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        let answers = exchange(&[smuggled]).await;
        assert_eq!(answers[0].matches("HTTP/1.1").count(), 1, "{answers:?}");
    }
}
