//! Test whether a pooler in front of PostgreSQL supports prepared statements, which this program
//! needs.

use sqlx::{Connection, PgConnection};

use super::servers::Servers;

/// Error message for a pooler without that support.
pub(crate) const MIXES_STATEMENTS: &str = "the pooler in front of PostgreSQL gives each transaction \
    another connection and mixes up the prepared statements of its clients: set its max_prepared_statements \
    (PgBouncer 1.21 and later), use session pooling (pool_mode = session), or connect to PostgreSQL directly";

/// SQLSTATE codes of the failure: `duplicate_prepared_statement`, `invalid_sql_statement_name`, and
/// `protocol_violation` for a statement with other parameters.
const MIXED: [&str; 3] = ["42P05", "26000", "08P01"];
/// Number of rounds. Most poolers hand out the connection that was returned last, so one round
/// finds the problem. Further rounds find it with other poolers.
const ROUNDS: i32 = 3;

/// Prepares statements on two connections in turn, whose statement names both count from one.
/// Errors are those of the connections.
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
