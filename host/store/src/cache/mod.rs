//! What proxies keep of their upstreams: answers by the name of what was asked, their bytes as blobs like any others.

mod page;
mod shrink;

pub use page::{CacheEntry, CacheTotals};

use crate::blobs::Blob;
use crate::blobs::row::{BLOB_COLUMNS, Place, read_row};
use crate::blobs::source::Source;
use crate::catalog::{CatalogChange, ShownFile};
use crate::db::{Row, values};
use crate::digest::Algorithm;
use crate::error::StoreError;
use crate::ids::{CacheName, RepositoryId, now_ms};
use crate::records::Commit;
use crate::store::Store;

/// An answer that is kept, or is to be.
#[derive(Clone, Debug)]
pub struct CachedAnswer {
    /// Of what was asked.
    pub name: CacheName,
    /// `GET` or `HEAD`.
    pub method: String,
    /// As it was asked.
    pub target: String,
    /// The upstream's status.
    pub status: u16,
    /// Those that came with it; names in lower case.
    pub headers: Vec<(String, String)>,
    /// Where it came from after redirects.
    pub address: String,
    /// Its content; none where it had none.
    pub blob: Option<Blob>,
    /// When it came, in ms since 1970.
    pub fetched_at: i64,
    /// When the upstream last said that it is still the answer.
    pub validated_at: i64,
}

const ANSWER: &str = "c.method, c.target, c.status, c.headers, c.address, c.fetched_at, c.validated_at";

impl Store {
    /// The answer of this name. One whose bytes are gone or damaged is none: it is fetched again.
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
                tracing::warn!(%repository, what, "a kept answer is damaged and is fetched again");
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
            .map_err(|problem| StoreError::Corrupt(format!("the headers of a kept answer: {problem}")))?;
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
        let found = read_row(row)?;
        let source = match &found.place {
            Place::Inline(bytes) => Source::Bytes(bytes.clone()),
            Place::Stored(key) => Source::open(&self.inner.storage, key, found.size).await?,
        };
        Ok(Blob::stored(&self.inner.db, source, found, repository))
    }

    /// Keeps an answer in the place of the one of its name; its blob becomes durable. `shown` is shown from then on as a file of
    /// its version. `Unavailable` when it is not known whether it is kept.
    pub async fn cache(
        &self,
        repository: RepositoryId,
        answer: &CachedAnswer,
        shown: Option<ShownFile>,
    ) -> Result<(), StoreError> {
        if let Some(blob) = &answer.blob {
            self.keep(repository, std::slice::from_ref(blob)).await?;
        }
        self.put_cached(repository, answer).await?;
        match shown {
            Some(file) => {
                let catalog = vec![CatalogChange::ShowFile(file)];
                self.commit(repository, Commit { catalog, ..Commit::default() }).await.map(drop)
            }
            None => Ok(()),
        }
    }

    async fn put_cached(&self, repository: RepositoryId, answer: &CachedAnswer) -> Result<(), StoreError> {
        let headers = serde_json::to_string(&answer.headers)
            .map_err(|problem| StoreError::Invalid(format!("headers of an answer: {problem}")))?;
        let mut values = values![
            repository.0,
            &answer.name,
            answer.method.as_str(),
            answer.target.as_str(),
            i64::from(answer.status),
            headers,
            answer.address.as_str(),
            answer.fetched_at,
            answer.validated_at,
            now_ms(),
        ];
        let from = match &answer.blob {
            Some(blob) => {
                values.extend(values![&blob.sha256().await?.0]);
                "b.id, b.size, $8, $9, $10 FROM blobs b WHERE b.sha256 = $11"
            }
            // SQLite cannot tell `ON CONFLICT` from a join's `ON` behind a SELECT without WHERE.
            None => "NULL, 0, $8, $9, $10 WHERE 1 = 1",
        };
        let sql = format!(
            "INSERT INTO cached_answers (repository, name, method, target, status, headers, address, blob, size, \
             fetched_at, validated_at, last_used_at) SELECT $1, $2, $3, $4, $5, $6, $7, {from} \
             ON CONFLICT (repository, name) DO UPDATE SET method = excluded.method, target = excluded.target, \
             status = excluded.status, headers = excluded.headers, address = excluded.address, blob = excluded.blob, \
             size = excluded.size, fetched_at = excluded.fetched_at, validated_at = excluded.validated_at, \
             last_used_at = excluded.last_used_at"
        );
        match self.execute_for(repository, sql, values).await? {
            0 => Err(StoreError::database("the bytes of an answer were collected before it was kept")),
            _ => Ok(()),
        }
    }

    /// The upstream says at `at` (ms since 1970) that the answer still holds.
    pub async fn cache_validated(
        &self,
        repository: RepositoryId,
        name: &CacheName,
        at: i64,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE cached_answers SET validated_at = $3 WHERE repository = $1 AND name = $2";
        self.inner.db.execute(sql, values![repository.0, name, at]).await.map(drop)
    }

    /// Keeps the answer of this name no longer.
    pub async fn uncache(&self, repository: RepositoryId, name: &CacheName) -> Result<(), StoreError> {
        let sql = "DELETE FROM cached_answers WHERE repository = $1 AND name = $2";
        self.inner.db.execute(sql, values![repository.0, name]).await.map(drop)
    }
}

impl ShownFile {
    /// The file that an answer is shown as. `Corrupt` when its bytes are damaged.
    pub async fn of(blob: &Blob, name: &str, version: &str, path: &str) -> Result<ShownFile, StoreError> {
        let digest = blob.digest(Algorithm::Sha256).await?;
        let [name, version, path] = [name, version, path].map(str::to_owned);
        Ok(ShownFile { name, version, path, digest, size: blob.size() })
    }
}
