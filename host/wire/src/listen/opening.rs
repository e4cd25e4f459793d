//! Opening of a connection before its first request: the PROXY protocol header, if proxies send
//! one, and the TLS handshake. Both together have a time limit, so that a silent client cannot
//! occupy a connection slot for longer.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http::HeaderValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use super::ListenerRules;
use super::admission::Admitted;
use crate::proxy_protocol;
use crate::tls::Tls;

/// First byte of every TLS handshake (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;
/// Response to a client that speaks plain HTTP on a TLS port.
const SPEAK_TLS: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 58\r\n\
    Connection: close\r\n\r\nThis port speaks HTTPS. Write https:// in the address.\r\n\r\n";
/// How long a client that speaks plain HTTP gets to read the response.
const FAREWELL: Duration = Duration::from_secs(1);
/// Maximum bytes that the server reads from such a client while it waits.
const LAST_BYTES: u64 = 64 * 1024;
const OUTCOMES: &str = "packhouse_tls_handshakes_total";

/// A connection that is ready for requests.
pub(super) struct OpenedConnection {
    /// Stream of bytes after decryption.
    pub(super) stream: Either<TcpStream, Box<TlsStream<TcpStream>>>,
    pub(super) peer: SocketAddr,
    /// `Strict-Transport-Security` header of the responses.
    pub(super) hsts: Option<HeaderValue>,
}

/// Opens the connection; `None` if the client cannot send requests on it.
pub(super) async fn open(
    stream: TcpStream,
    peer: SocketAddr,
    admitted: &Admitted,
    rules: &ListenerRules,
) -> Option<OpenedConnection> {
    if rules.tls.is_none() && !rules.proxy_protocol {
        return Some(OpenedConnection { stream: Either::Left(stream), peer, hsts: None });
    }
    let state = admitted.state.clone();
    let opening = tokio::time::timeout(rules.limits.get().handshake, begin(stream, peer, admitted, rules));
    let opened = tokio::select! {
        opened = opening => opened,
        () = state.closing() => return None,
    };
    match opened {
        Ok(Ok(opened)) => opened,
        Ok(Err(error)) => {
            tracing::debug!(%peer, %error, "connection failed before its first request");
            None
        }
        Err(_) => {
            if rules.tls.is_some() {
                metrics::counter!(OUTCOMES, "outcome" => "timeout").increment(1);
            }
            tracing::debug!(%peer, "connection timed out before its first request");
            None
        }
    }
}

async fn begin(
    mut stream: TcpStream,
    mut peer: SocketAddr,
    admitted: &Admitted,
    rules: &ListenerRules,
) -> io::Result<Option<OpenedConnection>> {
    let from_proxy =
        rules.proxy_protocol && rules.trusted.get().iter().any(|network| network.contains(peer.ip()));
    if from_proxy && let Some(client) = proxy_protocol::read(&mut stream).await? {
        if !admitted.belongs_to(client.ip()) {
            metrics::counter!("packhouse_connections_refused_total").increment(1);
            return Err(io::Error::other("the client network has reached its limit of connections"));
        }
        peer = client;
    }
    let Some(tls) = &rules.tls else {
        return Ok(Some(OpenedConnection { stream: Either::Left(stream), peer, hsts: None }));
    };
    let mut first = [0];
    if stream.peek(&mut first).await? == 0 {
        return Ok(None);
    }
    if first != [HANDSHAKE] {
        metrics::counter!(OUTCOMES, "outcome" => "plain").increment(1);
        return refuse_plain(stream).await.map(|()| None);
    }
    let shaken = shake_hands(tls, stream).await?;
    Ok(shaken.map(|stream| {
        // Browsers store HSTS only for host names, and many servers share `localhost`.
        let named = stream.get_ref().1.server_name().is_some_and(|name| name != "localhost");
        let hsts = rules.hsts.clone().filter(|_| named);
        OpenedConnection { stream: Either::Right(Box::new(stream)), peer, hsts }
    }))
}

async fn shake_hands(tls: &Tls, stream: TcpStream) -> io::Result<Option<TlsStream<TcpStream>>> {
    let shaken = tls.accept(stream).await;
    let outcome = match &shaken {
        Ok(Some(_)) => "ok",
        Ok(None) => "proof",
        Err(_) => "failed",
    };
    metrics::counter!(OUTCOMES, "outcome" => outcome).increment(1);
    shaken
}

/// Sends the error over plain HTTP and waits briefly, so that the client can read it.
async fn refuse_plain(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(SPEAK_TLS).await?;
    stream.shutdown().await?;
    let mut rest = stream.take(LAST_BYTES);
    let mut nowhere = tokio::io::sink();
    let spent = tokio::io::copy(&mut rest, &mut nowhere);
    let _ = tokio::time::timeout(FAREWELL, spent).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_http_response_has_the_right_length() {
        let text = std::str::from_utf8(SPEAK_TLS).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head} {}", body.len());
    }
}
