//! Blobs as objects: in S3, or in memory for tests.
//!
//! An object is written under its final key from the start, as a multipart upload when it has more than one part. No record
//! may name it before; in the database it is a *stray* until a row of the table `blobs` names it, so that whatever a crash
//! leaves behind is known and removed when it is due.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, Checksum, S3ConditionalPut};
use object_store::memory::InMemory;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, Result,
};

use crate::error::StoreError;

/// The size of every part but the last, and the smallest that S3 takes. At most 10,000 parts make an object, so 48 GiB.
pub(crate) const PART: usize = 5 * 1024 * 1024;
/// The most parts of an object.
pub(crate) const PARTS: usize = 10_000;

/// What a bucket does, of the crate's two traits.
trait Bucket: ObjectStore + MultipartStore {}
impl<T: ObjectStore + MultipartStore> Bucket for T {}

/// A bucket.
#[derive(Clone)]
pub(crate) struct Objects {
    bucket: Arc<dyn Bucket>,
    /// What all keys begin with, of a store that has a part of a bucket.
    prefix: Path,
}

/// A multipart upload: where the parts go.
#[derive(Clone, Debug)]
pub(crate) struct Multipart {
    /// The object's key.
    pub(crate) key: String,
    /// The upload's id.
    pub(crate) id: String,
}

impl Objects {
    /// A bucket that lives as long as the process.
    pub(crate) fn in_memory() -> Objects {
        Objects { bucket: Arc::new(InMemory::new()), prefix: Path::default() }
    }

    /// The bucket, or the part of one, of `s3://bucket/part?endpoint=…&region=…&access_key_id=…&secret_access_key=…&allow_http=true`. What the address
    /// does not say comes from the environment (`AWS_…`). `Invalid` names what is wrong, without the values.
    pub(crate) fn s3(address: &str) -> std::result::Result<Objects, StoreError> {
        let url = url::Url::parse(address).map_err(|error| invalid(&format!("is no address: {error}")))?;
        let bucket =
            url.host_str().filter(|_| url.scheme() == "s3").ok_or_else(|| invalid("is not s3://BUCKET?…"))?;
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_checksum_algorithm(Checksum::SHA256)
            .with_conditional_put(S3ConditionalPut::ETagMatch);
        for (name, value) in url.query_pairs() {
            let key: AmazonS3ConfigKey =
                name.parse().map_err(|_| invalid(&format!("has a parameter that is not known: {name}")))?;
            builder = builder.with_config(key, value);
        }
        let bucket = builder.build().map_err(|error| invalid(&format!("does not make sense: {error}")))?;
        let prefix = Path::from_url_path(url.path())
            .map_err(|error| invalid(&format!("has no usable path: {error}")))?;
        Ok(Objects { bucket: Arc::new(bucket), prefix })
    }

    /// Writes a whole object under a key that is not taken.
    pub(crate) async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.bucket.put_opts(&self.path(key), bytes.into(), options).await {
            // The key is random, so what is there is this very object, put by a try whose answer was lost.
            Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Begins an object of many parts.
    pub(crate) async fn begin(&self, key: &str) -> Result<Multipart> {
        let id = self.bucket.create_multipart(&self.path(key)).await?;
        Ok(Multipart { key: key.to_owned(), id })
    }

    /// Adds part `number`, counted from 0; what stands for it at the end.
    pub(crate) async fn put_part(&self, to: &Multipart, number: usize, pieces: Vec<Bytes>) -> Result<String> {
        let payload: PutPayload = pieces.into_iter().collect();
        Ok(self.bucket.put_part(&self.path(&to.key), &to.id, number, payload).await?.content_id)
    }

    /// Makes the object of its parts.
    pub(crate) async fn complete(&self, to: &Multipart, parts: &[String]) -> Result<()> {
        let parts = parts.iter().map(|id| PartId { content_id: id.clone() }).collect();
        self.bucket.complete_multipart(&self.path(&to.key), &to.id, parts).await?;
        Ok(())
    }

    /// Forgets an upload's parts. That there are none is no fault.
    pub(crate) async fn abort(&self, to: &Multipart) -> Result<()> {
        found(self.bucket.abort_multipart(&self.path(&to.key), &to.id).await)
    }

    /// Removes an object. One that is not there is no fault.
    pub(crate) async fn remove(&self, key: &str) -> Result<()> {
        found(self.bucket.delete(&self.path(key)).await)
    }

    /// The bytes of a range, as they come.
    pub(crate) async fn get(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes>>> {
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        Ok(self.bucket.get_opts(&self.path(key), options).await?.into_stream())
    }

    /// How many bytes an object has; none when there is no such object.
    pub(crate) async fn length(&self, key: &str) -> Result<Option<u64>> {
        match self.bucket.head(&self.path(key)).await {
            Ok(found) => Ok(Some(found.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn path(&self, key: &str) -> Path {
        self.prefix
            .parts()
            .chain(std::iter::once("blobs".into()))
            .chain(key.split('/').map(Into::into))
            .collect()
    }

    /// Writes, reads and removes an object.
    pub(crate) async fn canary(&self) -> Result<()> {
        let key = format!("canary/{}", super::fs::random_id());
        self.put(&key, Bytes::from_static(b"canary")).await?;
        let mut read = BytesMut::new();
        let mut stream = self.get(&key, 0..6).await?;
        while let Some(bytes) = stream.next().await {
            read.extend_from_slice(&bytes?);
        }
        self.remove(&key).await?;
        match read.as_ref() {
            b"canary" => Ok(()),
            _ => Err(Error::Generic { store: "S3", source: "what was written was not read again".into() }),
        }
    }
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
