//! Writes the rows of a million artifacts in a minute. It bypasses the store, but inserts the rows
//! in the order of publishes. The index pages then become as full as in a store that grew through
//! publishes.

use packhouse_store::{OrganizationId, RepositoryId, StoreError, now_ms};
use sqlx::Executor as _;

/// Inserts for each artifact of the temporary table `n`. `{first}` is one less than the smallest
/// blob id.
const ROWS: [&str; 7] = [
    "INSERT INTO blobs (id, sha256, size, checked, data, digests, created_at) \
     SELECT {first} + i, sha, 4096, 0, {data}, '', {now} FROM n ORDER BY i",
    "INSERT INTO records (repository, key, value, revision, blobs) \
     SELECT {repository}, 'file/' || path, CAST({bytes} AS {blob}), 1, CAST({first} + i AS TEXT) FROM n ORDER BY i",
    "INSERT INTO records (repository, key, value, revision) \
     SELECT {repository}, 'version/org.example:' || lib || ':' || id, CAST('1700000000000' AS {blob}), 1 FROM n ORDER BY i",
    "INSERT INTO record_blobs (blob, repository, key) SELECT {first} + i, {repository}, 'file/' || path FROM n ORDER BY i",
    "INSERT INTO versions (repository, name, version, summary, search, properties, state, shown_at, updated_at) \
     SELECT {repository}, 'org.example:' || lib, id, 'org.example:' || lib || ':' || id, \
     'org.example:' || lib || ' org.example:' || lib || ':' || id, \
     '[[\"group\",\"org.example\"],[\"artifact\",\"' || lib || '\"]]', '', {now} - 1000000000 + i, {now} FROM n ORDER BY i",
    "INSERT INTO files (repository, name, version, path, digest, size, blob) \
     SELECT {repository}, 'org.example:' || lib, id, path, 'sha256:' || hex, 4096, {first} + i FROM n ORDER BY i",
    "INSERT INTO audit_events (id, organization, at, actor, credential, action, subject, address, request_id, allowed, detail) \
     SELECT {first} + i, {organization}, {now}, 'owner@localhost', 'token:3759482716253184', 'publish', 'bench/' || path, \
     '127.0.0.1', '00000000' || id, 1, '{}' FROM n ORDER BY i",
];
/// Inserts the packages, as earlier publishes would have done.
const PACKAGES: &str = "INSERT INTO packages (repository, name, search, updated_at) \
    SELECT DISTINCT {repository}, 'org.example:' || lib, 'org.example:' || lib || ' ', {now} FROM n WHERE true \
    ON CONFLICT DO NOTHING";

/// Writes `count` artifacts of `repository` into the database at `url`. Nothing else may have the
/// database open.
pub(crate) async fn fill(
    url: &str,
    organization: OrganizationId,
    repository: RepositoryId,
    count: u64,
) -> Result<(), StoreError> {
    let now = now_ms();
    // Chooses ids that are smaller than those of later publishes, as if the rows were written a day
    // ago.
    let first = (now / 1000 - 24 * 60 * 60) << 31;
    let sqlite = url.strip_prefix("sqlite://");
    let (blob, bytes, data) = match sqlite {
        Some(_) => ("BLOB", "'{\"sha256\":\"' || hex || '\",\"size\":4096}'", "zeroblob(4096)"),
        None => {
            ("BYTEA", "('{\"sha256\":\"' || hex || '\",\"size\":4096}')", "decode(repeat('00', 4096), 'hex')")
        }
    };
    let text = |sql: &str| {
        sql.replace("{first}", &first.to_string())
            .replace("{now}", &now.to_string())
            .replace("{repository}", &repository.to_string())
            .replace("{organization}", &organization.to_string())
            .replace("{blob}", blob)
            .replace("{bytes}", bytes)
            .replace("{data}", data)
    };
    let statements: Vec<String> = std::iter::once(PACKAGES).chain(ROWS).map(text).collect();
    let wrong = |problem: &dyn std::fmt::Display| StoreError::Invalid(problem.to_string());
    match sqlite {
        Some(file) => in_sqlite(file, count, &statements).map_err(|problem| wrong(&problem)),
        None => in_postgres(url, count, &statements).await.map_err(|problem| wrong(&problem)),
    }
}

fn in_sqlite(file: &str, count: u64, statements: &[String]) -> rusqlite::Result<()> {
    let connection = rusqlite::Connection::open(file)?;
    for (name, value) in [("synchronous", 0_i64), ("cache_size", -3_000_000), ("temp_store", 2)] {
        connection.pragma_update(None, name, value)?;
    }
    connection.execute_batch(
        "CREATE TEMP TABLE n (i INTEGER PRIMARY KEY, id TEXT, lib TEXT, path TEXT, sha BLOB, hex TEXT); BEGIN",
    )?;
    let mut insert = connection.prepare("INSERT INTO n VALUES (?, ?, ?, ?, ?, ?)")?;
    for number in 1..=count {
        let (id, sha) = (rand::random::<u64>(), rand::random::<[u8; 32]>());
        let lib = format!("lib{:03}", id % 1000);
        let path = format!("org/example/{lib}/{id:016x}/lib-{id:016x}.jar");
        let hex: String = sha.iter().map(|byte| format!("{byte:02x}")).collect();
        insert.execute((number.cast_signed(), format!("{id:016x}"), lib, path, sha.as_slice(), hex))?;
    }
    connection.execute_batch("COMMIT")?;
    for statement in statements {
        connection.execute_batch(statement)?;
    }
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

async fn in_postgres(url: &str, count: u64, statements: &[String]) -> Result<(), sqlx::Error> {
    let mut connection = <sqlx::PgConnection as sqlx::Connection>::connect(url).await?;
    let table = format!(
        "CREATE TEMP TABLE n AS SELECT i, id, lib, 'org/example/' || lib || '/' || id || '/lib-' || id || '.jar' AS path, \
         sha, encode(sha, 'hex') AS hex FROM (SELECT i, substr(md5('a' || i), 1, 16) AS id, \
         'lib' || lpad((i * 7919 % 1000)::text, 3, '0') AS lib, sha256(('b' || i)::bytea) AS sha \
         FROM generate_series(1::bigint, {count}) AS i) AS made"
    );
    // Skips foreign key checks and triggers: the rows are consistent with each other.
    let before = ["SET session_replication_role = replica".to_owned(), table, "ANALYZE n".to_owned()];
    let after = ["ANALYZE".to_owned(), "CHECKPOINT".to_owned()];
    for statement in before.iter().chain(statements).chain(&after) {
        connection.execute(sqlx::AssertSqlSafe(statement.as_str())).await?;
    }
    Ok(())
}
