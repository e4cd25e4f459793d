//! HTTP client for the ACME directory, based on the program's own client.

use std::error::Error as StdError;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use packhouse_config::tls::AcmeSettings;
use packhouse_wire::tls::read_pem;

/// Time limit of a request.
const PATIENCE: Duration = Duration::from_secs(30);

/// HTTP client for the ACME library.
pub(super) struct AcmeClient(reqwest::Client);

impl AcmeClient {
    /// Creates a client that trusts the system's certificate authorities and those in the settings.
    pub(super) fn new(settings: &AcmeSettings) -> anyhow::Result<AcmeClient> {
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("Packhouse/", env!("CARGO_PKG_VERSION")))
            .https_only(true)
            .timeout(PATIENCE);
        if let Some(file) = &settings.ca {
            let failed = || format!("tls.acme.ca: the file {} cannot be used", file.display());
            let pem = read_pem(file).with_context(failed)?;
            builder =
                builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(&pem).with_context(failed)?);
        }
        builder.build().map(AcmeClient).context("failed to create the HTTP client")
    }
}

impl HttpClient for AcmeClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.0.clone();
        Box::pin(async move {
            let (parts, mut body) = request.into_parts();
            // The library's body is in memory, as one frame or none.
            let bytes = match body.frame().await {
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                None => Bytes::new(),
            };
            let request = reqwest::Request::try_from(Request::from_parts(parts, bytes)).map_err(other)?;
            let answer = client.execute(request).await.map_err(other)?;
            Ok(BytesResponse::from(Response::<reqwest::Body>::from(answer)))
        })
    }
}

/// Converts an error including its causes, which say more than the error itself.
fn other(error: reqwest::Error) -> Error {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    Error::Other(text.into())
}
