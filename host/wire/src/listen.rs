//! Listen: accepts connections, plain or with TLS, and speaks HTTP/1.1 and HTTP/2 on them, for both hosts. What a connection may cost is
//! bounded here: how many there are, how long a head may take, how large it may be, how many streams there are on one, how long one
//! may be idle, and how long an answer may wait for its client.

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
use self::opening::{Opened, open};
use crate::connection::ConnectionState;
use crate::guard::{Guard, GuardTimes};
use crate::outbox::{Outgoing, StreamExecutor};
use crate::send_budget::SendBudget;
use crate::tls::Tls;
use packhouse_config::live::Live;
use packhouse_config::{Limits, Network};

/// Room for one head, with an address of 64 KiB in it, so that it can be refused as too long and not just as too large.
const HEAD_BYTES: usize = 128 * 1024;
/// Bytes of all header fields of one HTTP/2 request.
const HEADER_LIST_BYTES: u32 = 40 * 1024;
/// HTTP/2 streams at one time on one connection.
const STREAMS: u32 = 128;
/// Bytes of an answer that one HTTP/2 stream hands to its connection before the client takes any.
const SEND_BUFFER: usize = 64 * 1024;
/// How often a quiet HTTP/2 connection is asked whether it is still there, and how long the answer may take.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));
/// Time to wait when the system has no more sockets to give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a request waits for others to end where as many are under way as descriptors allow.
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);
/// How long an HTTP/2 connection on which nothing is under way may take to close after it was asked to.
const FAREWELL: Duration = Duration::from_secs(5);

/// Bytes in flight to the server on one HTTP/2 stream, and on all of a connection: what may lie here while nobody reads it.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    stream: u32,
    connection: u32,
}

impl Windows {
    /// For files.
    pub const UPLOADS: Windows = Windows { stream: 1024 * 1024, connection: 4 * 1024 * 1024 };
    /// For calls of the API.
    pub const CALLS: Windows = Windows { stream: 64 * 1024, connection: 256 * 1024 };
}

/// Where the memory of answers is counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Holds {
    /// By the service.
    ByService,
    /// By the listener.
    ByLength,
}

/// Tells of a request's path whether it is of one kind.
pub type JudgesPath = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// What holds on one listener.
#[derive(Clone)]
pub struct Rules {
    /// Bounds from the settings, which hold for connections that come after a change.
    pub limits: Live<Limits>,
    /// Connections at one time, as far as descriptors allow.
    pub connections: usize,
    /// Requests under way at one time, where they need descriptors; the rest wait.
    pub requests: Option<Arc<Semaphore>>,
    /// Proxies, whose connections stand for many clients.
    pub trusted: Live<Vec<Network>>,
    /// Whether their connections begin with a PROXY protocol header.
    pub proxy_protocol: bool,
    /// TLS, where it is spoken.
    pub tls: Option<Arc<Tls>>,
    /// `Strict-Transport-Security` of answers to clients that came by a name over TLS.
    pub hsts: Option<HeaderValue>,
    /// What may lie here of requests.
    pub windows: Windows,
    /// What may lie here of answers, on all connections.
    pub budget: Arc<SendBudget>,
    /// Whether answers are held by the service, which knows what they are made of, or else here by their length.
    pub holds: Holds,
    /// Whether a path is a call's, on a listener that serves the API beside packages. Calls have the bounds that they have on a
    /// listener of their own: they need no descriptors, and their answers are held by their length.
    pub is_call: Option<JudgesPath>,
    /// Cancelled when the server is about to stop: clients are told to come back on another connection.
    pub draining: CancellationToken,
    /// Cancelled when nothing new is to be accepted.
    pub stop: CancellationToken,
}

impl Rules {
    /// The same with TLS, or without.
    pub fn with_tls(self, tls: Option<Arc<Tls>>) -> Self {
        Self { tls, ..self }
    }

