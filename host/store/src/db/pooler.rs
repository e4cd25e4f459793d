//! Whether what stands in front of PostgreSQL lets a program prepare its statements, as this one does.

use sqlx::{Connection, PgConnection};

use super::servers::Servers;

/// Why one that does not cannot be used, and what to do.
pub(crate) const MIXES_STATEMENTS: &str = "a pooler in front of PostgreSQL gives each transaction another connection and does not keep apart what its clients have prepared: \
     set its max_prepared_statements (PgBouncer 1.21 and later), let it give a connection to a session (pool_mode = session), or name \
     PostgreSQL itself";

/// `duplicate_prepared_statement`, `invalid_sql_statement_name`, and what a statement of another's shape ends in: `protocol_violation`.
const MIXED: [&str; 3] = ["42P05", "26000", "08P01"];
/// A pooler gives what it got back last; where it does not, another round meets it.
const ROUNDS: i32 = 3;

/// Prepares, on two connections in turn, statements that both count from one. Errors are those of the connections themselves.
pub(crate) async fn keeps_statements_apart(servers: &Servers) -> Result<bool, sqlx::Error> {
    let (mut one, mut other) = (servers.connect().await?, servers.connect().await?);
    let mut apart = Ok(true);
    for round in 0..ROUNDS {
        for (connection, sql) in [(&mut one, "SELECT $1::INTEGER"), (&mut other, "SELECT $1::INTEGER + 0")] {
            apart = apart.and(prepares(connection, sql, round).await);
        }
        if !matches!(apart, Ok(true)) {
            break;
        }
    }
    let _ = (one.close().await, other.close().await);
    apart
}

async fn prepares(connection: &mut PgConnection, sql: &'static str, value: i32) -> Result<bool, sqlx::Error> {
    match sqlx::query_scalar::<_, i32>(sql).bind(value).fetch_one(connection).await {
        Ok(answer) => Ok(answer == value),
        Err(error) => {
            let code = error.as_database_error().and_then(|error| error.code());
            if code.is_some_and(|code| MIXED.contains(&code.as_ref())) { Ok(false) } else { Err(error) }
        }
    }
}
