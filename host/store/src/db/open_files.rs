//! Second descriptors for files that SQLite has open in this process.
//!
//! POSIX drops all locks of a process on a file, including SQLite's, when the process closes any
//! descriptor of that file. Therefore one table keeps all second descriptors open until the file
//! has been removed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Open files by device and inode.
static OPEN: Mutex<BTreeMap<(u64, u64), Arc<File>>> = Mutex::new(BTreeMap::new());

/// Returns the file, open for reading; `None` if it does not exist.
pub(super) fn opened(path: &Path) -> io::Result<Option<Arc<File>>> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|_, file| file.metadata().is_ok_and(|metadata| metadata.nlink() > 0));
    // Identify the file by its name first. Opening it to compare would require closing it again.
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(problem) if problem.kind() == ErrorKind::NotFound => return Ok(None),
        Err(problem) => return Err(problem),
    };
    let id = (metadata.dev(), metadata.ino());
    if let Some(file) = open.get(&id) {
        return Ok(Some(Arc::clone(file)));
    }
    let file = Arc::new(File::open(path)?);
    open.insert(id, Arc::clone(&file));
    Ok(Some(file))
}
