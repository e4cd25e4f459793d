//! How the directory is asked: over the HTTP client that the program has anyway.

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

/// For one request.
const PATIENCE: Duration = Duration::from_secs(30);

/// See the module.
pub(super) struct Client(reqwest::Client);

impl Client {
    /// One that trusts the system's authorities and those of the settings.
    pub(super) fn new(settings: &AcmeSettings) -> anyhow::Result<Client> {
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("Packhouse/", env!("CARGO_PKG_VERSION")))
            .https_only(true)
            .timeout(PATIENCE);
        if let Some(file) = &settings.ca {
            let said = || format!("tls.acme.ca: the file {} cannot be used", file.display());
            let pem = read_pem(file).with_context(said)?;
            builder =
                builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(&pem).with_context(said)?);
        }
        builder.build().map(Client).context("no HTTP client could be made")
    }
}

impl HttpClient for Client {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.0.clone();
        Box::pin(async move {
            let (parts, mut body) = request.into_parts();
            // The library has it in memory, as one frame or none.
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

/// With what lies behind it, which says more than the error itself.
fn other(error: reqwest::Error) -> Error {
    let mut said = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        said = format!("{said}: {cause}");
        source = cause.source();
    }
    Error::Other(said.into())
}
