//! Blobs as files of a folder. The module does its own file work, because it must control what is
//! synced to disk.
//!
//! `blobs/<2 hex>/<id>` are blobs, `staging/<process>/<id>` are bytes being received, and
//! `uploads/<name>` are the bytes of resumable uploads. A process locks its staging folder, so that
//! other processes can tell leftovers from work in progress. Everything here blocks. Files have
//! mode 0600, folders 0700.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;

use super::budget::StagingReservation;

/// File extension of the lock file beside a staging folder.
const LOCK: &str = "lock";
/// Maximum number of pieces in one write call of the system.
const PIECES: usize = 1024;

/// Folder of the blobs, with the staging folder of this process.
pub(crate) struct Folder {
    root: PathBuf,
    staging: PathBuf,
    _lock: File,
}

impl Folder {
    /// Creates the missing folders and the staging folder of this process.
    pub(crate) fn open(root: &Path) -> io::Result<Folder> {
        make_folders(root)?;
        let staging = root.join("staging").join(random_id());
        // Create the lock first: a staging folder without a lock counts as a leftover.
        let lock = new_file().create_new(true).open(staging.with_extension(LOCK))?;
        lock.lock()?;
        make_folder(&staging)?;
        Ok(Folder { root: root.to_owned(), staging, _lock: lock })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Creates a file for received bytes. It is deleted when dropped, unless it was settled.
    pub(crate) fn begin(&self) -> io::Result<BlobFile> {
        let path = self.staging.join(random_id());
        let file = new_file().create_new(true).open(&path)?;
        Ok(BlobFile::new(file, path, true))
    }

    /// Opens the blob with this key; `None` if the file does not exist.
    pub(crate) fn open_blob(&self, key: &str) -> io::Result<Option<BlobFile>> {
        let path = self.blob_path(key);
        match File::open(&path) {
            Ok(file) => Ok(Some(BlobFile::new(file, path, false))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes the bytes durable under a new key and returns the key. `now` is the store's time.
    /// After a failed sync, the file counts as lost and is never synced again. The system may have
    /// dropped the pages, so a second sync could succeed without writing them.
    pub(crate) fn settle(&self, file: &BlobFile, now: SystemTime) -> io::Result<String> {
        file.check()?;
        let mut path = file.path();
        if let Some(key) = self.key_of(&path) {
            file.owned.store(false, Ordering::Release);
            return Ok(key);
        }
        let key = new_key();
        let target = self.blob_path(&key);
        // Sets the file's time to now: the sweep recognizes leftovers by their age, and these bytes
        // may have been written long ago.
        file.file.set_modified(now)?;
        file.sync()?;
        fs::rename(&*path, &target)?;
        *path = target;
        sync_parent(&path).inspect_err(|_| file.lost.store(true, Ordering::Release))?;
        file.owned.store(false, Ordering::Release);
        Ok(key)
    }

    /// Removes a blob. A missing file is not an error.
    pub(crate) fn remove(&self, key: &str) -> io::Result<()> {
        gone(fs::remove_file(self.blob_path(key)))
    }

    /// Checks that the blob folder exists and can be listed.
    pub(crate) fn ping(&self) -> io::Result<()> {
        fs::read_dir(self.root.join("blobs"))?.next().transpose().map(|_| ())
    }

    /// Returns whether the folder has neither blobs nor the file `mark`, which identifies the
    /// blobs' owner.
    pub(crate) fn is_empty(&self, mark: &str) -> io::Result<bool> {
        for shard in fs::read_dir(self.root.join("blobs"))? {
            if fs::read_dir(shard?.path())?.next().is_some() {
                return Ok(false);
            }
        }
        Ok(!self.root.join(mark).exists())
    }

    /// Tests the storage: writes, syncs, reads and removes a file.
    pub(crate) fn canary(&self) -> io::Result<()> {
        let mut canary = self.begin()?;
        canary.append(&[Bytes::from_static(b"canary")])?;
        canary.sync()?;
        match canary.read_at(0, 6)?.as_ref() {
            b"canary" => Ok(()),
            _ => Err(io::Error::other("the written bytes could not be read back")),
        }
    }

    /// Opens the file of an upload with `length` bytes, truncates any bytes beyond, and locks it
    /// against other appends. `None` if another append holds the lock.
    pub(crate) fn open_upload(
        &self,
        name: &str,
        length: u64,
        now: SystemTime,
    ) -> io::Result<Option<BlobFile>> {
        let path = self.upload_path(name);
        let fresh = !path.exists();
        let file = new_file().create(true).truncate(false).open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        if file.metadata()?.len() < length {
            return Err(io::Error::other("the file of an upload is shorter than the acknowledged length"));
        }
        file.set_len(length)?;
        // Sets the file's time to now, because the sweep recognizes leftovers by their age.
        file.set_modified(now)?;
        io::Seek::seek(&mut &file, io::SeekFrom::Start(length))?;
        if fresh {
            sync_parent(&path)?;
        }
        Ok(Some(BlobFile::new(file, path, false)))
    }

    /// Returns whether any process is appending to the file of this upload.
    pub(crate) fn is_appended_to(&self, name: &str) -> io::Result<bool> {
        match OpenOptions::new().write(true).open(self.upload_path(name)) {
            Ok(file) => match file.try_lock() {
                Ok(()) => Ok(false),
                Err(fs::TryLockError::WouldBlock) => Ok(true),
                Err(fs::TryLockError::Error(error)) => Err(error),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Moves the file of an upload into the staging folder.
    pub(crate) fn claim_upload(&self, file: &BlobFile) -> io::Result<()> {
        let mut path = file.path();
        let target = self.staging.join(random_id());
        fs::rename(&*path, &target)?;
        *path = target;
        file.owned.store(true, Ordering::Release);
        file.file.unlock()
    }

    /// Removes the bytes of an upload. Missing bytes are not an error.
    pub(crate) fn remove_upload(&self, name: &str) -> io::Result<()> {
        gone(fs::remove_file(self.upload_path(name)))
    }

    /// Removes the staging folders of processes that have ended, and returns the number of files.
    pub(crate) fn sweep_staging(&self) -> io::Result<u64> {
        let mut swept = 0;
        for entry in fs::read_dir(self.root.join("staging"))? {
            let folder = entry?.path();
            let lock = folder.with_extension(LOCK);
            if folder == lock || folder == self.staging || !is_abandoned(&lock) {
                continue;
            }
            swept += fs::read_dir(&folder).map_or(0, |files| files.count() as u64);
            gone(fs::remove_dir_all(&folder))?;
            gone(fs::remove_file(&lock))?;
        }
        Ok(swept)
    }

    /// Lists the keys of blobs settled before this time, in one of the 256 folders.
    pub(crate) fn settled_before(&self, shard: u8, before: SystemTime) -> io::Result<Vec<String>> {
        let folder = self.root.join("blobs").join(hex::encode([shard]));
        let names = names_before(&folder, before)?;
        Ok(names.into_iter().map(|name| format!("{}/{name}", hex::encode([shard]))).collect())
    }

    /// Lists the uploads whose files were not written to since this time.
    pub(crate) fn uploads_before(&self, before: SystemTime) -> io::Result<Vec<String>> {
        names_before(&self.root.join("uploads"), before)
    }

    fn blob_path(&self, key: &str) -> PathBuf {
        self.root.join("blobs").join(key)
    }

    fn upload_path(&self, name: &str) -> PathBuf {
        self.root.join("uploads").join(name)
    }

    fn key_of(&self, path: &Path) -> Option<String> {
        path.strip_prefix(self.root.join("blobs")).ok()?.to_str().map(str::to_owned)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A remaining folder is swept at the next start.
        if fs::remove_dir(&self.staging).is_ok() {
            let _ = fs::remove_file(self.staging.with_extension(LOCK));
        }
    }
}

/// Open file with a blob's bytes. The bytes stay readable while this handle lives, even after the
/// file is removed.
pub(crate) struct BlobFile {
    file: File,
    path: Mutex<PathBuf>,
    /// True if no row or upload refers to it. The file is then removed on drop.
    owned: AtomicBool,
    /// True after a failed sync: the contents are unknown.
    lost: AtomicBool,
    /// Reservation while the bytes are staged.
    reservation: Mutex<Option<StagingReservation>>,
}

/// Identity of a file's state, which changes with each write to the file. Spontaneous damage of the
/// disk does not change it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct FileVersion {
    length: u64,
    /// Seconds and nanoseconds, like the field below.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl BlobFile {
    fn new(file: File, path: PathBuf, owned: bool) -> BlobFile {
        let (path, owned, lost) = (Mutex::new(path), AtomicBool::new(owned), AtomicBool::new(false));
        BlobFile { file, path, owned, lost, reservation: Mutex::default() }
    }

    /// Sets or ends the reservation of the staged bytes.
    pub(crate) fn hold(&self, reservation: Option<StagingReservation>) {
        *self.reservation.lock().unwrap_or_else(PoisonError::into_inner) = reservation;
    }

    pub(crate) fn append(&mut self, pieces: &[Bytes]) -> io::Result<()> {
        for pieces in pieces.chunks(PIECES) {
            let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
            let mut rest = slices.as_mut_slice();
            IoSlice::advance_slices(&mut rest, 0);
            while !rest.is_empty() {
                match self.file.write_vectored(rest) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => IoSlice::advance_slices(&mut rest, written),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Reads `length` bytes from `offset` on, or fewer at the end of the file.
    pub(crate) fn read_at(&self, mut offset: u64, length: usize) -> io::Result<Bytes> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            match rustix::io::pread(&self.file, rustix::buffer::spare_capacity(&mut bytes), offset) {
                Ok(0) => break,
                Ok(read) => offset = offset.saturating_add(read as u64),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        bytes.truncate(length);
        Ok(bytes.into())
    }

    /// Fills the buffer with the bytes from `offset` on, if all are in the page cache. It never
    /// waits for the disk. On failure, the contents of the buffer are undefined.
    #[cfg(target_os = "linux")]
    pub(crate) fn read_cached(&self, mut buffer: &mut [u8], mut offset: u64) -> bool {
        while !buffer.is_empty() {
            let slices = &mut [io::IoSliceMut::new(buffer)];
            match rustix::io::preadv2(&self.file, slices, offset, rustix::io::ReadWriteFlags::NOWAIT) {
                Ok(read @ 1..) => {
                    buffer = buffer.get_mut(read..).unwrap_or_default();
                    offset = offset.saturating_add(read as u64);
                }
                Err(rustix::io::Errno::INTR) => {}
                // This is the end of the file, a page cache miss, or a file system without this
                // function.
                Ok(0) | Err(_) => return false,
            }
        }
        true
    }

    /// Other systems cannot read only from the page cache.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn read_cached(&self, _buffer: &mut [u8], _offset: u64) -> bool {
        false
    }

    /// Returns the state of the file, which changes when the file is written to.
    pub(crate) fn version(&self) -> io::Result<FileVersion> {
        let metadata = self.file.metadata()?;
        Ok(FileVersion {
            length: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// Returns the length of the file.
    pub(crate) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Makes the bytes durable, but not the file's name. Syncs a file only once, even after a
    /// failure.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.check()?;
        self.file.sync_all().inspect_err(|_| self.lost.store(true, Ordering::Release))
    }

    /// Marks the file as unreferenced. It is removed when the last handle is dropped.
    pub(crate) fn disown(&self) {
        self.owned.store(true, Ordering::Release);
    }

    fn check(&self) -> io::Result<()> {
        if self.lost.load(Ordering::Acquire) {
            return Err(io::Error::other("an earlier sync of this file failed"));
        }
        Ok(())
    }

    fn path(&self) -> MutexGuard<'_, PathBuf> {
        self.path.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BlobFile {
    fn drop(&mut self) {
        if self.owned.load(Ordering::Acquire)
            && let Err(error) = gone(fs::remove_file(&*self.path()))
        {
            tracing::warn!(%error, "could not remove a file that is no longer needed; the next start \
                removes it");
        }
    }
}

/// Returns 32 random characters of lower-case hex.
pub(crate) fn random_id() -> String {
    hex::encode(rand::random::<[u8; 16]>())
}

/// Returns a storage key that was never used before.
pub(crate) fn new_key() -> String {
    let id = rand::random::<[u8; 16]>();
    format!("{}/{}", hex::encode(id.split_at(1).0), hex::encode(id))
}

fn new_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

fn make_folders(root: &Path) -> io::Result<()> {
    make_folder(root)?;
    for name in ["blobs", "staging", "uploads"] {
        make_folder(&root.join(name))?;
    }
    for shard in 0..=u8::MAX {
        make_folder(&root.join("blobs").join(hex::encode([shard])))?;
    }
    // Sync even if nothing was created: a process killed earlier may have created the folders
    // without syncing them.
    sync_folder(&root.join("blobs"))?;
    sync_folder(root)?;
    sync_parent(root)
}

fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().mode(0o700).recursive(true).create(path)
        }
        other => other,
    }
}

fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => sync_folder(Path::new(".")),
        Some(parent) => sync_folder(parent),
        None => Ok(()),
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Returns whether no running process holds this lock of a staging folder.
fn is_abandoned(lock: &Path) -> bool {
    match OpenOptions::new().write(true).open(lock) {
        Ok(lock) => lock.try_lock().is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn names_before(folder: &Path, before: SystemTime) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let modified = match entry.metadata() {
            Ok(data) => data.modified()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if modified <= before
            && let Ok(name) = entry.file_name().into_string()
        {
            names.push(name);
        }
    }
    Ok(names)
}