    /// The same with so many requests under way at one time.
    pub fn with_requests(self, requests: usize) -> Self {
        Self { requests: Some(Arc::new(Semaphore::new(requests))), ..self }
    }

    /// Where a request to this path needs a place, and by whom its answer is held.
    fn bounds_of(&self, path: &str) -> (Option<Arc<Semaphore>>, Holds) {
        match &self.is_call {
            Some(is_call) if is_call(path) => (None, Holds::ByLength),
            _ => (self.requests.clone(), self.holds),
        }
    }
}

/// Stands in a request's extensions when it found no place among those under way: it is to be refused at once.
#[derive(Clone, Copy, Debug)]
pub struct NoPlace;

/// Serves until `stop`, then lets what is in flight finish within the limit. `make` gives each connection its service.
pub async fn serve<M, S, B>(listener: TcpListener, rules: Rules, make: M)
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
        tracing::warn!("requests were still in flight at the end of the time for them");
    }
}

/// The next connection, once there is room for one; none when it is time to stop.
async fn next(
    listener: &TcpListener,
    admission: &Arc<Admission>,
    rules: &Rules,
) -> Option<(TcpStream, SocketAddr, Admitted)> {
    let accepted = async {
        loop {
            let place = admission.place().await?;
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let Some(admitted) = admission.admit(peer.ip(), place, rules) else {
                        metrics::counter!("packhouse_connections_refused_total").increment(1);
                        tracing::debug!(%peer, "a network has as many connections as it may");
                        continue;
                    };
                    // Without it small answers wait for the client's acknowledgement; where it fails they just do.
                    let _ = stream.set_nodelay(true);
                    return Some((stream, peer, admitted));
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
        () = rules.stop.cancelled() => None,
        accepted = accepted => accepted,
    }
}

/// Serves one connection to its end.
async fn connection<M, S, B>(
    stream: TcpStream,
    peer: SocketAddr,
    admitted: Admitted,
    rules: Rules,
    make: Arc<M>,
) where
    M: Fn(SocketAddr) -> S,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let limits = rules.limits.get();
    let Some(Opened { stream, peer, hsts }) = open(stream, peer, &admitted, &rules).await else { return };
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
            // One on HTTP/1.1 ends by itself once its last answer is written.
            if state.is_http2() && state.idle_for().is_some_and(|idle| idle >= FAREWELL) {
                break Ok(());
            }
        },
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, error, "a connection ended");
    }
}

/// The requests of one connection, counted while they are under way.
struct Requests<S> {
    service: Arc<S>,
    state: Arc<ConnectionState>,
    streams: StreamExecutor,
    hsts: Option<HeaderValue>,
    rules: Rules,
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
        // Who stands before us may have read another host in it, and so another request behind it.
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

fn builder(rules: &Rules, limits: &Limits, streams: StreamExecutor) -> Builder<StreamExecutor> {
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

    /// Rules of a plain listener that trusts no proxy.
    pub(super) fn rules(stop: &CancellationToken) -> Rules {
        Rules {
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

    /// Serves answers without content once the body is read, and says what each connection was sent.
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

    #[test]
    fn calls_on_a_shared_listener_have_the_bounds_of_a_listener_of_their_own() {
        let packages = rules(&CancellationToken::new()).with_requests(1);
        let shared = Rules { is_call: Some(Arc::new(|path: &str| path == "/call")), ..packages };
        let (places, holds) = shared.bounds_of("/call");
        assert!(places.is_none() && holds == Holds::ByLength);
        let (places, holds) = shared.bounds_of("/other");
        assert!(places.is_some() && holds == Holds::ByService);
    }

    #[tokio::test]
    async fn nothing_behind_a_refused_request_is_answered() {
        let smuggled = b"PUT / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        let answers = exchange(&[smuggled]).await;
        assert_eq!(answers[0].matches("HTTP/1.1").count(), 1, "{answers:?}");
    }
}
