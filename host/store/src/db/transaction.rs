//! A transaction that may write, and statements over many rows in it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::arrays::{Arguments, postgres_arguments};
use super::clock::Clock;
use super::committed::{Acknowledgement, Announcer, COMMIT, Committed, TOUCHED, outlasting};
use super::counters::Counters;
use super::multi_row::{MultiRow, PART, Prepared, together, united};
use super::pool::{Leased, Pool, Purpose};
use super::sqlite_writer::{Failed, LocalTransaction, Ran};
use super::value::{Row, Sql, Value};
use crate::error::StoreError;

/// Dropped without `commit`, nothing happens.
pub(crate) struct Transaction {
    inner: Inner,
    counters: Arc<Counters>,
    clock: Arc<Clock>,
    /// Whether a request causes it.
    counted: bool,
    /// Who is told of its commit.
    announcer: Option<Arc<dyn Announcer>>,
    /// What it touched of repositories.
    touched: Option<Arc<[u8]>>,
}

/// What a transaction says of itself to the triggers of PostgreSQL: that its process waits for the leases of others after its
/// commit, and what it announces itself. `facts`: what it touches of repositories, the triggers announce the rest; `all`: revisions
/// too, as the writer does.
const ANNOUNCES: &str = "packhouse.announces";

/// What the connections of the writer bring. Each of its statements seeks by keys, and its rows are arrays, so that one plan is good for
/// any: it is made once, and made for tables that grow though they may be empty at the moment.
pub(super) const OF_WRITER: [(&str, &str); 6] = [
    (ANNOUNCES, "all"),
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    // What is off counts as costly, and what is costly would be compiled.
    ("jit", "off"),
];

enum Inner {
    Sqlite(LocalTransaction),
    Postgres(Leased),
}

/// How long a statement of a transaction may take on PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// As it is configured: what a request waits for.
    Ordinary,
    /// 30 times as long: the upkeep.
    Slow,
    /// Without end: a change of the schema.
    Endless,
}

/// How much longer than the statement the upkeep's may take.
const SLOW: u32 = 30;
/// How long the beginning of a transaction may take, which costs the database nothing.
const BEGIN: Duration = Duration::from_secs(3);

impl Patience {
    /// The statements that begin a transaction, in one message. What is set in it holds in it alone, so that a pooler in between
    /// may give each transaction another connection; what its connection brings is not set again.
    fn begin(self, pool: &Pool, purpose: Purpose) -> String {
        let brought = pool.is_bounded();
        let mut set: Vec<(&str, String)> = Vec::new();
        if !brought || self != Patience::Ordinary {
            set.extend(self.bounds(pool));
        }
        match purpose {
            Purpose::Commit if brought => {}
            Purpose::Commit => set.extend(OF_WRITER.map(|(name, value)| (name, value.to_owned()))),
            Purpose::Read | Purpose::Write => set.push((ANNOUNCES, "facts".to_owned())),
        }
        let set: String = set.iter().map(|(name, value)| format!("; SET LOCAL {name} = '{value}'")).collect();
        format!("BEGIN{set}")
    }

    fn bounds(self, pool: &Pool) -> [(&'static str, String); 3] {
        let limits = pool.limits();
        let (statement, lock) = match self {
            Patience::Ordinary => (limits.statement, limits.lock),
            Patience::Slow => (limits.statement * SLOW, limits.lock * SLOW),
            Patience::Endless => (Duration::ZERO, Duration::ZERO),
        };
        let (statement, lock) = (statement.as_millis().to_string(), lock.as_millis().to_string());
        [
            ("statement_timeout", statement.clone()),
            ("lock_timeout", lock),
            ("idle_in_transaction_session_timeout", statement),
        ]
    }

    fn deadline(self, pool: &Pool) -> Duration {
        match self {
            Patience::Ordinary => pool.limits().deadline(),
            Patience::Slow => pool.limits().deadline() * SLOW,
            Patience::Endless => Duration::from_hours(24 * 365),
        }
    }
}

impl Transaction {
    pub(super) fn sqlite(inner: LocalTransaction, counters: Arc<Counters>, clock: Arc<Clock>) -> Transaction {
        Transaction {
            inner: Inner::Sqlite(inner),
            counters,
            clock,
            counted: true,
            announcer: None,
            touched: None,
        }
    }

    /// On a connection that [`begin`] was run on.
    pub(super) fn postgres(
        leased: Leased,
        counters: Arc<Counters>,
        clock: Arc<Clock>,
        announcer: Option<Arc<dyn Announcer>>,
    ) -> Transaction {
        Transaction {
            inner: Inner::Postgres(leased),
            counters,
            clock,
            counted: true,
            announcer,
            touched: None,
        }
    }

    /// The same of the server's own: no request causes its statements, so they are not counted.
    pub(crate) fn uncounted(self) -> Transaction {
        Transaction { counted: false, ..self }
    }

