//! A mark that the blob storage (folder or bucket) and its database share. The mark prevents the
//! start of a server with the wrong storage. Such a server would report packages as damaged, store
//! publishes where no other server finds them, and collect the blobs of another database as
//! garbage.
//!
//! The mark is a file or object named [`NAME`] beside the blobs, and a row of the table `meta`. A
//! second row describes the location of the storage in words. A folder beside a SQLite database
//! belongs to it by its location, so its mark is not checked.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;

use crate::blobs::storage::{Storage, StoragePlace, blocking};
use crate::config::{BlobsConfig, StoreConfig};
use crate::db::{ConnectionPurpose, Database, Patience, Transaction, values};
use crate::error::StoreError;

/// Name of the file or object.
pub(crate) const NAME: &str = "packhouse-database";
/// Rows of `meta`: the identity of this database, the mark of its storage (if it exists), and the
/// location of the storage.
pub(crate) const IDENTITY: &str = "database";
pub(crate) const MARK: &str = "blob_folder";
pub(crate) const WHERE: &str = "blob_storage";
/// Prefix of the description of a folder.
const A_FOLDER: &str = "the folder ";
/// Maximum time to read the mark from the storage.
const PATIENCE: Duration = Duration::from_secs(5);
/// Number of blobs to look for in the storage of a database without a mark.
const SAMPLE: i64 = 5;

/// Marks storage and database as belonging together, or compares their marks. `Invalid` explains a
/// difference of the marks; `Unavailable` if the storage or the database cannot be reached.
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
        // A server also starts without its bucket and serves what is in the database. The next
        // start compares the marks.
        Err(_) if is_bucket(storage) => return unread(database, &here).await,
        Err(problem) => return Err(problem),
    };
    let mut transaction = database.begin_for(ConnectionPurpose::Write, Patience::Slow).await?;
    // A second process waits here until the first has marked the storage.
    let insert = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    let first = transaction.execute(insert, values![MARK, identity.as_str()]).await? == 1;
    if first {
        check_sample(&mut transaction, storage, &here).await?;
        match found {
            Some(found) if found == identity => {}
            Some(_) if private => {}
            Some(_) => return Err(another(&here, None)),
            None => write(storage, &identity).await?,
        }
    } else {
        let expected = meta(&mut transaction, MARK).await?;
        let known = meta(&mut transaction, WHERE).await?;
        let is_exempt = private && known.as_ref().is_none_or(|known| known.starts_with(A_FOLDER));
        // The first process may have marked the storage after this one read the mark.
        if !is_exempt && found != expected && look(storage).await? != expected {
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

/// Handles a bucket that does not answer. Without the mark, this can only refuse a database whose
/// blobs are in a folder.
async fn unread(database: &Database, here: &str) -> Result<(), StoreError> {
    let row = database.fetch_one("SELECT value FROM meta WHERE name = $1", values![WHERE]).await?;
    match row.map(|row| row.columns().text("value")).transpose()? {
        Some(known) if known.starts_with(A_FOLDER) => Err(another(here, Some(&known))),
        _ => {
            tracing::warn!("{here} does not answer: could not check that it holds this database's blobs");
            Ok(())
        }
    }
}

/// Identity of this database. It is committed before the storage is marked with it, so that an
/// interrupted start can be repeated.
async fn identity(database: &Database) -> Result<String, StoreError> {
    let mut transaction = database.begin_for(ConnectionPurpose::Write, Patience::Slow).await?;
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

/// Checks a database of an earlier program version, which has blobs but no mark. At least one of a
/// few blobs must exist in the storage.
async fn check_sample(
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

/// Reads the mark of the storage, with a time limit.
async fn look(storage: &Storage) -> Result<Option<String>, StoreError> {
    let late = |_| StoreError::storage("the blob storage does not answer");
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

/// Writes the file atomically: it gets its name once it is complete.
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
        "{here} does not hold the blobs of this database{known}: set `blobs` to their location (fs is the \
         data folder, which servers of one PostgreSQL share), or use the database that belongs to them. If \
         you moved the blobs there, move the file `{NAME}` too; its content must be the same in both"
    ))
}
