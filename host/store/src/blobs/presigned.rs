//! Presigned URLs, at which clients fetch objects from S3 without passing through this server. Each
//! URL is valid for one object and a limited time.

use std::time::Duration;

use object_store::Result;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::signer::{Method, SignedUrlOptions, Signer};
use url::Url;

use crate::config::RedirectsConfig;

/// Signer of URLs with the endpoint that clients use.
#[derive(Debug)]
pub(crate) struct Presigner {
    s3: AmazonS3,
    min_bytes: u64,
    lifetime: Duration,
}

/// Response headers that S3 must send with an object. The client cannot change them.
#[derive(Clone, Copy, Debug, Default)]
pub struct SentAs<'a> {
    pub content_type: Option<&'a str>,
    pub content_disposition: Option<&'a str>,
}

impl Presigner {
    /// Creates the signer for the bucket that `builder` describes. It is an error if the
    /// configuration is invalid.
    pub(crate) fn new(builder: AmazonS3Builder, redirects: &RedirectsConfig) -> Result<Presigner> {
        let builder = match &redirects.endpoint {
            Some(endpoint) => builder
                .with_config(AmazonS3ConfigKey::S3Endpoint, endpoint)
                .with_allow_http(endpoint.starts_with("http:")),
            None => builder,
        };
        let RedirectsConfig { min_bytes, lifetime, .. } = *redirects;
        Ok(Presigner { s3: builder.build()?, min_bytes, lifetime })
    }

    /// Returns the URL of an object of this size; `None` if it is too small for a redirect.
    pub(crate) async fn presigned(
        &self,
        path: &Path,
        size: u64,
        sent_as: &SentAs<'_>,
    ) -> Result<Option<Url>> {
        if size < self.min_bytes {
            return Ok(None);
        }
        let stated = [
            ("response-content-type", sent_as.content_type),
            ("response-content-disposition", sent_as.content_disposition),
        ];
        let stated = stated.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let options = SignedUrlOptions::default().with_query(stated);
        self.s3.signed_url_opts(Method::GET, path, self.lifetime, &options).await.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_url_has_the_endpoint_for_clients_and_the_response_headers() {
        let builder = AmazonS3Builder::new()
            .with_bucket_name("b")
            .with_endpoint("http://10.0.0.1:8333")
            .with_allow_http(true)
            .with_access_key_id("id")
            .with_secret_access_key("secret");
        let redirects = RedirectsConfig {
            min_bytes: 10,
            endpoint: Some("https://s3.example".to_owned()),
            lifetime: Duration::from_secs(60),
        };
        let presigner = Presigner::new(builder, &redirects).unwrap();
        let (path, sent_as) =
            (Path::from("blobs/a"), SentAs { content_type: Some("a/b"), ..SentAs::default() });
        assert!(presigner.presigned(&path, 9, &sent_as).await.unwrap().is_none());
        let url = presigner.presigned(&path, 10, &sent_as).await.unwrap().unwrap();
        assert!(url.as_str().starts_with("https://s3.example/b/blobs/a?"), "{url}");
        let query: std::collections::BTreeMap<_, _> = url.query_pairs().into_owned().collect();
        assert_eq!(query["response-content-type"], "a/b");
        assert_eq!(query["X-Amz-Expires"], "60");
        assert!(!url.as_str().contains("secret"));
    }
}
