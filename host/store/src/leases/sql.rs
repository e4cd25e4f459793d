//! Statements of a lease, each one transaction.
//!
//! Transactions of older program versions do not wait for leases; they hold the lock [`LOCK`]
//! shared. A lease is granted or renewed only under the exclusive lock, and only if the lock is
//! free at that moment.

use sqlx::postgres::{PgListener, PgRow};
use sqlx::{AssertSqlSafe, Row as _};

use super::notice::TransactionChange;
use super::position::Position;
use crate::db::{FEATURES, LeaseHolder};
use crate::error::StoreError;

/// Key of an advisory lock; the value is arbitrary, but must equal the one in the schema.
const LOCK: i64 = 8_097_864_527;

/// State that a statement read: position, lease, other holders and changes.
pub(super) struct LeaseStatus {
    pub(super) position: Position,
    /// True if the lease was granted or renewed; `None` if another transaction held the lock at the
    /// moment.
    pub(super) granted: Option<bool>,
    pub(super) others: Vec<LeaseHolder>,
    pub(super) changes: Vec<TransactionChange>,
}

// The insert is flushed to disk: if a crash of the database lost the row, commits would not wait
// for this lease.
const JOIN: &str = "WITH locked AS MATERIALIZED (\
        SELECT pg_try_advisory_xact_lock($2) AS got, set_config('synchronous_commit', 'on', true) AS flushed), \
    joined AS (INSERT INTO server_leases (id, renewal, lease_ms, features) SELECT $1, $3, $4, $5 FROM locked \
        WHERE got AND NOT EXISTS (SELECT 1 FROM announced_changes WHERE facts = '!') RETURNING id) \
    SELECT 'lease' AS kind, CAST(pg_current_snapshot() AS TEXT) AS one, \
        CASE WHEN got THEN (SELECT CAST(count(*) AS TEXT) FROM joined) ELSE 'busy' END AS other, \
        CAST(NULL AS BYTEA) AS touched, flushed FROM locked";

const OTHERS: &str =
    "SELECT 'holder', id, renewal || ' ' || lease_ms, NULL FROM server_leases WHERE id <> $1";

/// Changes that neither the snapshot `$2` nor the list `$3` contains.
const CHANGES: &str = "SELECT 'change', CAST(xid AS TEXT), facts, touched FROM announced_changes \
    WHERE xid >= pg_snapshot_xmin(CAST(CAST($2 AS TEXT) AS pg_snapshot)) \
    AND NOT pg_visible_in_snapshot(xid, CAST(CAST($2 AS TEXT) AS pg_snapshot)) \
    AND NOT (CAST(xid AS TEXT) = ANY(CAST($3 AS TEXT[])))";

const RENEW: &str = "WITH locked AS MATERIALIZED (SELECT pg_try_advisory_xact_lock($4) AS got), \
    renewed AS (UPDATE server_leases SET renewal = $5 FROM locked WHERE id = $1 AND got RETURNING id) \
    SELECT 'lease' AS kind, CAST(pg_current_snapshot() AS TEXT) AS one, \
        CASE WHEN got THEN (SELECT CAST(count(*) AS TEXT) FROM renewed) ELSE 'busy' END AS other, \
        CAST(NULL AS BYTEA) AS touched FROM locked";

const POSITION: &str = "SELECT 'lease' AS kind, CAST(pg_current_snapshot() AS TEXT) AS one, 'busy' AS other, \
    CAST(NULL AS BYTEA) AS touched";

/// Takes a lease, if the lock is free.
pub(super) async fn join(
    listener: &mut PgListener,
    id: &str,
    renewal: i64,
    lease_ms: i64,
) -> Result<LeaseStatus, StoreError> {
    let query = sqlx::query(JOIN).bind(id).bind(LOCK).bind(renewal).bind(lease_ms).bind(FEATURES);
    status(&query.fetch_all(listener).await.map_err(StoreError::database)?)
}

