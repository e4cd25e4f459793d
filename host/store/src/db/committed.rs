//! Outcome of a commit to PostgreSQL, and its listener (docs/explanation/leases.md). The outcome is
//! read in the same message that commits, so it costs no extra round trip.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use crate::error::StoreError;

/// Time to wait for the end of another server's lease, in percent of the lease's length. Each of
/// the two clocks may run up to a tenth too fast or too slow.
const LONGER: u32 = 125;

/// Returns how long to wait until a lease of this length has certainly ended on its holder's clock.
pub(crate) fn max_lease_wait(lease: Duration) -> Duration {
    lease * LONGER / 100
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct LeaseHolder {
    pub(crate) id: String,
    /// Number of the renewal; each renewal has a new one.
    pub(crate) renewal: i64,
    pub(crate) lease: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Committed {
    /// Transaction number; `None` if nothing was written.
    pub(crate) xid: Option<u64>,
    /// Changes that affect look-ups, as written by the triggers.
    pub(crate) facts: String,
    /// Changes to repositories, as encoded by the writer.
    pub(crate) touched: Option<Arc<[u8]>>,
    /// Servers that held a lease after the commit.
    pub(crate) holders: Vec<LeaseHolder>,
}

pub(crate) trait Announcer: Send + Sync {
    /// Drops the answers cached in this process that the commit made wrong, and begins to notify
    /// the other servers.
    fn committed(&self, committed: Committed) -> Acknowledgement;
}

/// Future that completes when no server can still answer from its cache with data from before a
/// commit. The other servers are notified even if the caller drops it.
#[must_use]
pub(crate) struct Acknowledgement {
    xid: Option<u64>,
    waiting: Option<BoxFuture<'static, ()>>,
}

impl Acknowledgement {
    /// Acknowledgement that need not wait for any server.
    pub(crate) fn at_once() -> Acknowledgement {
        Acknowledgement { xid: None, waiting: None }
    }

    pub(crate) fn after(waiting: impl Future<Output = ()> + Send + 'static) -> Acknowledgement {
        Acknowledgement { xid: None, waiting: Some(Box::pin(waiting)) }
    }

    pub(crate) fn of(self, xid: Option<u64>) -> Acknowledgement {
        Acknowledgement { xid, ..self }
    }

    pub(crate) fn xid(&self) -> Option<u64> {
        self.xid
    }

    pub(crate) fn is_at_once(&self) -> bool {
        self.waiting.is_none()
    }

    pub(crate) async fn wait(self) {
        if let Some(waiting) = self.waiting {
            waiting.await;
        }
    }
}

/// SQL prefix that stores the encoded changes of a commit, in the same transaction.
pub(super) const TOUCHED: &str = "INSERT INTO announced_changes (touched) VALUES ";

/// Statements that commit, sent in one message. They return the transaction's number and changes,
/// and the lease holders. The holders are read after the commit, because a server that gets its
/// lease later already reads the committed data. The statement timeout is off: it would end the
/// wait for the standby, and PostgreSQL would still report success.
pub(super) const COMMIT: &str = "SELECT 'commit' AS kind, CAST(pg_current_xact_id_if_assigned() AS TEXT) AS one, \
     current_setting('packhouse.facts', true) AS other, set_config('statement_timeout', '0', true); \
     COMMIT; \
     SELECT 'holder' AS kind, id AS one, renewal || ' ' || lease_ms AS other FROM server_leases";

impl Committed {
    pub(super) fn read(rows: &[PgRow], touched: Option<Arc<[u8]>>) -> Result<Committed, StoreError> {
        let mut committed = Committed { touched, ..Committed::default() };
        for row in rows {
            let text = |name| row.try_get::<Option<String>, _>(name).map_err(StoreError::database);
            let (one, other) = (text("one")?, text("other")?.unwrap_or_default());
            if text("kind")?.as_deref() == Some("commit") {
                committed.xid = one.and_then(|xid| xid.parse().ok());
                committed.facts = other;
            } else {
                committed.holders.extend(one.and_then(|id| LeaseHolder::read(id, &other)));
            }
        }
        Ok(committed)
    }

    /// Returns whether other servers must be notified.
    pub(crate) fn is_announced(&self) -> bool {
        !self.facts.trim().is_empty() || self.touched.is_some()
    }
}

impl LeaseHolder {
    /// Parses a holder. `rest` is the number of the renewal and the lease's length in ms.
    pub(crate) fn read(id: String, rest: &str) -> Option<LeaseHolder> {
        let (renewal, lease) = rest.split_once(' ')?;
        let lease = Duration::from_millis(lease.parse().ok()?);
        Some(LeaseHolder { id, renewal: renewal.parse().ok()?, lease })
    }
}
