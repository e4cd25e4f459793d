//! TLS at a listener: the certificates that are served at the moment, and the handshake. Certificates are exchanged under way:
//! connections that are there go on, the next handshake has the new ones.
//!
//! TLS 1.2 and 1.3, and HTTP/2 by ALPN. What the connection carries is guarded and watched as on a plain one, because the guard
//! stands around the decrypted stream.

mod certificate;

use std::fmt;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use futures::future::BoxFuture;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::server::{Acceptor, ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ServerConfig, version};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

pub use certificate::{Certificate, CertificateError, read_pem};

/// What is spoken over TLS, the best first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// What an authority speaks that wants a name proven (RFC 8737, section 6.2).
const ACME_PROTOCOL: &[u8] = b"acme-tls/1";

/// Who knows the answers to authorities that ask for a proof in a handshake (RFC 8737).
pub trait Challenges: Send + Sync {
    /// The certificate that proves this name at present, if one does.
    fn proof(&self, name: &str) -> BoxFuture<'_, Option<Arc<CertifiedKey>>>;
}

/// The library's cryptography, the one that is in the program already.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// TLS of one listener.
pub struct Tls {
    served: Arc<Served>,
    config: Arc<ServerConfig>,
    challenges: Option<Arc<dyn Challenges>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("served", &self.served).finish_non_exhaustive()
    }
}

impl Tls {
    /// With no certificate yet. Fails where the library refuses its own defaults.
    pub fn new(challenges: Option<Arc<dyn Challenges>>) -> Result<Tls, rustls::Error> {
        let served = Arc::new(Served::default());
        let resolver = Arc::clone(&served) as Arc<dyn ResolvesServerCert>;
        let mut config = server_config(resolver)?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        // Clients resume at any connection of this process; the key changes by itself every few hours.
        config.ticketer = aws_lc_rs::Ticketer::new()?;
        Ok(Tls { served, config: Arc::new(config), challenges })
    }

    /// Serves these from the next handshake on: to each client the first that is for the host it names, else the first.
    pub fn serve(&self, certificates: Vec<Certificate>) {
        *self.served.0.write().unwrap_or_else(PoisonError::into_inner) = certificates.into();
    }

    /// What is served at present.
    pub fn served(&self) -> Arc<[Certificate]> {
        self.served.get()
    }

    /// Shakes hands. None where nothing is to be served on the stream: an authority had its proof.
    pub async fn accept<S>(&self, stream: S) -> io::Result<Option<TlsStream<S>>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let started = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let hello = started.client_hello();
        let asks_for_proof =
            hello.alpn().is_some_and(|mut protocols| protocols.any(|name| name == ACME_PROTOCOL));
        if !asks_for_proof {
            return started.into_stream(Arc::clone(&self.config)).await.map(Some);
        }
        let name = hello.server_name().unwrap_or_default().to_ascii_lowercase();
        let proof = match &self.challenges {
            Some(challenges) => challenges.proof(&name).await,
            None => None,
        };
        let proof = proof.ok_or_else(|| io::Error::other(format!("no proof of {name:?} is asked for")))?;
        let mut config = server_config(Arc::new(SingleCertAndKey::from(proof))).map_err(io::Error::other)?;
        config.alpn_protocols = vec![ACME_PROTOCOL.to_vec()];
        let mut stream = started.into_stream(Arc::new(config)).await?;
        // The handshake was all that it wanted.
        stream.shutdown().await.map(|()| None)
    }
}

fn server_config(resolver: Arc<dyn ResolvesServerCert>) -> Result<ServerConfig, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(provider());
    let builder = builder.with_protocol_versions(&[&version::TLS13, &version::TLS12])?;
    Ok(builder.with_no_client_auth().with_cert_resolver(resolver))
}

/// The certificates of a listener.
#[derive(Debug)]
struct Served(RwLock<Arc<[Certificate]>>);

impl Default for Served {
    fn default() -> Self {
        Self(RwLock::new(Arc::from([])))
    }
}

impl Served {
    fn get(&self) -> Arc<[Certificate]> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let served = self.get();
        let named = hello.server_name().and_then(|name| ServerName::try_from(name).ok());
        let fits = named.and_then(|name| served.iter().find(|certificate| certificate.is_for(&name)));
        fits.or(served.first()).map(Certificate::key)
    }
}
