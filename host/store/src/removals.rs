//! Deleted repositories. From the moment of its deletion nobody sees one, and nothing can be committed to it; what it held is
//! removed afterwards, in pieces that keep no publish waiting for long, each durable by itself. So a server that is killed in
//! between loses nothing but the piece it was at, and whichever server finds the repository with nobody at it goes on.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::accounts::{AuditEvent, remember};
use crate::boxed;
use crate::db::{MultiRow, Row, Transaction, Value, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId, new_id};
use crate::store::Store;
use crate::webhooks::{EventKind, Telling, tell};
use crate::writer::sql::{named_by, unname};

/// Rows of one table that go in one transaction.
const PIECE: i64 = 400;
/// How long a claim lasts that the server does not renew, as it does with each piece.
const CLAIM: Duration = Duration::from_secs(5);
/// The pause after a piece, in times of what it took: publishes have the database for most of the time.
const PAUSE: u32 = 3;

/// What is few and tells somebody of the repository, or lets them into it: it goes with the deletion itself.
const AT_ONCE: [&str; 5] = [
    "DELETE FROM token_repositories WHERE repository = $1",
    "DELETE FROM key_owner_repositories WHERE repository = $1",
    "DELETE FROM upstream_credentials WHERE repository = $1",
    "DELETE FROM logins WHERE repository = $1",
    "DELETE FROM deletions WHERE repository = $1",
];

/// What goes in pieces besides the records, what refers to others before them.
const IN_PIECES: [&str; 9] = [
    "DELETE FROM trash WHERE id IN (SELECT id FROM trash WHERE repository = $1 ORDER BY id LIMIT $2)",
    "DELETE FROM files WHERE (repository, name, version, path) IN (SELECT repository, name, version, path FROM files \
     WHERE repository = $1 ORDER BY name, version, path LIMIT $2)",
    "DELETE FROM versions WHERE (repository, name, version) IN (SELECT repository, name, version FROM versions \
     WHERE repository = $1 ORDER BY name, version LIMIT $2)",
    "DELETE FROM packages WHERE (repository, name) IN (SELECT repository, name FROM packages \
     WHERE repository = $1 ORDER BY name LIMIT $2)",
    "DELETE FROM cached_answers WHERE (repository, name) IN (SELECT repository, name FROM cached_answers \
     WHERE repository = $1 ORDER BY name LIMIT $2)",
    "DELETE FROM activity WHERE (repository, name, day) IN (SELECT repository, name, day FROM activity \
     WHERE repository = $1 ORDER BY name, day LIMIT $2)",
    "DELETE FROM fetches WHERE (token, repository, name, version) IN (SELECT token, repository, name, version FROM fetches \
     WHERE repository = $1 LIMIT $2)",
    "DELETE FROM first_seen WHERE (repository, name, version) IN (SELECT repository, name, version FROM first_seen \
     WHERE repository = $1 ORDER BY name, version LIMIT $2)",
    "DELETE FROM leases WHERE (blob, repository) IN (SELECT blob, repository FROM leases \
     WHERE repository = $1 LIMIT $2)",
];

/// What a server is at.
struct Removal {
    repository: RepositoryId,
    claimed_until: i64,
}

impl Store {
    /// Deletes a repository with all that it holds; false when there is none. Its name is free and it is out of everybody's sight
    /// when this returns, and [`Store::remove_deleted`] removes the rest. Its blobs are left to the collection of garbage.
    #[boxed]
    pub async fn delete_repository(
        &self,
        organization: OrganizationId,
        id: RepositoryId,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let sql = "SELECT name, format, kind FROM repositories WHERE organization = $1 AND id = $2 AND deleted_at IS NULL";
        let Some(row) = transaction.fetch_one(sql, values![organization.0, id.0]).await? else {
            return Ok(false);
        };
        // No repository has a name with a slash in it.
        let hide = "UPDATE repositories SET deleted_at = $3, name = $4, members = '[]', revision = revision + 1, \
                    settings_revision = settings_revision + 1 \
                    WHERE organization = $1 AND id = $2 AND deleted_at IS NULL";
        let values = values![organization.0, id.0, self.now_ms(), format!("/{id}")];
        if transaction.execute(hide, values).await? == 0 {
            return Ok(false);
        }
        for sql in AT_ONCE {
            transaction.execute(sql, values![id.0]).await?;
        }
        transaction
            .execute("INSERT INTO removals (repository, claimed_until) VALUES ($1, 0)", values![id.0])
            .await?;
        // What the index of packages has of it goes in pieces too.
        let queue = "INSERT INTO search_queue (id, repository, name) VALUES ($1, $2, '')";
        transaction.execute(queue, values![new_id(), id.0]).await?;
        let by = audit.as_ref().map_or_else(String::new, |event| event.actor.clone());
        let hooks = tell(&mut transaction, organization, told(id, &row, &by)?).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.inner.bell.ring(hooks);
        self.inner.deleted.notify_one();
        Ok(true)
    }

    /// Returns once a repository was deleted through this handle, at once when that was since the last call.
    #[boxed]
    pub async fn until_deleted(&self) {
        self.inner.deleted.notified().await;
    }

