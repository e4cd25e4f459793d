//! An HTTP/2 client under a test's control. The test can leave answers unread, and keep connections
//! that only answer PING.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// Time limit of an expected answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// An open connection; it answers PING as long as it lives.
pub(crate) struct Http2 {
    sender: SendRequest<Bytes>,
    connection: JoinHandle<Result<(), h2::Error>>,
    address: SocketAddr,
}

impl Http2 {
    /// Connects. The client accepts this many bytes of each answer without reading them.
    pub(crate) async fn open(address: SocketAddr, window: u32) -> Self {
        let stream = TcpStream::connect(address).await.expect("a connection");
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(window).initial_connection_window_size(64 * 1024 * 1024);
        let (sender, connection) = builder.handshake(stream).await.expect("the beginning of HTTP/2");
        Self { sender, connection: tokio::spawn(connection), address }
    }

    /// Sends the head of a request. The returned stream sends the body, if the request has one.
    pub(crate) async fn begin(
        &mut self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: bool,
    ) -> (ResponseFuture, SendStream<Bytes>) {
        let mut request = Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let mut sender = self.sender.clone().ready().await.expect("a stream");
        sender.send_request(request.body(()).unwrap(), !body).expect("a request")
    }

    /// GET; returns the answer's head and its unread body.
    pub(crate) async fn get(&mut self, path: &str, fields: &[(&str, &str)]) -> Response<RecvStream> {
        let (answer, _) = self.begin("GET", path, fields, false).await;
        within("an answer", answer).await.expect("an answer")
    }

    /// Waits until the server has closed the connection.
    pub(crate) async fn closed(self) {
        let _ = within("the server closes", self.connection).await;
    }

    /// Returns true if the connection is still open.
    pub(crate) fn is_open(&self) -> bool {
        !self.connection.is_finished()
    }
}

/// Reads a whole answer; returns its length, or the stream's error.
pub(crate) async fn take(mut body: RecvStream) -> Result<u64, h2::Error> {
    let mut taken = 0;
    while let Some(bytes) = within("more of an answer", body.data()).await {
        let bytes = bytes?;
        taken += bytes.len() as u64;
        body.flow_control().release_capacity(bytes.len())?;
    }
    Ok(taken)
}

/// Waits for `work` within the time limit.
pub(crate) async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, work).await;
    done.unwrap_or_else(|_| panic!("timed out: {what}"))
}

/// Runs a test's work on one thread.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}
