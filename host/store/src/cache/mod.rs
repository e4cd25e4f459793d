//! What proxies keep of their upstreams: answers by the name of what was asked, their bytes as blobs like any others.

mod claims;
mod page;
mod shrink;

pub use page::{CacheEntry, CacheTotals};

use crate::answers::{AnswerChange, StoredAnswer};
use crate::blobs::Blob;
use crate::blobs::row::BLOB_COLUMNS;
use crate::boxed;
use crate::catalog::{CatalogChange, ShownFile};
use crate::db::{Row, values};
use crate::digest::Algorithm;
use crate::error::StoreError;
use crate::ids::{CacheName, RepositoryId};
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
        let found = self.read_row(row).await?;
        self.open_blob(found, repository).await
    }

    /// Keeps an answer in the place of the one of its name; its blob becomes durable. `shown` is shown from then on as a file of
    /// its version. One commit, so that what was made of the former answer ends with it. `Unavailable` when it is not known
    /// whether it is kept, `Invalid` for an address that cannot be stored.
    #[boxed]
    pub async fn cache(
        &self,
        repository: RepositoryId,
        answer: &CachedAnswer,
        shown: Option<ShownFile>,
    ) -> Result<(), StoreError> {
        let commit = Commit {
            answers: vec![AnswerChange::Put(stored_answer(answer).await?.into())],
            catalog: shown.map(CatalogChange::ShowFile).into_iter().collect(),
            keeps: answer.blob.iter().cloned().collect(),
            ..Commit::default()
        };
        self.commit(repository, commit).await.map(drop)
    }

    /// The upstream says at `at` (ms since 1970) that the answer still holds. What was made of it stays as good as it was.
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

    /// Keeps the answer of this name no longer.
    #[boxed]
    pub async fn uncache(&self, repository: RepositoryId, name: &CacheName) -> Result<(), StoreError> {
        self.uncache_all(repository, std::slice::from_ref(name)).await
    }

    /// Keeps the answers of these names no longer, at most [`MAX_CHANGES`] of them.
    async fn uncache_all(&self, repository: RepositoryId, names: &[CacheName]) -> Result<(), StoreError> {
        if names.is_empty() {
            return Ok(());
        }
        let answers = names.iter().copied().map(AnswerChange::Remove).collect();
        self.commit(repository, Commit { answers, ..Commit::default() }).await.map(drop)
    }
}

/// An answer as its row has it. `Invalid` for headers that cannot be written down; else as [`Blob::sha256`].
async fn stored_answer(answer: &CachedAnswer) -> Result<StoredAnswer, StoreError> {
    let headers = serde_json::to_string(&answer.headers)
        .map_err(|problem| StoreError::Invalid(format!("headers of an answer: {problem}")))?;
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

impl ShownFile {
    /// The file that an answer is shown as. `Corrupt` when its bytes are damaged.
    #[boxed]
    pub async fn of(blob: &Blob, name: &str, version: &str, path: &str) -> Result<ShownFile, StoreError> {
        let digest = blob.digest(Algorithm::Sha256).await?;
        let [name, version, path] = [name, version, path].map(str::to_owned);
        Ok(ShownFile { name, version, path, digest, size: blob.size() })
    }
}
