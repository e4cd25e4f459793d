//! Cached upstream responses of proxies, keyed by a hash of the request. Their bytes are ordinary
//! blobs.

mod claims;
mod page;
mod shrink;

pub use page::{CacheEntry, CacheTotals};

use crate::blobs::Blob;
use crate::blobs::row::BLOB_COLUMNS;
use crate::boxed;
use crate::cached_answers::{AnswerChange, StoredAnswer};
use crate::catalog::{CatalogChange, CatalogFile};
use crate::db::{Row, values};
use crate::digest::Algorithm;
use crate::error::StoreError;
use crate::ids::{CacheName, RepositoryId};
use crate::records::Commit;
use crate::store::Store;

#[derive(Clone, Debug)]
pub struct CachedAnswer {
    /// Cache key of the request.
    pub name: CacheName,
    /// Request method, `GET` or `HEAD`.
    pub method: String,
    /// Request target as it was sent.
    pub target: String,
    /// Status code of the response.
    pub status: u16,
    /// Headers of the response; names in lower case.
    pub headers: Vec<(String, String)>,
    /// URL of the response after redirects.
    pub address: String,
    /// Body; `None` if the response had none.
    pub blob: Option<Blob>,
    /// Time of arrival, in ms since 1970.
    pub fetched_at: i64,
    /// Time when the upstream last confirmed the response.
    pub validated_at: i64,
}

const ANSWER: &str = "c.method, c.target, c.status, c.headers, c.address, c.fetched_at, c.validated_at";

impl Store {
    /// Cached response of this name. If its bytes are missing or damaged, the result is `None`, and
    /// the caller fetches it again.
    #[boxed]
    pub async fn cached(
        &self,
        repository: RepositoryId,
        name: &CacheName,
    ) -> Result<Option<CachedAnswer>, StoreError> {
        let sql = format!(
            "SELECT {ANSWER}, {BLOB_COLUMNS} FROM cached_answers c LEFT JOIN blobs b ON b.id = c.blob \
             WHERE c.repository = $1 AND c.name = $2"
        );
        let Some(row) = self.inner.db.fetch_one(sql, values![repository.0, name]).await? else {
            return Ok(None);
        };
        match self.read_cached(repository, name, &row).await {
            Err(StoreError::Corrupt(what)) => {
                tracing::warn!(%repository, what, "a cached response is damaged; fetching it again");
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    async fn read_cached(
        &self,
        repository: RepositoryId,
        name: &CacheName,
        row: &Row,
    ) -> Result<CachedAnswer, StoreError> {
        let mut columns = row.columns();
        let (method, target, status) =
            (columns.text("method")?, columns.text("target")?, columns.unsigned("status")?);
        let (headers, address) = (columns.text("headers")?, columns.text("address")?);
        let (fetched_at, validated_at) = (columns.int("fetched_at")?, columns.int("validated_at")?);
        let headers = serde_json::from_str(&headers)
            .map_err(|problem| StoreError::Corrupt(format!("the headers of a cached response: {problem}")))?;
        let blob = if columns.opt_int("id")?.is_some() {
            Some(self.cached_blob(repository, row).await?)
        } else {
            None
        };
        let status = u16::try_from(status).unwrap_or(u16::MAX);
        Ok(CachedAnswer {
            name: *name,
            method,
            target,
            status,
            headers,
            address,
            blob,
            fetched_at,
            validated_at,
        })
    }

    async fn cached_blob(&self, repository: RepositoryId, row: &Row) -> Result<Blob, StoreError> {
        let found = self.read_row(row).await?;
        self.open_blob(found, repository).await
    }

    /// Stores a response and makes its blob durable; replaces an earlier response of the same name.
    /// Adds `file` to the catalog as a file of its version.
    ///
    /// The change is one commit, so that answers made from the earlier response become invalid.
    /// `Unavailable` if the result is unknown; `Invalid` for an address that cannot be stored.
    #[boxed]
    pub async fn cache(
        &self,
        repository: RepositoryId,
        answer: &CachedAnswer,
        file: Option<CatalogFile>,
    ) -> Result<(), StoreError> {
        let commit = Commit {
            answers: vec![AnswerChange::Put(stored_answer(answer).await?.into())],
            catalog: file.map(CatalogChange::ShowFile).into_iter().collect(),
            keeps: answer.blob.iter().cloned().collect(),
            ..Commit::default()
        };
        self.commit(repository, commit).await.map(drop)
    }

    /// Records that the upstream confirmed the response at `at` (ms since 1970). Answers that were
    /// made from it stay valid.
    #[boxed]
    pub async fn cache_validated(
        &self,
        repository: RepositoryId,
        name: &CacheName,
        at: i64,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE cached_answers SET validated_at = $3 WHERE repository = $1 AND name = $2";
        let mut transaction = self.inner.db.begin().await?;
        let expected = self.inner.snapshots.expect(self.inner.db.generation());
        transaction.execute(sql, values![repository.0, name, at]).await?;
        transaction.commit().await?;
        expected.carry_unchanged(self.inner.db.generation());
        Ok(())
    }

    /// Removes the response of this name from the cache.
    #[boxed]
    pub async fn uncache(&self, repository: RepositoryId, name: &CacheName) -> Result<(), StoreError> {
        self.uncache_all(repository, std::slice::from_ref(name)).await
    }

    /// Removes the responses of these names, at most [`MAX_CHANGES`] of them.
    async fn uncache_all(&self, repository: RepositoryId, names: &[CacheName]) -> Result<(), StoreError> {
        if names.is_empty() {
            return Ok(());
        }
        let answers = names.iter().copied().map(AnswerChange::Remove).collect();
        self.commit(repository, Commit { answers, ..Commit::default() }).await.map(drop)
    }
}

/// Row of a response. `Invalid` if the headers cannot be serialized; otherwise as [`Blob::sha256`].
async fn stored_answer(answer: &CachedAnswer) -> Result<StoredAnswer, StoreError> {
    let headers = serde_json::to_string(&answer.headers)
        .map_err(|problem| StoreError::Invalid(format!("the headers of a response: {problem}")))?;
    let blob = match &answer.blob {
        Some(blob) => Some(blob.sha256().await?),
        None => None,
    };
    Ok(StoredAnswer {
        name: answer.name,
        method: answer.method.clone(),
        target: answer.target.clone(),
        status: answer.status,
        headers,
        address: answer.address.clone(),
        blob,
        size: answer.blob.as_ref().map_or(0, Blob::size),
        fetched_at: answer.fetched_at,
        validated_at: answer.validated_at,
    })
}

impl CatalogFile {
    /// Catalog file for a response. `Corrupt` if its bytes are damaged.
    #[boxed]
    pub async fn of(blob: &Blob, name: &str, version: &str, path: &str) -> Result<CatalogFile, StoreError> {
        let digest = blob.digest(Algorithm::Sha256).await?;
        let [name, version, path] = [name, version, path].map(str::to_owned);
        Ok(CatalogFile { name, version, path, digest, size: blob.size() })
    }
}
