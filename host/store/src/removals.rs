//! Deleted repositories. After its deletion a repository is invisible, and commits to it are
//! impossible. A server then removes its content in small pieces that block publishes only briefly.
//! Each piece is durable by itself. A killed server loses only its current piece, and any server
//! can continue once the claim has expired.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::accounts::{AuditEvent, remember};
use crate::boxed;
use crate::db::{MultiRow, Row, Transaction, Value, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId, new_id};
use crate::store::Store;
use crate::webhooks::{EventKind, NewWebhookEvent, write_event};
use crate::writer::sql::{named_by, unname};

/// Rows of one table in one transaction.
const PIECE: i64 = 400;
/// Lifetime of a claim that is not renewed. Each piece renews it.
const CLAIM: Duration = Duration::from_secs(5);
/// Pause after a piece, as a multiple of its duration. Publishes thus have the database for most of
/// the time.
const PAUSE: u32 = 3;

/// Statements for small tables that give access to the repository or list it. The transaction that
/// deletes the repository runs them.
const AT_ONCE: [&str; 5] = [
    "DELETE FROM token_repositories WHERE repository = $1",
    "DELETE FROM key_owner_repositories WHERE repository = $1",
    "DELETE FROM upstream_credentials WHERE repository = $1",
    "DELETE FROM logins WHERE repository = $1",
    "DELETE FROM deletions WHERE repository = $1",
];

/// Tables that are deleted in pieces besides the records. Referring tables come before referenced
/// ones.
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

/// A removal that this server works on.
struct Removal {
    repository: RepositoryId,
    claimed_until: i64,
}

impl Store {
    /// Deletes a repository and everything in it; returns false if it does not exist. On return the
    /// name is free and the repository is invisible. [`Store::remove_deleted`] removes the rest,
    /// and garbage collection the blobs.
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
        // The new name contains a slash, so it cannot collide with the name of another repository.
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
        // Its part of the package index is also removed in pieces.
        let queue = "INSERT INTO search_queue (id, repository, name) VALUES ($1, $2, '')";
        transaction.execute(queue, values![new_id(), id.0]).await?;
        let by = audit.as_ref().map_or_else(String::new, |event| event.actor.clone());
        let hooks = write_event(&mut transaction, organization, deletion_event(id, &row, &by)?).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.inner.delivery_notifier.notify(hooks);
        self.inner.deleted.notify_one();
        Ok(true)
    }

    /// Waits until a repository is deleted through this handle; returns immediately if that
    /// happened since the last call.
    #[boxed]
    pub async fn until_deleted(&self) {
        self.inner.deleted.notified().await;
    }

    /// Removes the content of deleted repositories one after the other; returns how many are
    /// completely removed. Repositories claimed by another server are skipped. `Unavailable` if the
    /// database failed; the next call continues on any server. A failing repository does not block
    /// others.
    #[boxed]
    pub async fn remove_deleted(&self) -> Result<u64, StoreError> {
        let (mut gone, mut failed) = (0, None);
        while let Some(removal) = self.claim_removal().await? {
            let (repository, since) = (removal.repository, Instant::now());
            match self.remove_repository(removal).await {
                Ok(true) => {
                    gone += 1;
                    tracing::info!(%repository, took = ?since.elapsed(), "removed the content of a deleted repository");
                }
                Ok(false) => {}
                // The claim of this repository has not expired yet, so the loop continues with
                // another one.
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

    /// Renews the claim; returns false if another server has it.
    async fn renew(&self, transaction: &mut Transaction, removal: &mut Removal) -> Result<bool, StoreError> {
        let lasts = i64::try_from(CLAIM.as_millis()).unwrap_or(i64::MAX);
        // The new value must differ from the old one, because a later renewal compares it.
        let until = self.now_ms().saturating_add(lasts).max(removal.claimed_until.saturating_add(1));
        let sql = "UPDATE removals SET claimed_until = $3 WHERE repository = $1 AND claimed_until = $2";
        let values = values![removal.repository.0, removal.claimed_until, until];
        let renewed = transaction.execute(sql, values).await? == 1;
        removal.claimed_until = until;
        Ok(renewed)
    }

    /// Removes a repository; false if another server took over the claim.
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
        // This also deletes rows that were added at the moment of the deletion, usually none.
        let sql = "DELETE FROM repositories WHERE id = $1 AND deleted_at IS NOT NULL";
        Ok(self.inner.db.execute(sql, values![removal.repository.0]).await? == 1)
    }

    /// Removes a piece of a table, or of the records if `table` is `None`. Returns the number of
    /// rows, or `None` if another server has the claim.
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

/// Removes some records and the references to their blobs, which are found through the record.
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

fn deletion_event(id: RepositoryId, row: &Row, by: &str) -> Result<NewWebhookEvent, StoreError> {
    let mut columns = row.columns();
    let (name, format) = (columns.text("name")?, columns.text("format")?);
    let repository =
        json!({"id": id.to_string(), "name": name, "format": format, "kind": columns.text("kind")?});
    let data = json!({"repository": repository, "deleted_by": by});
    Ok(NewWebhookEvent {
        kind: EventKind::RepositoryDeleted,
        repository: Some(id),
        about: ("repository", id.0),
        subject: name,
        data,
    })
}
