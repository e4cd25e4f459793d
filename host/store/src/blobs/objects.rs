//! Blobs as objects in S3, or in memory for tests.
//!
//! An object is written under its final key from the start, as a multipart upload if it has several
//! parts. No record may reference it before it is complete. Until a row of the table `blobs` names
//! it, the database lists it as an *orphan*. So the server knows every object that a crash leaves
//! behind, and removes it once it is due.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, Checksum, S3ConditionalPut};
use object_store::memory::InMemory;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientConfigKey, Error, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMode, PutOptions, PutPayload, Result, RetryConfig,
};
use url::Url;

use super::presigned::{Presigner, SentAs};
use super::s3_meters::{Counting, one_request};
use crate::config::RedirectsConfig;
use crate::error::StoreError;

/// Size of every part except the last; the minimum that S3 accepts. With at most 10,000 parts, an
/// object has at most 48 GiB.
pub(crate) const PART: usize = 5 * 1024 * 1024;
/// Maximum number of parts of an object.
pub(crate) const PARTS: usize = 10_000;
/// Number of parts that extend the time limit for assembling an object by one response timeout.
const PARTS_PUT_TOGETHER: usize = 100;
/// Number of retries after a failure of the bucket or of the connection.
const RETRIES: usize = 3;
/// Time limit for establishing a connection.
const CONNECT: &str = "3 seconds";
/// Time limit for a whole transfer. It is practically unlimited, because the server limits the time
/// without a byte instead.
const TRANSFER: &str = "7 days";

/// Key prefix of the objects written to test write access.
const CANARY: &str = "canary/";
/// Age from which a test object counts as left behind.
const CANARY_LIVES_MS: i64 = 60 * 60 * 1000;

/// Combination of the two traits of the `object_store` crate.
trait Bucket: ObjectStore + MultipartStore {}
impl<T: ObjectStore + MultipartStore> Bucket for T {}

#[derive(Clone)]
pub(crate) struct Objects {
    bucket: Arc<dyn Bucket>,
    /// Common prefix of all keys, if the store uses a part of a bucket.
    prefix: Path,
    /// Key of the object written to test write access. Each process uses only one key, so it leaves
    /// at most one object behind.
    canary: Arc<str>,
    /// Time limit for a response, and for each pause within it.
    idle: Duration,
    /// Signer of URLs for clients; `None` if clients do not fetch from the bucket.
    presigner: Option<Arc<Presigner>>,
}

/// Identity of a multipart upload.
#[derive(Clone, Debug)]
pub(crate) struct Multipart {
    pub(crate) key: String,
    pub(crate) id: String,
}

impl Objects {
    /// Creates a bucket in memory that lives as long as the process.
    pub(crate) fn in_memory() -> Objects {
        Objects::new(Arc::new(InMemory::new()), Path::default(), Duration::from_secs(60))
    }

    fn new(bucket: Arc<dyn Bucket>, prefix: Path, idle: Duration) -> Objects {
        let canary = format!("canary/{}", super::fs::random_id()).into();
        Objects { bucket, prefix, canary, idle, presigner: None }
    }

    /// Opens the bucket, or the part of one, that [`s3_bucket`] reads from an address. A read, or a
    /// request without a body, fails after `idle` without a response or a further byte. Writing a
    /// whole part may take twice as long. `Invalid` names what is wrong, without the values.
    pub(crate) fn s3(
        address: &str,
        idle: Duration,
        redirects: Option<&RedirectsConfig>,
    ) -> std::result::Result<Objects, StoreError> {
        let (builder, prefix) = s3_bucket(address)?;
        let builder = builder.with_retry(retries(idle));
        let senseless = |error: Error| invalid(&format!("is not valid: {error}"));
        let presigner = redirects.map(|redirects| Presigner::new(builder.clone(), redirects)).transpose();
        let presigner = presigner.map_err(senseless)?.map(Arc::new);
        let bucket = builder.build().map_err(senseless)?;
        Ok(Objects { presigner, ..Objects::new(Arc::new(bucket), prefix, idle) })
    }

