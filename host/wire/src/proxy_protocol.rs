//! PROXY protocol, versions 1 and 2: a TCP proxy sends the client's address before the client's
//! bytes. The reader takes no byte after the header, because those bytes belong to TLS or HTTP.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

use ppp::{v1, v2};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// First bytes of version 2, which never occur in version 1.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Longest line of version 1, including its line end.
const LONGEST_LINE: usize = 107;
/// Bytes of version 2 before the addresses.
const FIXED: usize = 16;
/// Maximum bytes of addresses and extensions in version 2; real proxies send far less.
const MOST: usize = 2048;

/// Reads the header. Returns the client's address; `None` if the proxy connects on its own behalf,
/// as for health checks (`LOCAL`, `UNKNOWN`), or if the client has no IP address.
///
/// # Errors
///
/// `InvalidData` if the header is missing or malformed; otherwise the error of the stream.
pub async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<SocketAddr>> {
    let mut start = [0; SIGNATURE.len()];
    stream.read_exact(&mut start).await?;
    if start == SIGNATURE { binary(stream).await } else { line(stream, &start).await }
}

async fn binary<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<SocketAddr>> {
    let mut header = SIGNATURE.to_vec();
    header.resize(FIXED, 0);
    let rest = header.get_mut(SIGNATURE.len()..).unwrap_or_default();
    stream.read_exact(rest).await?;
    let length = match rest {
        [_, _, high, low] => usize::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    };
    if length > MOST {
        return Err(malformed());
    }
    header.resize(FIXED + length, 0);
    stream.read_exact(header.get_mut(FIXED..).unwrap_or_default()).await?;
    let header = v2::Header::try_from(header.as_slice()).map_err(|_| malformed())?;
    Ok(match (header.command, header.addresses) {
        (v2::Command::Local, _) => None,
        (_, v2::Addresses::IPv4(of)) => Some((IpAddr::from(of.source_address), of.source_port).into()),
        (_, v2::Addresses::IPv6(of)) => Some((IpAddr::from(of.source_address), of.source_port).into()),
        _ => None,
    })
}

async fn line<S: AsyncRead + Unpin>(stream: &mut S, start: &[u8]) -> io::Result<Option<SocketAddr>> {
    if !start.starts_with(b"PROXY ") {
        return Err(malformed());
    }
    let mut line = start.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() >= LONGEST_LINE {
            return Err(malformed());
        }
        line.push(stream.read_u8().await?);
    }
    let header = v1::Header::try_from(line.as_slice()).map_err(|_| malformed())?;
    Ok(match header.addresses {
        v1::Addresses::Tcp4(of) => Some((IpAddr::from(of.source_address), of.source_port).into()),
        v1::Addresses::Tcp6(of) => Some((IpAddr::from(of.source_address), of.source_port).into()),
        v1::Addresses::Unknown => None,
    })
}

fn malformed() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the connection does not begin with a PROXY protocol header")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    async fn read_header(bytes: &[u8]) -> (io::Result<Option<SocketAddr>>, Vec<u8>) {
        let mut stream = bytes;
        let header = read(&mut stream).await;
        (header, stream.to_vec())
    }

    fn second(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
        let length = u16::try_from(addresses.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[0x20 | command, family], &length, addresses].concat()
    }

    #[tokio::test]
    async fn the_client_is_returned_and_the_following_bytes_stay() {
        let four =
            [&[192, 0, 2, 1, 10, 0, 0, 1], &1000_u16.to_be_bytes()[..], &443_u16.to_be_bytes()].concat();
        let extended = [&four[..], &[0x04, 0, 1, b'x']].concat();
        let six = [&[0xfd; 32][..], &1000_u16.to_be_bytes(), &443_u16.to_be_bytes()].concat();
        let table: &[(Vec<u8>, Option<&str>)] = &[
            (b"PROXY TCP4 192.0.2.1 10.0.0.1 1000 443\r\n".to_vec(), Some("192.0.2.1:1000")),
            (b"PROXY TCP6 2001:db8::1 ::1 1000 443\r\n".to_vec(), Some("[2001:db8::1]:1000")),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
            (second(1, 0x11, &four), Some("192.0.2.1:1000")),
            (second(1, 0x11, &extended), Some("192.0.2.1:1000")),
            (second(1, 0x21, &six), Some("[fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd]:1000")),
            (second(0, 0x00, &[]), None),
        ];
        for (header, client) in table {
            let (named, rest) = read_header(&[&header[..], b"GET / HTTP/1.1\r\n"].concat()).await;
            assert_eq!(named.unwrap().map(|address| address.to_string()).as_deref(), *client);
            assert_eq!(rest, b"GET / HTTP/1.1\r\n");
        }
    }

    #[tokio::test]
    async fn malformed_headers_are_refused() {
        let long = [&b"PROXY UNKNOWN "[..], &[b'x'; 200]].concat();
        let huge = [&SIGNATURE[..], &[0x21, 0x11, 0xff, 0xff]].concat();
        for bytes in [
            &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
            b"PROXY TCP4 192.0.2.1\r\n",
            b"PROXY TCP4 999.0.2.1 10.0.0.1 1000 443\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00",
            b"PROX",
            &second(1, 0x11, &[1, 2]),
            &second(7, 0x11, &[0; 12]),
            &long,
            &huge,
        ] {
            assert!(read_header(bytes).await.0.is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300), version in 0..3) {
            let start: &[u8] = match version { 0 => &SIGNATURE, 1 => b"PROXY TCP4 ", _ => b"" };
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let _ = runtime.block_on(read_header(&[start, &bytes].concat()));
        }
    }
}