    /// Removes what deleted repositories held, one repository after the other; how many are gone for good. One that another server is
    /// at is left to it. `Unavailable` when the database failed: the next call goes on from there, on any server. One that fails holds
    /// up no other.
    #[boxed]
    pub async fn remove_deleted(&self) -> Result<u64, StoreError> {
        let (mut gone, mut failed) = (0, None);
        while let Some(removal) = self.claim_removal().await? {
            let (repository, since) = (removal.repository, Instant::now());
            match self.remove_repository(removal).await {
                Ok(true) => {
                    gone += 1;
                    tracing::info!(%repository, took = ?since.elapsed(), "all that a deleted repository held is removed");
                }
                Ok(false) => {}
                // It is claimed for a while, so the next is another.
                Err(problem) => failed = Some(problem),
            }
        }
        failed.map_or(Ok(gone), Err)
    }

    async fn claim_removal(&self) -> Result<Option<Removal>, StoreError> {
        let sql = "SELECT repository, claimed_until FROM removals WHERE claimed_until <= $1 ORDER BY repository LIMIT 1";
        let rows = self.inner.db.fetch_uncounted(sql, values![self.now_ms()]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let mut columns = row.columns();
        let repository = RepositoryId(columns.int("repository")?);
        let mut removal = Removal { repository, claimed_until: columns.int("claimed_until")? };
        let mut transaction = self.inner.db.begin().await?;
        let claimed = self.renew(&mut transaction, &mut removal).await?;
        transaction.commit().await?;
        Ok(claimed.then_some(removal))
    }

    /// Holds the claim for longer; false when another server has it.
    async fn renew(&self, transaction: &mut Transaction, removal: &mut Removal) -> Result<bool, StoreError> {
        let lasts = i64::try_from(CLAIM.as_millis()).unwrap_or(i64::MAX);
        // Never the same twice: what is compared must differ.
        let until = self.now_ms().saturating_add(lasts).max(removal.claimed_until.saturating_add(1));
        let sql = "UPDATE removals SET claimed_until = $3 WHERE repository = $1 AND claimed_until = $2";
        let values = values![removal.repository.0, removal.claimed_until, until];
        let renewed = transaction.execute(sql, values).await? == 1;
        removal.claimed_until = until;
        Ok(renewed)
    }

    /// False when another server took it over.
    async fn remove_repository(&self, mut removal: Removal) -> Result<bool, StoreError> {
        self.drop_uploads_of(removal.repository).await?;
        for table in std::iter::once(None).chain(IN_PIECES.map(Some)) {
            loop {
                let since = Instant::now();
                let Some(rows) = self.remove_piece(&mut removal, table).await? else { return Ok(false) };
                if rows == 0 {
                    break;
                }
                tokio::time::sleep(since.elapsed() * PAUSE).await;
            }
        }
        // With the row goes what was begun for it at the moment of its deletion: next to nothing, and mostly nothing.
        let sql = "DELETE FROM repositories WHERE id = $1 AND deleted_at IS NOT NULL";
        Ok(self.inner.db.execute(sql, values![removal.repository.0]).await? == 1)
    }

    /// One transaction over rows of a table, of none over records; how many rows went. None: another server has the claim.
    async fn remove_piece(
        &self,
        removal: &mut Removal,
        table: Option<&'static str>,
    ) -> Result<Option<u64>, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        if !self.renew(&mut transaction, removal).await? {
            return Ok(None);
        }
        let repository = removal.repository;
        let rows = match table {
            Some(sql) => transaction.execute(sql, values![repository.0, PIECE]).await?,
            None => remove_records(&mut transaction, repository).await?,
        };
        transaction.commit().await?;
        Ok(Some(rows))
    }
}

/// Removes some records with what they name: what names a blob is found through its record.
async fn remove_records(transaction: &mut Transaction, repository: RepositoryId) -> Result<u64, StoreError> {
    let sql = "SELECT key, blobs FROM records WHERE repository = $1 ORDER BY key LIMIT $2";
    let found = transaction.fetch(sql, values![repository.0, PIECE]).await?;
    let mut last = None;
    let mut names: Vec<[Value; 3]> = Vec::new();
    for row in &found {
        let (key, blobs) = read(row)?;
        let name = |blob: i64| [Value::from(blob), Value::from(repository.0), Value::from(key.as_str())];
        names.extend(blobs.into_iter().map(name));
        last = Some(key);
    }
    let Some(last) = last else { return Ok(0) };
    let unnamed: Vec<MultiRow> = vec![unname(names)];
    transaction.execute_each(unnamed).await?;
    transaction
        .execute("DELETE FROM records WHERE repository = $1 AND key <= $2", values![repository.0, last])
        .await
}

fn read(row: &Row) -> Result<(String, Vec<i64>), StoreError> {
    let mut columns = row.columns();
    Ok((columns.text("key")?, named_by(columns.opt_text("blobs")?.as_deref())?))
}

fn told(id: RepositoryId, row: &Row, by: &str) -> Result<Telling, StoreError> {
    let mut columns = row.columns();
    let (name, format) = (columns.text("name")?, columns.text("format")?);
    let told = json!({"id": id.to_string(), "name": name, "format": format, "kind": columns.text("kind")?});
    let data = json!({"repository": told, "deleted_by": by});
    Ok(Telling {
        kind: EventKind::RepositoryDeleted,
        repository: Some(id),
        about: ("repository", id.0),
        subject: name,
        data,
    })
}
