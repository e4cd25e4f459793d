//! TLS of a listener: the current certificates and the handshake. Certificates are replaced at
//! runtime: open connections continue, and the next handshake uses the new ones.
//!
//! TLS 1.2 and 1.3 are supported, and HTTP/2 through ALPN. The guard wraps the decrypted stream, so
//! that TLS connections have the same protections as plain ones.

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

/// ALPN protocols, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// ALPN protocol of an authority that validates a name (RFC 8737, section 6.2).
const ACME_PROTOCOL: &[u8] = b"acme-tls/1";

/// Source of the validation certificates for TLS-ALPN challenges (RFC 8737).
pub trait Challenges: Send + Sync {
    /// Returns the certificate that currently proves control of this name, if there is one.
    fn proof(&self, name: &str) -> BoxFuture<'_, Option<Arc<CertifiedKey>>>;
}

/// Returns the cryptography provider that the whole program uses.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// TLS configuration of one listener.
pub struct Tls {
    served: Arc<ServedCertificates>,
    config: Arc<ServerConfig>,
    challenges: Option<Arc<dyn Challenges>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("served", &self.served).finish_non_exhaustive()
    }
}

impl Tls {
    /// Creates a configuration without certificates. Fails only if the library rejects its own
    /// defaults.
    pub fn new(challenges: Option<Arc<dyn Challenges>>) -> Result<Tls, rustls::Error> {
        let served = Arc::new(ServedCertificates::default());
        let resolver = Arc::clone(&served) as Arc<dyn ResolvesServerCert>;
        let mut config = server_config(resolver)?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        // Clients can resume sessions on any connection of this process. The ticketer replaces its
        // key every few hours.
        config.ticketer = aws_lc_rs::Ticketer::new()?;
        Ok(Tls { served, config: Arc::new(config), challenges })
    }

    /// Uses these certificates from the next handshake on. Each client gets the first certificate
    /// that covers its host, otherwise the first of the list.
    pub fn serve(&self, certificates: Vec<Certificate>) {
        *self.served.0.write().unwrap_or_else(PoisonError::into_inner) = certificates.into();
    }

    /// Returns the certificates in use.
    pub fn served(&self) -> Arc<[Certificate]> {
        self.served.get()
    }

    /// Performs the handshake. `None` if the client is a certificate authority that only validates
    /// a name and sends no request.
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
        let proof = proof
            .ok_or_else(|| io::Error::other(format!("there is no pending ACME challenge for {name:?}")))?;
        let mut config = server_config(Arc::new(SingleCertAndKey::from(proof))).map_err(io::Error::other)?;
        config.alpn_protocols = vec![ACME_PROTOCOL.to_vec()];
        let mut stream = started.into_stream(Arc::new(config)).await?;
        // The authority needs only the handshake.
        stream.shutdown().await.map(|()| None)
    }
}

fn server_config(resolver: Arc<dyn ResolvesServerCert>) -> Result<ServerConfig, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(provider());
    let builder = builder.with_protocol_versions(&[&version::TLS13, &version::TLS12])?;
    Ok(builder.with_no_client_auth().with_cert_resolver(resolver))
}

/// Current certificates of a listener.
#[derive(Debug)]
struct ServedCertificates(RwLock<Arc<[Certificate]>>);

impl Default for ServedCertificates {
    fn default() -> Self {
        Self(RwLock::new(Arc::from([])))
    }
}

impl ServedCertificates {
    fn get(&self) -> Arc<[Certificate]> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ResolvesServerCert for ServedCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let served = self.get();
        let named = hello.server_name().and_then(|name| ServerName::try_from(name).ok());
        let fits = named.and_then(|name| served.iter().find(|certificate| certificate.is_for(&name)));
        fits.or(served.first()).map(Certificate::key)
    }
}
