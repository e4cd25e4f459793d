//! Connection to the database and migration of its schema.

use std::time::Duration;

use sqlx::ConnectOptions;
use tracing::log::LevelFilter;

use super::checkpoints::Checkpoints;
use super::database::{Database, Engine};
use super::generation::WalIndex;
use super::migrate::{OpenPurpose, migrate};
use super::older_servers::APPLICATION;
use super::pool::{BOUNDED, Pool};
use super::pooler::{MIXES_STATEMENTS, keeps_statements_apart};
use super::servers::Servers;
use super::sqlite_readers::SqliteReaders;
use super::sqlite_writer::SqliteWriter;
use super::transaction::WRITER_OPTIONS;
use crate::config::{DatabaseLimits, StoreConfig};
use crate::error::StoreError;
use crate::sqlite::{STATEMENTS, sqlite_file};

impl Database {
    /// Connects and migrates the schema to the newest step.
    pub(crate) async fn open(config: &StoreConfig) -> Result<Database, StoreError> {
        Database::open_for(config, OpenPurpose::InUse).await
    }

    /// Connects for this purpose and migrates the schema accordingly.
    pub(crate) async fn open_for(
        config: &StoreConfig,
        purpose: OpenPurpose<'_>,
    ) -> Result<Database, StoreError> {
        let mut database = Database::new(connect(config).await?, config.database);
        database.sync_clock().await?;
        database.sync_clock_periodically();
        migrate(&database, purpose).await?;
        // The file certainly exists after the migration.
        if let Engine::Sqlite { header, writer, .. } = &mut database.engine {
            let file = sqlite_file(&config.database_url)?;
            *header = WalIndex::open(&file)?;
            if let Some(header) = header
                && let Some(checkpoints) = Checkpoints::new(&file, header.clone())?
            {
                writer.checkpoint_with(checkpoints).await?;
            }
        }
        Ok(database)
    }
}

async fn connect(config: &StoreConfig) -> Result<Engine, StoreError> {
    let url = &config.database_url;
    if url.starts_with("sqlite:") {
        return sqlite(config).await;
    }
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return postgres(url, config.database).await;
    }
    Err(StoreError::Invalid("the database URL must begin with sqlite:// or postgres://".to_owned()))
}

async fn sqlite(config: &StoreConfig) -> Result<Engine, StoreError> {
    let file = sqlite_file(&config.database_url)?;
    if let Some(folder) = file.parent() {
        tokio::fs::create_dir_all(folder).await.map_err(StoreError::database)?;
    }
    let writer = SqliteWriter::open(&file).await?;
    let readers = SqliteReaders::open(&file).await?;
    Ok(Engine::Sqlite { writer, readers, header: None })
}

async fn postgres(url: &str, limits: DatabaseLimits) -> Result<Engine, StoreError> {
    let servers = Servers::parse(url)?.with(|options| {
        options
            .application_name(APPLICATION)
            .extra_float_digits(None)
            .statement_cache_capacity(STATEMENTS)
            .log_statements(LevelFilter::Trace)
            .log_slow_statements(LevelFilter::Debug, Duration::from_secs(1))
    });
    let bounded = servers.with(|options| options.options(bounds(limits)));
    let writer = bounded.with(|options| options.options(WRITER_OPTIONS));
    let pool = match Pool::open(bounded, writer, limits).await {
        // A pooler between this server and PostgreSQL rejects startup options. Transactions then
        // set their own limits.
        Err(problem) if refuses_options(&problem) => {
            tracing::info!(
                "the database does not accept options at the start of a connection; they are left out"
            );
            let writer = servers.with(|options| options);
            Pool::open(servers, writer, limits).await?
        }
        opened => opened?,
    };
    if !keeps_statements_apart(&pool.servers()).await.map_err(StoreError::database)? {
        return Err(StoreError::Invalid(MIXES_STATEMENTS.to_owned()));
    }
    Ok(Engine::Postgres(pool))
}

/// Startup options of each connection. They make PostgreSQL end an idle transaction, a statement
/// whose client is gone, and a connection on which nothing arrives.
fn bounds(limits: DatabaseLimits) -> [(&'static str, String); 9] {
    let (name, value) = BOUNDED;
    [
        (name, value.to_owned()),
        ("statement_timeout", limits.statement.as_millis().to_string()),
        ("lock_timeout", limits.lock.as_millis().to_string()),
        ("idle_in_transaction_session_timeout", limits.statement.as_millis().to_string()),
        ("client_connection_check_interval", "2000".to_owned()),
        ("tcp_keepalives_idle", "10".to_owned()),
        ("tcp_keepalives_interval", "5".to_owned()),
        ("tcp_keepalives_count", "3".to_owned()),
        ("tcp_user_timeout", "20000".to_owned()),
    ]
}

fn refuses_options(problem: &StoreError) -> bool {
    matches!(problem, StoreError::Unavailable { source, .. } if source.to_string().contains("startup parameter"))
}
