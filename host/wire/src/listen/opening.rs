//! What comes before the first request of a connection: a PROXY header where proxies send one, and the handshake of TLS. Both
//! together have a time of their own, so that a stranger who says nothing holds a place for no longer.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http::HeaderValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use super::Rules;
use super::admission::Admitted;
use crate::proxy_protocol;
use crate::tls::Tls;

/// The first byte of every handshake of TLS (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;
/// What a client hears that speaks plain HTTP where TLS is spoken.
const SPEAK_TLS: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 58\r\n\
    Connection: close\r\n\r\nThis port speaks HTTPS. Write https:// in the address.\r\n\r\n";
/// How long such a client is given to take it.
const FAREWELL: Duration = Duration::from_secs(1);
/// How much of what it sends is read meanwhile.
const LAST_BYTES: u64 = 64 * 1024;
const OUTCOMES: &str = "packhouse_tls_handshakes_total";

/// A connection on which requests may come.
pub(super) struct Opened {
    /// Its bytes, decrypted.
    pub(super) stream: Either<TcpStream, Box<TlsStream<TcpStream>>>,
    /// Whose it is.
    pub(super) peer: SocketAddr,
    /// What its answers carry.
    pub(super) hsts: Option<HeaderValue>,
}

/// Opens the connection; none where nothing is to be served on it.
pub(super) async fn open(
    stream: TcpStream,
    peer: SocketAddr,
    admitted: &Admitted,
    rules: &Rules,
) -> Option<Opened> {
    if rules.tls.is_none() && !rules.proxy_protocol {
        return Some(Opened { stream: Either::Left(stream), peer, hsts: None });
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
            tracing::debug!(%peer, %error, "a connection did not come to a request");
            None
        }
        Err(_) => {
            if rules.tls.is_some() {
                metrics::counter!(OUTCOMES, "outcome" => "timeout").increment(1);
            }
            tracing::debug!(%peer, "a connection took too long to come to a request");
            None
        }
    }
}

async fn begin(
    mut stream: TcpStream,
    mut peer: SocketAddr,
    admitted: &Admitted,
    rules: &Rules,
) -> io::Result<Option<Opened>> {
    let from_proxy =
        rules.proxy_protocol && rules.trusted.get().iter().any(|network| network.contains(peer.ip()));
    if from_proxy && let Some(client) = proxy_protocol::read(&mut stream).await? {
        if !admitted.belongs_to(client.ip()) {
            metrics::counter!("packhouse_connections_refused_total").increment(1);
            return Err(io::Error::other("a network has as many connections as it may"));
        }
        peer = client;
    }
    let Some(tls) = &rules.tls else {
        return Ok(Some(Opened { stream: Either::Left(stream), peer, hsts: None }));
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
        // An address is no name that a browser could remember, and `localhost` is everybody's.
        let named = stream.get_ref().1.server_name().is_some_and(|name| name != "localhost");
        let hsts = rules.hsts.clone().filter(|_| named);
        Opened { stream: Either::Right(Box::new(stream)), peer, hsts }
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

/// Says in plain HTTP what is wrong, and waits a little so that it is heard.
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
    fn the_refusal_of_plain_http_says_its_length() {
        let text = std::str::from_utf8(SPEAK_TLS).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head} {}", body.len());
    }
}
