//! Bringing advisories in: read on a thread of their own, written in pieces, so that memory holds one piece of them and no more.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use packhouse_store::{AdvisoryFilter, AdvisoryPut, AdvisoryRow, Store, StoreError};
use tokio::sync::mpsc;

use crate::archive;
use crate::boxed;
use crate::record::OsvRecord;

/// Records that are written together, and their bytes.
const PIECE: usize = 250;
const PIECE_BYTES: usize = 8 << 20;
/// Files of which it is told why they are no records.
const TOLD: usize = 20;
/// Identifiers that are looked at together.
const PAGE: u32 = 1_000;

/// What is wanted of what is brought in.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Take away all that is not among it.
    pub replace: bool,
    /// Only records about packages of these ecosystems; all where there is none.
    pub ecosystems: Vec<String>,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// What became of the records.
    pub put: AdvisoryPut,
    /// Records about packages of other ecosystems.
    pub passed_over: u64,
    /// Records that were taken away.
    pub removed: u64,
    /// Files that are no records.
    pub refused: u64,
    /// Some of them: the name, and why.
    pub problems: Vec<String>,
}

/// Why advisories could not be brought in; what was written until then stays.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// What the system, or the archive, says.
    #[error("{}: {source}", path.display())]
    Read {
        /// What was read.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// The store's.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no record in it.
    #[error("{}: there is no OSV record in it, so nothing was changed", .0.display())]
    Nothing(PathBuf),
}

/// A file's record, or why it is none.
type Found = Result<Box<(OsvRecord, String)>, String>;

/// Brings in the records of a folder or an archive.
///
/// # Errors
/// Any [`ImportError`].
#[boxed]
pub async fn import(store: &Store, path: &Path, options: &ImportOptions) -> Result<Imported, ImportError> {
    let (sender, mut records) = mpsc::channel::<Found>(64);
    let from = path.to_owned();
    let reading = tokio::task::spawn_blocking(move || read(&from, &sender));
    let (mut imported, mut seen) = (Imported::default(), HashSet::new());
    let (mut piece, mut bytes) = (Vec::new(), 0);
    while let Some(found) = records.recv().await {
        let (record, text) = match found {
            Ok(found) => *found,
            Err(problem) => {
                imported.refused += 1;
                if imported.problems.len() < TOLD {
                    imported.problems.push(problem);
                }
                continue;
            }
        };
        let row = record.row(&text);
        if !is_wanted(&row, &options.ecosystems) {
            imported.passed_over += 1;
            continue;
        }
        if options.replace {
            seen.insert(row.id.clone());
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
        imported.removed = remove_others(store, &seen).await?;
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

fn read(path: &Path, sender: &mpsc::Sender<Found>) -> io::Result<()> {
    archive::read(path, &mut |name, content| {
        let found = content.and_then(|text| match OsvRecord::parse(&text) {
            Ok(record) => Ok(Box::new((record, text))),
            Err(problem) => Err(problem.to_string()),
        });
        let found = found.map_err(|problem| format!("{name}: {problem}"));
        sender.blocking_send(found).map_err(|_| io::Error::other("nobody takes what is read"))
    })
}

fn is_wanted(row: &AdvisoryRow, ecosystems: &[String]) -> bool {
    ecosystems.is_empty() || row.packages.iter().any(|(ecosystem, _)| ecosystems.contains(ecosystem))
}

async fn remove_others(store: &Store, seen: &HashSet<String>) -> Result<u64, StoreError> {
    let (mut filter, mut removed) = (AdvisoryFilter::default(), 0);
    loop {
        let page = store.list_advisories(&filter, PAGE).await?;
        let Some(last) = page.last() else { return Ok(removed) };
        filter.after.clone_from(&last.id);
        let others: Vec<String> =
            page.into_iter().map(|advisory| advisory.id).filter(|id| !seen.contains(id)).collect();
        if !others.is_empty() {
            removed += store.remove_advisories(&others).await?;
        }
    }
}
