//! The mark that the storage of blobs and its database have in common, be it a folder or a bucket: a server that was started with
//! another storage would answer that packages are damaged, take publishes to where no other server finds them, and collect as
//! garbage what is none.
//!
//! The mark is a file or object of the name [`NAME`] beside the blobs, and a row of the table `meta`; a second row says in words
//! where the storage is. A folder beside SQLite belongs to it by lying there: of its mark nothing is asked.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;

use crate::blobs::storage::{Storage, StoragePlace, blocking};
use crate::config::{BlobsConfig, StoreConfig};
use crate::db::{Database, Patience, Purpose, Transaction, values};
use crate::error::StoreError;

/// Of the file or object.
pub(crate) const NAME: &str = "packhouse-database";
/// Rows of `meta`: what this database is known by, the mark of its storage once there is one, and where that is.
pub(crate) const IDENTITY: &str = "database";
pub(crate) const MARK: &str = "blob_folder";
pub(crate) const WHERE: &str = "blob_storage";
/// What a folder's description begins with.
const A_FOLDER: &str = "the folder ";
/// How long the storage may take to show its mark.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many blobs of a database without a mark are looked for.
const SAMPLE: i64 = 5;

/// Marks storage and database as belonging together, or compares the marks. `Invalid` when they differ, in words; `Unavailable`
/// when one of them cannot be reached.
pub(crate) async fn check(
    database: &Database,
    storage: &Storage,
    config: &StoreConfig,
) -> Result<(), StoreError> {
    if matches!(config.blobs, BlobsConfig::Memory) {
        return Ok(());
    }
    let here = storage.described(config);
    let private = !database.is_shared() && here.starts_with(A_FOLDER);
    let identity = identity(database).await?;
    let found = match look(storage).await {
        Ok(found) => found,
        // A server starts without its bucket and serves what lies in the database; the next start compares.
        Err(_) if is_bucket(storage) => return unread(database, &here).await,
        Err(problem) => return Err(problem),
    };
    let mut transaction = database.begin_for(Purpose::Write, Patience::Slow).await?;
    // A second process waits here until the first has marked the storage.
    let insert = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    let first = transaction.execute(insert, values![MARK, identity.as_str()]).await? == 1;
    if first {
        holds_blobs_of(&mut transaction, storage, &here).await?;
        match found {
            Some(found) if found == identity => {}
            Some(_) if private => {}
            Some(_) => return Err(another(&here, None)),
            None => write(storage, &identity).await?,
        }
    } else {
        let expected = meta(&mut transaction, MARK).await?;
        let known = meta(&mut transaction, WHERE).await?;
        let unasked = private && known.as_ref().is_none_or(|known| known.starts_with(A_FOLDER));
        // The first may have marked the storage after this process looked at it.
        if !unasked && found != expected && look(storage).await? != expected {
            return Err(another(&here, known.as_deref()));
        }
    }
    let note = "INSERT INTO meta (name, value) VALUES ($1, $2) \
                ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE meta.value <> excluded.value";
    transaction.execute(note, values![WHERE, here]).await?;
    transaction.commit().await
}

fn is_bucket(storage: &Storage) -> bool {
    matches!(storage.place, StoragePlace::Bucket(_))
}

/// A bucket does not answer: what is known of the database's blobs is that they are in no folder.
async fn unread(database: &Database, here: &str) -> Result<(), StoreError> {
    let row = database.fetch_one("SELECT value FROM meta WHERE name = $1", values![WHERE]).await?;
    match row.map(|row| row.columns().text("value")).transpose()? {
        Some(known) if known.starts_with(A_FOLDER) => Err(another(here, Some(&known))),
        _ => {
            tracing::warn!("{here} does not answer: whether it holds this database's blobs is not known");
            Ok(())
        }
    }
}

/// What this database is known by: committed before anything is marked with it, so that a start that broke off can be done again.
async fn identity(database: &Database) -> Result<String, StoreError> {
    let mut transaction = database.begin_for(Purpose::Write, Patience::Slow).await?;
    if let Some(known) = meta(&mut transaction, IDENTITY).await? {
        return Ok(known);
    }
    let insert = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    let fresh = hex::encode(rand::random::<[u8; 16]>());
    transaction.execute(insert, values![IDENTITY, fresh.as_str()]).await?;
    let known = meta(&mut transaction, IDENTITY).await?;
    transaction.commit().await?;
    Ok(known.unwrap_or(fresh))
}

async fn meta(transaction: &mut Transaction, name: &str) -> Result<Option<String>, StoreError> {
    let row = transaction.fetch_one("SELECT value FROM meta WHERE name = $1", values![name]).await?;
    row.map(|row| row.columns().text("value")).transpose()
}

/// A database that has blobs and no mark was made by an earlier version: at least one of some blobs must be there.
async fn holds_blobs_of(
    transaction: &mut Transaction,
    storage: &Storage,
    here: &str,
) -> Result<(), StoreError> {
    let sql = "SELECT place FROM blobs WHERE place > '' ORDER BY place LIMIT $1";
    let rows = transaction.fetch(sql, values![SAMPLE]).await?;
    for row in &rows {
        if storage.holds(&row.columns().text("place")?).await? {
            return Ok(());
        }
    }
    if rows.is_empty() { Ok(()) } else { Err(another(here, None)) }
}

/// The storage's mark, within the time that it may take.
async fn look(storage: &Storage) -> Result<Option<String>, StoreError> {
    let late = |_| StoreError::storage("the storage of blobs does not answer");
    timeout(PATIENCE, read(storage)).await.map_err(late)?
}

async fn read(storage: &Storage) -> Result<Option<String>, StoreError> {
    let text = match &storage.place {
        StoragePlace::Folder(folder) => {
            let path = folder.root().join(NAME);
            blocking(move || match std::fs::read_to_string(path) {
                Err(problem) if problem.kind() == ErrorKind::NotFound => Ok(None),
                read => read.map(Some),
            })
            .await?
        }
        StoragePlace::Bucket(bucket) => bucket.read_mark(NAME).await.map_err(StoreError::storage)?,
    };
    Ok(text.map(|text| text.trim().to_owned()))
}

async fn write(storage: &Storage, mark: &str) -> Result<(), StoreError> {
    let text = format!("{mark}\n");
    match &storage.place {
        StoragePlace::Folder(folder) => {
            let root = folder.root().to_owned();
            blocking(move || write_file(&root, &text)).await
        }
        StoragePlace::Bucket(bucket) => bucket.write_mark(NAME, text).await.map_err(StoreError::storage),
    }
}

/// Under its name only once it is whole.
fn write_file(folder: &Path, text: &str) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist_noclobber(folder.join(NAME))?;
    std::fs::File::open(folder)?.sync_all()
}

fn another(here: &str, known: Option<&str>) -> StoreError {
    let known = known.map_or_else(String::new, |known| format!(", which are in {known}"));
    StoreError::Invalid(format!(
        "{here} is not the one that holds this database's blobs{known}: set `blobs` to where they are (fs is the data folder, \
         which servers of one PostgreSQL share), or the database to theirs; if they were moved there, move `{NAME}` along, which \
         must say the same in both"
    ))
}