    fn count(&self, statements: u64) {
        if self.counted {
            self.counters.statements_ran(statements);
        }
    }

    /// [`commit_each`](Self::commit_each) will say that it touched this of repositories.
    pub(crate) fn announce(&mut self, touched: Vec<u8>) {
        self.touched = Some(touched.into());
    }

    /// Statements of the database's own, without values: those of the two that are for it.
    pub(super) async fn script(
        &mut self,
        sqlite: &'static str,
        postgres: &'static str,
    ) -> Result<(), StoreError> {
        match &mut self.inner {
            Inner::Sqlite(local) => local.script(sqlite).await,
            Inner::Postgres(_) if postgres.is_empty() => Ok(()),
            Inner::Postgres(leased) => leased.simple(postgres.into()).await.map(drop),
        }
    }

    /// Whether several processes may have one at a time.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.inner, Inner::Postgres(_))
    }

    /// Milliseconds since 1970 by the database's clock, as the database itself tells it outside of a transaction.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// The lock clause of a SELECT whose rows must not change before the transaction ends; empty on SQLite, which has one writer.
    pub(crate) fn for_update(&self) -> &'static str {
        match self.inner {
            Inner::Sqlite(_) => "",
            Inner::Postgres(_) => " FOR NO KEY UPDATE",
        }
    }

    pub(crate) async fn fetch(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, StoreError> {
        self.count(1);
        match &mut self.inner {
            Inner::Sqlite(inner) => {
                let ran = inner.run(sql.into(), values).await?;
                Ok(ran.rows.into_iter().map(Row::Local).collect())
            }
            Inner::Postgres(leased) => fetch_on(leased, sql.into(), values.into(), true).await,
        }
    }

    /// The first row of the answer, if there is one.
    pub(crate) async fn fetch_one(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.fetch(sql, values).await?.into_iter().next())
    }

    /// How many rows it changed.
    pub(crate) async fn execute(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<u64, StoreError> {
        self.count(1);
        match &mut self.inner {
            Inner::Sqlite(inner) => Ok(inner.run(sql.into(), values).await?.changed),
            Inner::Postgres(leased) => leased.execute(sql.into(), postgres_arguments(values)?, true).await,
        }
    }

    /// A statement with `rows` as a list of tuples between `before` and `after`; how many rows it changed.
    pub(crate) async fn execute_rows<const N: usize>(
        &mut self,
        before: &'static str,
        rows: Vec<[Value; N]>,
        after: &'static str,
    ) -> Result<u64, StoreError> {
        self.execute_each(vec![MultiRow::new(before, rows, after)]).await
    }

    /// What each of these finds or returns.
    pub(crate) async fn fetch_each(&mut self, asked: Vec<MultiRow>) -> Result<Vec<Vec<Row>>, StoreError> {
        let mut found = Vec::with_capacity(asked.len());
        if matches!(self.inner, Inner::Sqlite(_)) {
            self.count(parts(&asked));
        }
        if let Inner::Sqlite(inner) = &mut self.inner {
            return Ok(rows(inner.run_each(asked).await?));
        }
        if let Some(one) = united(&asked) {
            let mut rows: Vec<Vec<Row>> = asked.iter().map(|_| Vec::new()).collect();
            for row in self.fetch_prepared(one).await? {
                let part = row.columns().unsigned(PART)?;
                if let Some(of_part) = usize::try_from(part).ok().and_then(|part| rows.get_mut(part)) {
                    of_part.push(row);
                }
            }
            return Ok(rows);
        }
        for statement in asked {
            let mut rows = Vec::new();
            for prepared in statement.prepared() {
                rows.extend(self.fetch_prepared(prepared).await?);
            }
            found.push(rows);
        }
        Ok(found)
    }

    /// Runs these one after the other; how many rows they changed together.
    pub(crate) async fn execute_each(&mut self, changes: Vec<MultiRow>) -> Result<u64, StoreError> {
        if matches!(self.inner, Inner::Sqlite(_)) {
            self.count(parts(&changes));
        }
        if let Inner::Sqlite(inner) = &mut self.inner {
            return Ok(inner.run_each(changes).await?.iter().map(|ran| ran.changed).sum());
        }
        let mut changed = 0;
        for statement in changes {
            for prepared in statement.prepared() {
                changed += self.execute_prepared(prepared).await?;
            }
        }
        Ok(changed)
    }

    /// Runs these and commits: durable when this returns. What several of them change are different rows, unless one is
    /// [`later`](MultiRow::later). Whoever waits for what was written may be told when the acknowledgement ends.
    pub(crate) async fn commit_each(mut self, changes: Vec<MultiRow>) -> Result<Acknowledgement, Failed> {
        if let Inner::Sqlite(inner) = self.inner {
            self.counters.statements_ran(parts(&changes));
            let done = inner.run_each_and_commit(changes).await;
            self.counters.commits.fetch_add(1, Ordering::Release);
            return done.map(|_| Acknowledgement::at_once());
        }
        let touched = self.touched.as_deref().map(|touched| [Value::from(touched)]);
        let touched = MultiRow::new(TOUCHED, touched.into_iter().collect(), "");
        for prepared in together(std::iter::once(touched).chain(changes)) {
            self.execute_prepared(prepared).await.map_err(Failed::Before)?;
        }
        self.commit_unacknowledged().await.map_err(Failed::Commit)
    }

    /// Durable when this returns, and no other server answers from memory any more what it changed. After an error it is not known
    /// whether it is.
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        self.commit_unacknowledged().await?.wait().await;
        Ok(())
    }

    /// Durable when this returns; others may answer what was before until the acknowledgement ends.
    async fn commit_unacknowledged(self) -> Result<Acknowledgement, StoreError> {
        let done = match self.inner {
            Inner::Sqlite(inner) => inner.commit().await.map(|()| Acknowledgement::at_once()),
            Inner::Postgres(mut leased) => {
                // A timeout of the server's would end the wait for its standby, and be told as success.
                let done = leased.simple(COMMIT.into()).await;
                leased.set_in_transaction(done.is_err());
                let committed = done.and_then(|rows| Committed::read(&rows, self.touched));
                committed.map(|committed| match self.announcer {
                    Some(announcer) => announcer.committed(committed),
                    None => outlast(&committed),
                })
            }
        };
        // After a failure too: what is there then is not known.
        self.counters.commits.fetch_add(1, Ordering::Release);
        done
    }

    async fn fetch_prepared(&mut self, prepared: Prepared) -> Result<Vec<Row>, StoreError> {
        self.count(1);
        let Prepared { sql, arguments, keep } = prepared;
        match &mut self.inner {
            Inner::Sqlite(_) => Err(for_another()),
            Inner::Postgres(leased) => fetch_on(leased, sql.into(), arguments, keep).await,
        }
    }

    async fn execute_prepared(&mut self, prepared: Prepared) -> Result<u64, StoreError> {
        self.count(1);
        let Prepared { sql, arguments, keep } = prepared;
        match &mut self.inner {
            Inner::Sqlite(_) => Err(for_another()),
            Inner::Postgres(leased) => leased.execute(sql.into(), postgres_arguments(arguments)?, keep).await,
        }
    }
}

