//! Maintenance of the search index. It applies the changes that commits queued, in pieces, on one
//! server at a time.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::grams::of_text;
use crate::db::{MultiRow, Row, Transaction, Value, values};
use crate::error::StoreError;
use crate::ids::{RepositoryId, new_id};
use crate::store::{Inner, Store};

/// Maximum delay of the index behind the commits while nobody searches.
const INTERVAL: Duration = Duration::from_secs(1);
/// Changes applied in one transaction.
const PIECE: u32 = 200;
/// Documents of a deleted repository that are deleted in one transaction.
const GOING: i64 = 1_000;

async fn work(inner: &Weak<Inner>) -> Option<Result<(), StoreError>> {
    let store = Store { inner: inner.upgrade()? };
    Some(store.index_changes(u32::MAX).await)
}

impl Store {
    /// Starts the task that indexes what commits queue. It ends with the last handle of the store.
    pub(crate) fn index_commits(&self) {
        let inner = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                let Some(worked) = work(&inner).await else { return };
                if let Err(problem) = worked {
                    tracing::debug!(%problem, "search index is behind");
                }
            }
        });
    }

    /// Applies up to `most` queued changes to the index. An empty queue costs one statement.
    pub(crate) async fn index_changes(&self, most: u32) -> Result<(), StoreError> {
        let mut left = most;
        while left > 0 {
            let any = "SELECT id FROM search_queue LIMIT 1";
            if self.inner.db.fetch_uncounted(any, vec![]).await?.is_empty() {
                return Ok(());
            }
            let (piece, left_after) = (PIECE.min(left), left.saturating_sub(PIECE));
            if self.index_piece(piece).await? == 0 {
                return Ok(());
            }
            left = left_after;
        }
        Ok(())
    }

    /// Applies one piece of the queue; returns the number of changes.
    async fn index_piece(&self, most: u32) -> Result<usize, StoreError> {
        let mut transaction = self.inner.db.begin().await?.uncounted();
        // Locks this row, so that only one server at a time writes documents.
        let alone = format!("SELECT value FROM meta WHERE name = 'search_index'{}", transaction.for_update());
        transaction.fetch(alone, vec![]).await?;
        let queued = "SELECT id, repository, name FROM search_queue ORDER BY id LIMIT $1";
        let queued = transaction.fetch(queued, values![i64::from(most)]).await?;
        let queued: Vec<Queued> = queued.iter().map(Queued::read).collect::<Result<_, _>>()?;
        let expected = self.inner.snapshots.expect(self.inner.db.generation());
        let unfinished = remove_repositories(&mut transaction, &queued).await?;
        let packages: BTreeSet<(RepositoryId, &str)> = queued
            .iter()
            .filter(|row| !row.name.is_empty())
            .map(|row| (row.repository, row.name.as_str()))
            .collect();
        index(&mut transaction, packages).await?;
        let done = queued.iter().filter(|row| !unfinished.contains(&row.id));
        let done: Vec<[Value; 1]> = done.map(|row| [Value::from(row.id)]).collect();
        transaction.execute_rows("DELETE FROM search_queue WHERE id IN (VALUES ", done, ")").await?;
        transaction.commit().await?;
        expected.carry_unchanged(self.inner.db.generation());
        Ok(queued.len())
    }
}

/// A changed package, or a deleted repository if the name is empty.
struct Queued {
    id: i64,
    repository: RepositoryId,
    name: String,
}

impl Queued {
    fn read(row: &Row) -> Result<Queued, StoreError> {
        let mut columns = row.columns();
        let (id, repository) = (columns.int("id")?, RepositoryId(columns.int("repository")?));
        Ok(Queued { id, repository, name: columns.text("name")? })
    }
}

/// Removes documents of deleted repositories. Returns the queue rows of repositories that have more
/// of them.
async fn remove_repositories(
    transaction: &mut Transaction,
    queued: &[Queued],
) -> Result<BTreeSet<i64>, StoreError> {
    let mut unfinished = BTreeSet::new();
    for row in queued.iter().filter(|row| row.name.is_empty()) {
        let find = "SELECT id FROM search_documents WHERE repository = $1 LIMIT $2";
        let found = transaction.fetch(find, values![row.repository.0, GOING]).await?;
        let ids: Vec<i64> = found.iter().map(|row| row.columns().int("id")).collect::<Result<_, _>>()?;
        if ids.len() as u64 >= GOING.unsigned_abs() {
            unfinished.insert(row.id);
        }
        remove(transaction, &ids).await?;
    }
    Ok(unfinished)
}

async fn remove(transaction: &mut Transaction, ids: &[i64]) -> Result<(), StoreError> {
    let rows = || ids.iter().map(|id| [Value::from(*id)]).collect();
    transaction.execute_rows("DELETE FROM search_grams WHERE rowid IN (VALUES ", rows(), ")").await?;
    transaction.execute_rows("DELETE FROM search_documents WHERE id IN (VALUES ", rows(), ")").await?;
    Ok(())
}

const FIND: [&str; 2] = [
    "WITH queued (repository, name) AS (VALUES ",
    ") SELECT w.repository, w.name, p.search, r.organization, d.id, d.text_sha256 FROM queued w \
      LEFT JOIN repositories r ON r.id = w.repository AND r.deleted_at IS NULL \
      LEFT JOIN packages p ON p.repository = w.repository AND p.name = w.name \
      LEFT JOIN search_documents d ON d.repository = w.repository AND d.name = w.name",
];

/// Updates the documents of these packages.
async fn index(
    transaction: &mut Transaction,
    packages: BTreeSet<(RepositoryId, &str)>,
) -> Result<(), StoreError> {
    let rows = packages.into_iter().map(|(repository, name)| [Value::from(repository.0), Value::from(name)]);
    let [before, after] = FIND;
    let found = transaction.fetch_each(vec![MultiRow::new(before, rows.collect(), after)]).await?;
    let (mut gone, mut documents, mut grams) = (Vec::new(), Vec::new(), Vec::new());
    for row in found.iter().flatten() {
        let mut columns = row.columns();
        let (repository, name) = (columns.int("repository")?, columns.text("name")?);
        let (text, organization) = (columns.opt_text("search")?, columns.opt_int("organization")?);
        let known = columns.opt_int("id")?;
        let (Some(text), Some(organization)) = (text, organization) else {
            gone.extend(known);
            continue;
        };
        let sha256: [u8; 32] = Sha256::digest(&text).into();
        if known.is_some() && columns.hash("text_sha256")? == sha256 {
            continue;
        }
        gone.extend(known);
        let id = known.unwrap_or_else(new_id);
        let folded = text.split('\n').next().unwrap_or_default().to_owned();
        documents.push([
            Value::from(id),
            Value::from(organization),
            Value::from(repository),
            Value::from(name),
            Value::from(folded),
            Value::from(&sha256),
        ]);
        grams.push([Value::from(id), Value::from(of_text(&text))]);
    }
    remove(transaction, &gone).await?;
    let insert =
        "INSERT INTO search_documents (id, organization, repository, name, folded, text_sha256) VALUES ";
    transaction.execute_rows(insert, documents, "").await?;
    let [before, after] = if transaction.is_shared() {
        [
            "INSERT INTO search_grams (rowid, grams) SELECT n.id, array_to_tsvector(string_to_array(n.grams, ' ')) \
             FROM (VALUES ",
            ") AS n (id, grams)",
        ]
    } else {
        ["INSERT INTO search_grams (rowid, grams) VALUES ", ""]
    };
    transaction.execute_rows(before, grams, after).await.map(drop)
}
