//! The mark that a shared blob folder and its database have in common: a node that was started with another folder would
//! answer that packages are damaged, and collect as garbage what is none.

use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::config::{BlobsConfig, StoreConfig};
use crate::db::{Database, values};
use crate::error::StoreError;

const FILE: &str = "packhouse-database";

/// Marks folder and database as belonging together, or compares the marks. `Invalid` when they differ.
pub(crate) async fn check(database: &Database, config: &StoreConfig) -> Result<(), StoreError> {
    let BlobsConfig::Fs(folder) = &config.blobs else { return Ok(()) };
    if !database.is_shared() {
        return Ok(());
    }
    let mark = hex::encode(rand::random::<[u8; 16]>());
    let mut transaction = database.begin().await?;
    // A second process waits here until the first has written its file.
    let insert = "INSERT INTO meta (name, value) VALUES ('blob_folder', $1) ON CONFLICT (name) DO NOTHING";
    if transaction.execute(insert, values![mark.as_str()]).await? == 1 {
        return match write(folder, &mark) {
            Ok(()) => transaction.commit().await,
            Err(problem) if problem.kind() == ErrorKind::AlreadyExists => Err(another(folder)),
            Err(problem) => Err(unavailable(problem)),
        };
    }
    let row = transaction.fetch_one("SELECT value FROM meta WHERE name = 'blob_folder'", vec![]).await?;
    let expected = row.map(|row| row.columns().text()).transpose()?;
    match std::fs::read_to_string(folder.join(FILE)) {
        Ok(found) if Some(found.trim()) == expected.as_deref() => Ok(()),
        Ok(_) => Err(another(folder)),
        Err(problem) if problem.kind() == ErrorKind::NotFound => Err(another(folder)),
        Err(problem) => Err(unavailable(problem)),
    }
}

fn write(folder: &Path, mark: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut file = std::fs::File::create_new(folder.join(FILE))?;
    writeln!(file, "{mark}")?;
    file.sync_all()?;
    std::fs::File::open(folder)?.sync_all()
}

fn another(folder: &Path) -> StoreError {
    StoreError::Invalid(format!(
        "the folder {} is not the one that holds this database's blobs: mount the shared folder there, or name it in the \
         configuration (its file {FILE} and the database must agree)",
        folder.display()
    ))
}

fn unavailable(problem: std::io::Error) -> StoreError {
    StoreError::Unavailable { what: "the blob folder", source: problem.into() }
}