/// Renews the lease and reads new changes.
pub(super) async fn renew(
    listener: &mut PgListener,
    id: &str,
    renewal: i64,
    position: &Position,
    known: Vec<String>,
) -> Result<LeaseStatus, StoreError> {
    let sql = AssertSqlSafe(format!("{RENEW} UNION ALL {OTHERS} UNION ALL {CHANGES}"));
    let query = sqlx::query(sql).bind(id).bind(position.text()).bind(known).bind(LOCK).bind(renewal);
    status(&query.fetch_all(listener).await.map_err(StoreError::database)?)
}

/// Reads changes after this position, without renewing the lease.
pub(super) async fn catch_up(
    listener: &mut PgListener,
    id: &str,
    position: &Position,
    known: Vec<String>,
) -> Result<LeaseStatus, StoreError> {
    let sql = AssertSqlSafe(format!("{POSITION} UNION ALL {OTHERS} UNION ALL {CHANGES}"));
    let query = sqlx::query(sql).bind(id).bind(position.text()).bind(known);
    status(&query.fetch_all(listener).await.map_err(StoreError::database)?)
}

/// Reads which transactions have ended.
pub(super) async fn position(listener: &mut PgListener) -> Result<LeaseStatus, StoreError> {
    status(&sqlx::query(POSITION).fetch_all(listener).await.map_err(StoreError::database)?)
}

/// Removes the row of a server whose lease has expired. Returns false if the lease was renewed
/// meanwhile.
pub(super) async fn remove(listener: &mut PgListener, holder: &LeaseHolder) -> Result<bool, StoreError> {
    let sql = "DELETE FROM server_leases WHERE id = $1 AND renewal = $2";
    let done = sqlx::query(sql).bind(&holder.id).bind(holder.renewal).execute(listener).await;
    done.map(|done| done.rows_affected() > 0).map_err(StoreError::database)
}

pub(super) async fn leave(listener: &mut PgListener, id: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM server_leases WHERE id = $1";
    sqlx::query(sql).bind(id).execute(listener).await.map(drop).map_err(StoreError::database)
}

/// Removes the changes that this snapshot contains, and expired claims of upstream fetches.
pub(super) async fn prune(listener: &mut PgListener, position: &Position) -> Result<(), StoreError> {
    let sql = "DELETE FROM announced_changes WHERE xid < pg_snapshot_xmax(CAST(CAST($1 AS TEXT) AS pg_snapshot)) \
               AND pg_visible_in_snapshot(xid, CAST(CAST($1 AS TEXT) AS pg_snapshot))";
    sqlx::query(sql).bind(position.text()).execute(&mut *listener).await.map_err(StoreError::database)?;
    let fetches = "DELETE FROM upstream_fetches WHERE until < CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)";
    sqlx::query(fetches).execute(listener).await.map(drop).map_err(StoreError::database)
}

/// Sends notices, each as channel and text.
pub(super) async fn notify(
    listener: &mut PgListener,
    notices: Vec<(String, String)>,
) -> Result<(), StoreError> {
    let (channels, texts): (Vec<String>, Vec<String>) = notices.into_iter().unzip();
    let sql = "SELECT count(pg_notify(n.channel, n.text)) FROM unnest(CAST($1 AS TEXT[]), CAST($2 AS TEXT[])) \
               AS n (channel, text)";
    let query = sqlx::query(sql).bind(channels).bind(texts);
    query.fetch_all(listener).await.map(drop).map_err(StoreError::database)
}

fn status(rows: &[PgRow]) -> Result<LeaseStatus, StoreError> {
    let strange = || StoreError::Corrupt("the database's response about leases".to_owned());
    let (mut position, mut granted, mut others, mut changes) = (None, None, Vec::new(), Vec::new());
    for row in rows {
        let text = |name| row.try_get::<Option<String>, _>(name).map_err(StoreError::database);
        let (one, other) = (text("one")?.ok_or_else(strange)?, text("other")?.unwrap_or_default());
        match text("kind")?.as_deref() {
            Some("lease") => {
                position = Position::read(one);
                granted = (other != "busy").then(|| other == "1");
            }
            Some("holder") => others.extend(LeaseHolder::read(one, &other)),
            _ => {
                let touched = row.try_get("touched").map_err(StoreError::database)?;
                changes.push(TransactionChange { facts: other, touched });
            }
        }
    }
    Ok(LeaseStatus { position: position.ok_or_else(strange)?, granted, others, changes })
}