    /// Writes a whole object under an unused key.
    pub(crate) async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let (path, limit) = (self.path(key), self.to_write(bytes.len()));
        match within(limit, self.bucket.put_opts(&path, bytes.into(), options)).await {
            // The key is random. So an earlier try wrote any object with this key, and its response
            // was lost.
            Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(explain_501(error)),
        }
    }

    /// Reads a text object beside the blobs; `None` if it does not exist.
    pub(crate) async fn read_mark(&self, name: &str) -> Result<Option<String>> {
        match self.bucket.get(&self.beside(name)).await {
            Ok(found) => Ok(Some(String::from_utf8_lossy(&found.bytes().await?).into_owned())),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes an object beside the blobs. It is an error if the object exists.
    pub(crate) async fn write_mark(&self, name: &str, text: String) -> Result<()> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        self.bucket.put_opts(&self.beside(name), text.into(), options).await.map(|_| ()).map_err(explain_501)
    }

    /// Returns the bucket's time in ms since 1970, which is that of an object written just now.
    pub(crate) async fn now_ms(&self) -> Result<i64> {
        let key = format!("{CANARY}{}", super::fs::random_id());
        self.put(&key, Bytes::from_static(b"clock")).await?;
        let found = self.bucket.head(&self.path(&key)).await;
        self.remove(&key).await?;
        Ok(found?.last_modified.timestamp_millis())
    }

    /// Streams the keys of all objects that existed at this time, in ms by the bucket's clock.
    pub(crate) fn keys_until(&self, until: i64) -> BoxStream<'static, Result<String>> {
        let folder: Path = self.prefix.parts().chain(std::iter::once("blobs".into())).collect();
        let listed = self.bucket.list(Some(&folder));
        let key = move |found: Result<ObjectMeta>| {
            let found = match found {
                Ok(found) => found,
                Err(error) => return Some(Err(error)),
            };
            let parts: Vec<_> = found.location.prefix_match(&folder)?.collect();
            let key = parts.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join("/");
            // Keeps young test objects: the process that wrote one is about to remove it.
            let until = if key.starts_with(CANARY) { until.saturating_sub(CANARY_LIVES_MS) } else { until };
            (found.last_modified.timestamp_millis() <= until).then_some(Ok(key))
        };
        listed.filter_map(move |found| std::future::ready(key(found))).boxed()
    }

    /// Returns whether the bucket has no objects.
    pub(crate) async fn is_empty(&self) -> Result<bool> {
        let mut listed = self.bucket.list(Some(&self.prefix));
        let first = within(self.idle, async { listed.next().await.transpose() }).await?;
        Ok(first.is_none())
    }

    fn beside(&self, name: &str) -> Path {
        self.prefix.parts().chain(std::iter::once(name.into())).collect()
    }

    pub(crate) async fn begin(&self, key: &str) -> Result<Multipart> {
        let path = self.path(key);
        let id = within(self.idle, self.bucket.create_multipart(&path)).await?;
        Ok(Multipart { key: key.to_owned(), id })
    }

    /// Uploads part `number` (counted from 0) and returns its tag for the completion.
    pub(crate) async fn put_part(&self, to: &Multipart, number: usize, pieces: Vec<Bytes>) -> Result<String> {
        let payload: PutPayload = pieces.into_iter().collect();
        let limit = self.to_write(payload.content_length());
        let path = self.path(&to.key);
        let put = self.bucket.put_part(&path, &to.id, number, payload);
        Ok(within(limit, put).await?.content_id)
    }

    /// Assembles the object from its parts.
    pub(crate) async fn complete(&self, to: &Multipart, parts: &[String]) -> Result<()> {
        let times = u32::try_from(2 + parts.len() / PARTS_PUT_TOGETHER).unwrap_or(u32::MAX);
        let parts = parts.iter().map(|id| PartId { content_id: id.clone() }).collect();
        let path = self.path(&to.key);
        within(self.idle.saturating_mul(times), self.bucket.complete_multipart(&path, &to.id, parts)).await?;
        Ok(())
    }

    /// Aborts a multipart upload. A missing upload is not an error, because dropping a handle and
    /// the collection may both abort it.
    pub(crate) async fn abort(&self, to: &Multipart) -> Result<()> {
        let path = self.path(&to.key);
        match found(within(self.idle, self.bucket.abort_multipart(&path, &to.id)).await) {
            // The in-memory store fails this call only for an unknown upload.
            Err(Error::Generic { store: "InMemory", .. }) => Ok(()),
            other => other,
        }
    }

    /// Removes an object. A missing object is not an error.
    pub(crate) async fn remove(&self, key: &str) -> Result<()> {
        let path = self.path(key);
        found(within(self.idle, self.bucket.delete(&path)).await)
    }

    /// Streams a range. Each pause between two pieces is limited.
    pub(crate) async fn get(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes>>> {
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        let path = self.path(key);
        let pieces = within(self.idle, self.bucket.get_opts(&path, options)).await?.into_stream();
        let idle = self.idle;
        let next = move |mut pieces: BoxStream<'static, Result<Bytes>>| async move {
            let next = async { pieces.next().await.transpose() };
            Ok(within(idle, next).await?.map(|piece| (piece, pieces)))
        };
        Ok(stream::try_unfold(pieces, next).boxed())
    }

    /// Returns a URL at which a client can fetch the object. `None` if clients do not fetch objects
    /// of this size themselves.
    pub(crate) async fn presigned(&self, key: &str, size: u64, sent_as: &SentAs<'_>) -> Result<Option<Url>> {
        match &self.presigner {
            Some(presigner) => presigner.presigned(&self.path(key), size, sent_as).await,
            None => Ok(None),
        }
    }

    /// Returns the length of an object; `None` if it does not exist.
    pub(crate) async fn length(&self, key: &str) -> Result<Option<u64>> {
        let path = self.path(key);
        match within(self.idle, self.bucket.head(&path)).await {
            Ok(found) => Ok(Some(found.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the time limit for writing this many bytes. The progress of sending cannot be
    /// observed, so a whole part gets twice the response timeout.
    fn to_write(&self, bytes: usize) -> Duration {
        let parts = u32::try_from(bytes.div_ceil(PART)).unwrap_or(u32::MAX);
        self.idle.saturating_mul(parts.saturating_add(1))
    }

    fn path(&self, key: &str) -> Path {
        self.prefix
            .parts()
            .chain(std::iter::once("blobs".into()))
            .chain(key.split('/').map(Into::into))
            .collect()
    }

    /// Checks that the bucket answers, by requesting an object that never exists.
    pub(crate) async fn ping(&self) -> Result<()> {
        self.length("canary/none").await.map(|_| ())
    }

    /// Tests access like [`canary`](Objects::canary). `Invalid` if the bucket denies access.
    pub(crate) async fn check_access(&self) -> std::result::Result<(), StoreError> {
        match self.canary().await {
            Ok(()) => Ok(()),
            Err(Error::PermissionDenied { .. } | Error::Unauthenticated { .. }) => Err(StoreError::Invalid(
                "S3 refuses the credentials from the setting `blobs` or the environment (AWS_…)".to_owned(),
            )),
            Err(Error::NotFound { .. }) => Err(StoreError::Invalid(
                "S3 does not have the bucket that the setting `blobs` names".to_owned(),
            )),
            Err(error) => Err(StoreError::storage(error)),
        }
    }

    /// Tests the bucket: writes, reads and removes an object.
    pub(crate) async fn canary(&self) -> Result<()> {
        let key = &self.canary;
        self.put(key, Bytes::from_static(b"canary")).await?;
        let mut read = BytesMut::new();
        let mut stream = self.get(key, 0..6).await?;
        while let Some(bytes) = stream.next().await {
            read.extend_from_slice(&bytes?);
        }
        self.remove(key).await?;
        match read.as_ref() {
            b"canary" => Ok(()),
            _ => {
                Err(Error::Generic { store: "S3", source: "the written bytes could not be read back".into() })
            }
        }
    }
}

/// Parses the address of a bucket, or of a part of one:
/// `s3://bucket/part?endpoint=…&region=…&access_key_id=…&secret_access_key=…&allow_http=true`.
/// Returns the configured builder and the prefix of the keys. Settings missing in the address come
/// from the environment (`AWS_…`).
///
/// # Errors
///
/// `Invalid` names what is wrong with the address, without the values.
pub fn s3_bucket(address: &str) -> std::result::Result<(AmazonS3Builder, Path), StoreError> {
    let url = Url::parse(address).map_err(|error| invalid(&format!("is not a URL: {error}")))?;
    let bucket =
        url.host_str().filter(|_| url.scheme() == "s3").ok_or_else(|| invalid("is not s3://BUCKET?…"))?;
    // A session token from the environment belongs to the environment's key, not to a key in the
    // address.
    let has_own_key =
        url.query_pairs().any(|(name, _)| matches!(name.parse(), Ok(AmazonS3ConfigKey::AccessKeyId)));
    let mut builder = from_env(|key| !(has_own_key && *key == AmazonS3ConfigKey::Token))
        .with_bucket_name(bucket)
        .with_checksum_algorithm(Checksum::SHA256)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_http_connector(Counting::announce())
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::ConnectTimeout), CONNECT)
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), TRANSFER);
    for (name, value) in url.query_pairs() {
        let key: AmazonS3ConfigKey =
            name.parse().map_err(|_| invalid(&format!("has an unknown parameter: {name}")))?;
        // `AWS_ENDPOINT_URL_S3` would take precedence over a plain endpoint from the address.
        let key = if key == AmazonS3ConfigKey::Endpoint { AmazonS3ConfigKey::S3Endpoint } else { key };
        builder = builder.with_config(key, value);
    }
    let set = |key: AmazonS3ConfigKey| builder.get_config_value(&key);
    let endpoint = set(AmazonS3ConfigKey::S3Endpoint).or_else(|| set(AmazonS3ConfigKey::Endpoint));
    let allows_http = set(AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp));
    if endpoint.is_some_and(|it| it.starts_with("http://")) && allows_http.as_deref() == Some("false") {
        return Err(invalid("has an endpoint without TLS: add allow_http=true to allow that"));
    }
    let prefix =
        Path::from_url_path(url.path()).map_err(|error| invalid(&format!("has no usable path: {error}")))?;
    Ok((builder, prefix))
}

