//! A transaction that may write, and statements over many rows in it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sqlx::{AssertSqlSafe, Postgres, Sqlite};

use super::over_rows::{OverRows, Script};
use super::value::{postgres_arguments, sqlite_arguments};
use super::{Counters, Row, Sql, Value};
use crate::error::StoreError;

/// Dropped without `commit`, nothing happens.
pub(crate) struct Transaction {
    inner: Inner,
    counters: Arc<Counters>,
}

enum Inner {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(sqlx::Transaction<'static, Postgres>),
}

impl Transaction {
    pub(super) fn sqlite(inner: sqlx::Transaction<'static, Sqlite>, counters: Arc<Counters>) -> Transaction {
        Transaction { inner: Inner::Sqlite(inner), counters }
    }

    pub(super) fn postgres(
        inner: sqlx::Transaction<'static, Postgres>,
        counters: Arc<Counters>,
    ) -> Transaction {
        Transaction { inner: Inner::Postgres(inner), counters }
    }

    /// What a SELECT ends with so that nobody else changes its rows meanwhile: nothing on SQLite, where nobody else can.
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
        self.fetch_prepared(sql.into(), values, true).await
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
        self.execute_prepared(sql.into(), values, true).await
    }

    /// A statement with `rows` as a list of tuples between `before` and `after`; how many rows it changed.
    pub(crate) async fn execute_rows<const N: usize>(
        &mut self,
        before: &'static str,
        rows: Vec<[Value; N]>,
        after: &'static str,
    ) -> Result<u64, StoreError> {
        self.execute_each(vec![OverRows::new(before, rows, after)]).await
    }

    /// What each of these finds. SQLite is asked for all at once: to hand a statement to its thread costs more than most
    /// statements do.
    pub(crate) async fn fetch_each(&mut self, asked: Vec<OverRows>) -> Result<Vec<Vec<Row>>, StoreError> {
        let mut found = Vec::with_capacity(asked.len());
        if let Inner::Sqlite(inner) = &mut self.inner {
            let parts: Vec<usize> = asked.iter().map(OverRows::parts).collect();
            let script = Script::of(asked);
            self.counters.statements_ran(script.statements);
            let mut answers = script.fetch(inner).await?.into_iter();
            for parts in parts {
                found.push(answers.by_ref().take(parts).flatten().collect());
            }
            return Ok(found);
        }
        for statement in asked {
            let mut rows = Vec::new();
            for (sql, values, keep) in statement.numbered() {
                rows.extend(self.fetch_prepared(sql.into(), values, keep).await?);
            }
            found.push(rows);
        }
        Ok(found)
    }

    /// Runs these one after the other; how many rows they changed together.
    pub(crate) async fn execute_each(&mut self, changes: Vec<OverRows>) -> Result<u64, StoreError> {
        if let Inner::Sqlite(inner) = &mut self.inner {
            let script = Script::of(changes);
            self.counters.statements_ran(script.statements);
            return script.execute(inner).await;
        }
        let mut changed = 0;
        for statement in changes {
            for (sql, values, keep) in statement.numbered() {
                changed += self.execute_prepared(sql.into(), values, keep).await?;
            }
        }
        Ok(changed)
    }

    /// Durable when this returns. After an error it is not known whether it is.
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        let done = match self.inner {
            Inner::Sqlite(inner) => inner.commit().await,
            Inner::Postgres(inner) => inner.commit().await,
        };
        // After a failure too: what is there then is not known.
        self.counters.commits.fetch_add(1, Ordering::Release);
        done.map_err(StoreError::database)
    }

    async fn fetch_prepared(
        &mut self,
        sql: Sql,
        values: Vec<Value>,
        keep: bool,
    ) -> Result<Vec<Row>, StoreError> {
        self.counters.statement();
        let sql = AssertSqlSafe(sql);
        match &mut self.inner {
            Inner::Sqlite(inner) => {
                let query = sqlx::query_with(sql, sqlite_arguments(values)?).persistent(keep);
                let rows = query.fetch_all(&mut **inner).await.map_err(StoreError::database)?;
                Ok(rows.into_iter().map(Row::Sqlite).collect())
            }
            Inner::Postgres(inner) => {
                let query = sqlx::query_with(sql, postgres_arguments(values)?).persistent(keep);
                let rows = query.fetch_all(&mut **inner).await.map_err(StoreError::database)?;
                Ok(rows.into_iter().map(Row::Postgres).collect())
            }
        }
    }

    async fn execute_prepared(
        &mut self,
        sql: Sql,
        values: Vec<Value>,
        keep: bool,
    ) -> Result<u64, StoreError> {
        self.counters.statement();
        let sql = AssertSqlSafe(sql);
        match &mut self.inner {
            Inner::Sqlite(inner) => {
                let query = sqlx::query_with(sql, sqlite_arguments(values)?).persistent(keep);
                Ok(query.execute(&mut **inner).await.map_err(StoreError::database)?.rows_affected())
            }
            Inner::Postgres(inner) => {
                let query = sqlx::query_with(sql, postgres_arguments(values)?).persistent(keep);
                Ok(query.execute(&mut **inner).await.map_err(StoreError::database)?.rows_affected())
            }
        }
    }
}

/// Whether another process stood in the way, so that the same transaction may well succeed when it is run again: a
/// serialisation failure, a deadlock, or a row gone that was there when it was read.
pub(crate) fn is_retryable(error: &StoreError) -> bool {
    let StoreError::Unavailable { source, .. } = error else { return false };
    let Some(sqlx::Error::Database(problem)) = source.downcast_ref::<sqlx::Error>() else { return false };
    matches!(problem.code().as_deref(), Some("40001" | "40P01" | "23503"))
}
