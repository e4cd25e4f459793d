//! Files that SQLite has open too, and that are opened here a second time.
//!
//! They are not closed while they are in use: POSIX drops a process's locks on a file when any of its descriptors is closed, those
//! that SQLite holds among them. So all of them lie in one table, and leave it only once the file has been removed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// By device and inode.
static OPEN: Mutex<BTreeMap<(u64, u64), Arc<File>>> = Mutex::new(BTreeMap::new());

/// The file, open for reading; none when there is none.
pub(super) fn opened(path: &Path) -> io::Result<Option<Arc<File>>> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|_, file| file.metadata().is_ok_and(|metadata| metadata.nlink() > 0));
    // Known by its name first: opening it again to compare would mean closing it again.
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
