//! Import of advisories. A blocking thread reads the records, and the import writes them in
//! batches, so that memory holds one batch at a time.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use packhouse_store::{AdvisoryFilter, AdvisoryPut, AdvisoryRow, Store, StoreError};
use tokio::sync::mpsc;

use crate::archive;
use crate::boxed;
use crate::record::OsvRecord;

/// Limits of a batch: the number of records, and their total size in bytes.
const PIECE: usize = 250;
const PIECE_BYTES: usize = 8 << 20;
/// Maximum number of problems in the report.
const MAX_PROBLEMS: usize = 20;
/// Number of advisories in one page when the import lists the stored ones.
const PAGE: u32 = 1_000;

/// Options that select what an import writes.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Removes all advisories that are not in the import.
    pub replace: bool,
    /// Ecosystems to import. If empty, all records are imported; otherwise only those about
    /// packages of these ecosystems.
    pub ecosystems: Vec<String>,
}

/// Result of an import: numbers of records, and the first problems.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Numbers of added, changed and unchanged records.
    pub put: AdvisoryPut,
    /// Number of records that the import skipped because of their ecosystem.
    pub passed_over: u64,
    /// Number of advisories that were removed.
    pub removed: u64,
    /// Number of files that are not valid records.
    pub refused: u64,
    /// The first of the refused files, each with the reason.
    pub problems: Vec<String>,
}

/// Error of an import. Batches that the import wrote before the error stay in the store.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The files could not be read, or the archive is damaged.
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The path contains no valid record.
    #[error("{} does not contain an OSV record, so nothing was changed", .0.display())]
    Nothing(PathBuf),
}

/// A file's record and its text, or the reason why the file is not a valid record.
type ParsedFile = Result<Box<(OsvRecord, String)>, String>;

/// Imports the records from this path: a folder, an archive or a single file.
///
/// # Errors
/// Any [`ImportError`].
#[boxed]
pub async fn import(store: &Store, path: &Path, options: &ImportOptions) -> Result<Imported, ImportError> {
    let (sender, mut records) = mpsc::channel::<ParsedFile>(64);
    let from = path.to_owned();
    let reading = tokio::task::spawn_blocking(move || read(&from, &sender));
    let (mut imported, mut imported_ids) = (Imported::default(), HashSet::new());
    let (mut piece, mut bytes) = (Vec::new(), 0);
    while let Some(found) = records.recv().await {
        let (record, text) = match found {
            Ok(found) => *found,
            Err(problem) => {
                imported.refused += 1;
                if imported.problems.len() < MAX_PROBLEMS {
                    imported.problems.push(problem);
                }
                continue;
            }
        };
        let row = record.row(&text);
        if !matches_ecosystems(&row, &options.ecosystems) {
            imported.passed_over += 1;
            continue;
        }
        if options.replace {
            imported_ids.insert(row.id.clone());
        }
        bytes += row.record.len();
        piece.push(row);
        if piece.len() >= PIECE || bytes >= PIECE_BYTES {
            imported.add(store.put_advisories(std::mem::take(&mut piece)).await?);
            bytes = 0;
        }
    }
    let read = reading.await.map_err(io::Error::other).and_then(|read| read);
    read.map_err(|source| ImportError::Read { path: path.to_owned(), source })?;
    if !piece.is_empty() {
        imported.add(store.put_advisories(piece).await?);
    }
    let AdvisoryPut { added, changed, unchanged } = imported.put;
    if added + changed + unchanged == 0 {
        return Err(ImportError::Nothing(path.to_owned()));
    }
    if options.replace {
        imported.removed = remove_others(store, &imported_ids).await?;
    }
    Ok(imported)
}

impl Imported {
    fn add(&mut self, put: AdvisoryPut) {
        self.put.added += put.added;
        self.put.changed += put.changed;
        self.put.unchanged += put.unchanged;
    }
}

fn read(path: &Path, sender: &mpsc::Sender<ParsedFile>) -> io::Result<()> {
    archive::read(path, &mut |name, content| {
        let found = content.and_then(|text| match OsvRecord::parse(&text) {
            Ok(record) => Ok(Box::new((record, text))),
            Err(problem) => Err(problem.to_string()),
        });
        let found = found.map_err(|problem| format!("{name}: {problem}"));
        sender.blocking_send(found).map_err(|_| io::Error::other("the import has stopped"))
    })
}

fn matches_ecosystems(row: &AdvisoryRow, ecosystems: &[String]) -> bool {
    ecosystems.is_empty() || row.packages.iter().any(|(ecosystem, _)| ecosystems.contains(ecosystem))
}

async fn remove_others(store: &Store, imported_ids: &HashSet<String>) -> Result<u64, StoreError> {
    let (mut filter, mut removed) = (AdvisoryFilter::default(), 0);
    loop {
        let page = store.list_advisories(&filter, PAGE).await?;
        let Some(last) = page.last() else { return Ok(removed) };
        filter.after.clone_from(&last.id);
        let others: Vec<String> =
            page.into_iter().map(|advisory| advisory.id).filter(|id| !imported_ids.contains(id)).collect();
        if !others.is_empty() {
            removed += store.remove_advisories(&others).await?;
        }
    }
}