async fn fetch_on(
    leased: &mut Leased,
    sql: Sql,
    arguments: Arguments,
    keep: bool,
) -> Result<Vec<Row>, StoreError> {
    let rows = leased.fetch(sql, postgres_arguments(arguments)?, keep).await?;
    Ok(rows.into_iter().map(Row::Postgres).collect())
}

fn for_another() -> StoreError {
    StoreError::database("a statement for another database")
}

/// Where nobody announces anything, as when the schema is changed: all leases are waited for.
fn outlast(committed: &Committed) -> Acknowledgement {
    let longest = committed.holders.iter().map(|holder| outlasting(holder.lease)).max();
    match longest.filter(|_| committed.is_announced()) {
        Some(longest) => Acknowledgement::after(tokio::time::sleep(longest)),
        None => Acknowledgement::at_once(),
    }
}

/// How many statements these are.
fn parts(statements: &[MultiRow]) -> u64 {
    statements.iter().map(|statement| statement.parts() as u64).sum()
}

fn rows(ran: Vec<Ran>) -> Vec<Vec<Row>> {
    ran.into_iter().map(|ran| ran.rows.into_iter().map(Row::Local).collect()).collect()
}

/// Begins a transaction on a connection.
pub(super) async fn begin(
    leased: &mut Leased,
    pool: &Pool,
    patience: Patience,
    purpose: Purpose,
) -> Result<(), StoreError> {
    leased.set_deadline(BEGIN);
    leased.set_in_transaction(true);
    leased.simple(patience.begin(pool, purpose).into()).await?;
    leased.set_deadline(patience.deadline(pool));
    Ok(())
}

/// Whether the database gave up waiting, for a lock or for the end of the statement: what another holds is held still.
pub(crate) fn is_blocked(error: &StoreError) -> bool {
    matches!(code(error).as_deref(), Some("55P03" | "57014"))
}

/// Whether another process stood in the way, so that the same transaction may well succeed when it is run again: a
/// serialisation failure, a deadlock, or a row gone that was there when it was read.
pub(crate) fn is_retryable(error: &StoreError) -> bool {
    matches!(code(error).as_deref(), Some("40001" | "40P01" | "23503"))
}

fn code(error: &StoreError) -> Option<String> {
    let StoreError::Unavailable { source, .. } = error else { return None };
    let Some(sqlx::Error::Database(problem)) = source.downcast_ref::<sqlx::Error>() else { return None };
    problem.code().map(std::borrow::Cow::into_owned)
}
