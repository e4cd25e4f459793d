//! What a commit to PostgreSQL came to, and who is told of it: docs/LEASES.md. It goes to the database in the message that commits, so
//! it costs no round trip.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use crate::error::StoreError;

/// How much longer than a lease lasts by its holder's clock others wait for its end by theirs, in percent: the two clocks may differ in
/// rate by a tenth either way.
const LONGER: u32 = 125;

/// For how long others wait for the end of a lease of this length.
pub(crate) fn outlasting(lease: Duration) -> Duration {
    lease * LONGER / 100
}

/// A server that holds a lease.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Holder {
    pub(crate) id: String,
    /// Another one each time that it is renewed.
    pub(crate) renewal: i64,
    pub(crate) lease: Duration,
}

/// A durable commit.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    /// Of the transaction; none when it wrote nothing.
    pub(crate) xid: Option<u64>,
    /// What it changed of what look-ups answer, as the triggers say it.
    pub(crate) facts: String,
    /// What it touched of repositories, as the writer says it.
    pub(crate) touched: Option<Arc<[u8]>>,
    /// The servers that held a lease after the commit.
    pub(crate) holders: Vec<Holder>,
}

/// Who is told of each commit.
pub(crate) trait Announcer: Send + Sync {
    /// Drops at once what the commit made wrong in this process, and begins to tell the others.
    fn committed(&self, committed: Committed) -> Acknowledgement;
}

/// Ends when no server can answer from memory any more what a commit has changed. Dropped, the others are told all the same.
#[must_use]
pub(crate) struct Acknowledgement {
    xid: Option<u64>,
    waiting: Option<BoxFuture<'static, ()>>,
}

impl Acknowledgement {
    /// Nobody has to be waited for.
    pub(crate) fn at_once() -> Acknowledgement {
        Acknowledgement { xid: None, waiting: None }
    }

    pub(crate) fn after(waiting: impl Future<Output = ()> + Send + 'static) -> Acknowledgement {
        Acknowledgement { xid: None, waiting: Some(Box::pin(waiting)) }
    }

    /// The transaction's number, where it has one.
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

/// What is touched is written by this, with the changes themselves.
pub(super) const TOUCHED: &str = "INSERT INTO announced_changes (touched) VALUES ";

/// The statements that commit, in one message: the transaction and its facts are asked for, and after the commit, not before, who holds
/// a lease: whoever begins to hold one later reads what was committed. A timeout of the server's would end the wait for its standby, and
/// be told as success.
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
                committed.holders.extend(one.and_then(|id| Holder::read(id, &other)));
            }
        }
        Ok(committed)
    }

    /// Whether anybody has to know.
    pub(crate) fn is_announced(&self) -> bool {
        !self.facts.trim().is_empty() || self.touched.is_some()
    }
}

impl Holder {
    /// `rest` is the number of the renewal and the lease's length in ms.
    pub(crate) fn read(id: String, rest: &str) -> Option<Holder> {
        let (renewal, lease) = rest.split_once(' ')?;
        let lease = Duration::from_millis(lease.parse().ok()?);
        Some(Holder { id, renewal: renewal.parse().ok()?, lease })
    }
}