/// Reads the relevant S3 settings of the environment (`AWS_…`).
fn from_env(counts: impl Fn(&AmazonS3ConfigKey) -> bool) -> AmazonS3Builder {
    let settings = std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        let name = name.starts_with("AWS_").then(|| name.to_ascii_lowercase())?;
        Some((name.parse::<AmazonS3ConfigKey>().ok()?, value))
    });
    let settings = settings.filter(|(key, _)| counts(key));
    settings.fold(AmazonS3Builder::new(), |builder, (key, value)| builder.with_config(key, value))
}

/// Runs `work` with a time limit.
async fn within<T>(limit: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    match tokio::time::timeout(limit, one_request(work)).await {
        Ok(done) => done,
        Err(_) => Err(Error::Generic { store: "S3", source: format!("no answer within {limit:?}").into() }),
    }
}

/// Creates a configuration with few and quick retries, because the server asks waiting clients to
/// try again anyway.
fn retries(within: Duration) -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(1),
        base: 2.0,
    };
    RetryConfig { backoff, max_retries: RETRIES, retry_timeout: within }
}

fn found(result: Result<()>) -> Result<()> {
    match result {
        Err(Error::NotFound { .. }) => Ok(()),
        other => other,
    }
}

fn invalid(why: &str) -> StoreError {
    StoreError::Invalid(format!("the address of the S3 bucket {why}"))
}

/// Explains the error of a conditional write. A bucket that answers 501 does not support the header
/// that prevents overwriting an object.
fn explain_501(error: Error) -> Error {
    let is_501 = matches!(error, Error::Generic { .. }) && error.to_string().contains("status code: 501");
    if !is_501 {
        return error;
    }
    let text = "S3 answers 501 to conditional writes: it must support the request header If-None-Match";
    Error::NotSupported { source: text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_bucket_without_conditional_writes_names_the_header() {
        let of = |status: &str| Error::Generic {
            store: "S3",
            source: format!("Server returned non-2xx status code: {status}").into(),
        };
        let explained = StoreError::storage(explain_501(of("501 Not Implemented: ")));
        assert!(explained.reason().contains("If-None-Match"), "{}", explained.reason());
        assert!(explained.to_string().contains("If-None-Match"), "{explained}");
        let other = explain_501(of("500 Internal Server Error: "));
        assert!(!other.to_string().contains("If-None-Match"), "{other}");
    }

    #[test]
    fn an_address_names_a_bucket_and_its_errors_contain_no_values() {
        let keys = "access_key_id=a&secret_access_key=hidden";
        let (builder, prefix) =
            s3_bucket(&format!("s3://b/a/part?endpoint=http://h:1&allow_http=true&{keys}")).unwrap();
        assert_eq!(prefix, Path::from("a/part"));
        assert_eq!(builder.get_config_value(&AmazonS3ConfigKey::Bucket).as_deref(), Some("b"));
        for (address, expected) in [
            ("s3://b?endpoint=http://h:1", "allow_http=true"),
            ("s3://b?colour=hidden", "unknown parameter: colour"),
            ("gs://b", "is not s3://BUCKET"),
        ] {
            let separator = if address.contains('?') { '&' } else { '?' };
            let error = s3_bucket(&format!("{address}{separator}{keys}")).err().unwrap().to_string();
            assert!(error.contains(expected) && !error.contains("hidden"), "{error}");
        }
    }
}
