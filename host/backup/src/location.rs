//! A backup location: a folder, or an S3 bucket or a prefix in one.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures::TryStreamExt as _;
use futures::io::{AsyncRead, AsyncReadExt as _};
use object_store::aws::AmazonS3ConfigKey;
use object_store::buffered::BufWriter;
use object_store::path::Path as Key;
use object_store::{
    BackoffConfig, ClientConfigKey, Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, RetryConfig,
};
use packhouse_store::s3_bucket;
use tempfile::NamedTempFile;
use tokio::io::AsyncWrite;
use tokio_util::compat::TokioAsyncReadCompatExt as _;

/// File that marks a backup location.
pub(crate) const HEADER: &str = "packhouse-backups.json";
/// Error for a location that is neither empty nor a backup location.
pub(crate) const FOREIGN: &str = "this is not a backup location (packhouse-backups.json is missing), and it is not empty: choose an empty folder or another path";
/// Subfolder for files that are not complete yet.
const TEMPORARY: &str = "tmp";
/// Size of the parts in which large objects are written to a bucket.
const PART: usize = 8 * 1024 * 1024;
/// Size of the buffer for reading a file of a folder.
const PIECE: usize = 64 * 1024;
/// Number of retries of a request to a bucket. A backup waits longer than a server does: the
/// clients of a server retry themselves.
const RETRIES: usize = 3;
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(5);
/// Longest time that a bucket may take to answer, or may pause while it sends an object.
const TIMEOUT: &str = "2 minutes";

/// Reader of a stored file.
pub(crate) type FileReader = Box<dyn AsyncRead + Send + Unpin>;

/// A folder or bucket for backups, which may be empty.
#[derive(Clone, Debug)]
pub struct BackupLocation {
    files: Backend,
    display_name: String,
}

#[derive(Clone, Debug)]
enum Backend {
    Folder(PathBuf),
    /// A bucket, and the prefix of all its keys.
    Bucket(Arc<dyn ObjectStore>, Key),
}

/// A stored file and its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileEntry {
    pub(crate) path: String,
    pub(crate) bytes: u64,
}

/// Writer of a file that has no name yet.
pub(crate) struct FileWriter {
    /// Writer of the bytes. The caller shuts it down after the last byte.
    pub(crate) to: Box<dyn AsyncWrite + Send + Unpin>,
    /// The temporary file, if the location is a folder.
    part: Option<UnnamedFile>,
}

impl FileWriter {
    /// Gives the file its name. In a bucket, the file already got its name at the shutdown of the
    /// writer.
    pub(crate) async fn finish(self) -> io::Result<()> {
        match self.part {
            Some(part) => blocking(move || part.persist(&PutMode::Overwrite)).await,
            None => Ok(()),
        }
    }
}

/// A temporary file in a folder. It is deleted on drop, unless it was renamed to its final name.
struct UnnamedFile {
    file: NamedTempFile,
    name: PathBuf,
}

impl UnnamedFile {
    fn begin(folder: &Path, path: &str) -> io::Result<UnnamedFile> {
        let (temporary, name) = (folder.join(TEMPORARY), within(folder, path)?);
        std::fs::create_dir_all(&temporary)?;
        if let Some(parent) = name.parent() {
            std::fs::create_dir_all(parent)?;
        }
        // The umask decides who may read the file, as for any other file.
        let permissions = Permissions::from_mode(0o666);
        let file = tempfile::Builder::new().permissions(permissions).tempfile_in(temporary)?;
        Ok(UnnamedFile { file, name })
    }

    /// Renames the file to its final name. Syncs the file first, so that only complete files have a
    /// final name, even after a power cut.
    fn persist(self, mode: &PutMode) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        let persisted = match mode {
            PutMode::Create => self.file.persist_noclobber(self.name),
            _ => self.file.persist(self.name),
        };
        persisted.map(drop).map_err(|error| error.error)
    }
}

impl BackupLocation {
    /// Opens an existing location for reading: a folder, or
    /// `s3://BUCKET/PATH?endpoint=…&region=…&access_key_id=…&secret_access_key=…`. Options that the
    /// address of a bucket leaves out come from the environment (`AWS_…`), as for the setting
    /// `blobs`. It is an error if the address is invalid or if there is no such folder.
    pub fn to_read(address: &str) -> anyhow::Result<BackupLocation> {
        let Some(folder) = folder(address)? else { return bucket(address) };
        ensure!(
            folder.is_dir(),
            "there are no backups at this location: the folder {} does not exist",
            folder.display()
        );
        Ok(BackupLocation::in_folder(folder))
    }

    /// Opens a location for writing. A missing folder is created with the first file. It is an
    /// error if the folder holds other files, or if it is inside `data`: the backups would be lost
    /// together with the data.
    pub fn to_write(address: &str, data: &Path) -> anyhow::Result<BackupLocation> {
        let Some(folder) = folder(address)? else { return bucket(address) };
        let data = std::path::absolute(data).context("the path of the data folder is invalid")?;
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        ensure!(
            !real(&folder).starts_with(real(&data)) && !folder.starts_with(&data),
            "{} is in the data folder, so the backups would be lost with it: choose another location",
            folder.display()
        );
        ensure!(folder.join(HEADER).exists() || is_empty(&folder)?, FOREIGN);
        Ok(BackupLocation::in_folder(folder))
    }

    fn in_folder(folder: PathBuf) -> BackupLocation {
        BackupLocation { display_name: folder.display().to_string(), files: Backend::Folder(folder) }
    }

    /// The folder, or the bucket and its path, without the query, which may hold a credential.
    pub(crate) fn display_name(&self) -> &str {
        &self.display_name
    }

    /// Reads a small file. `None` if there is no such file.
    pub(crate) async fn read(&self, path: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let Some(mut reader) = self.open(path).await? else { return Ok(None) };
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).await.with_context(|| format!("failed to read {path}"))?;
        Ok(Some(bytes))
    }

    /// Opens a file of any size for reading. `None` if there is no such file.
    pub(crate) async fn open(&self, path: &str) -> anyhow::Result<Option<FileReader>> {
        let failed = || format!("failed to read {path}");
        match &self.files {
            Backend::Folder(folder) => {
                let name = within(folder, path).with_context(failed)?;
                let file = if_there(tokio::fs::File::open(name).await).with_context(failed)?;
                // The decryption reads headers in small pieces, and each read of a tokio file is a
                // task of its own. The buffer saves most of these tasks.
                let buffered =
                    |file: tokio::fs::File| futures::io::BufReader::with_capacity(PIECE, file.compat());
                Ok(file.map(|file| Box::new(buffered(file)) as FileReader))
            }
            Backend::Bucket(bucket, root) => match bucket.get(&key(root, path)).await {
                Ok(found) => {
                    let pieces = found.into_stream().map_err(io::Error::from);
                    Ok(Some(Box::new(pieces.into_async_read()) as FileReader))
                }
                Err(Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(error).with_context(failed),
            },
        }
    }

    /// Begins a file of any size. The file gets its name once the writer was shut down and
    /// [finished](FileWriter::finish).
    pub(crate) async fn create(&self, path: &str) -> io::Result<FileWriter> {
        match &self.files {
            Backend::Folder(folder) => {
                let (folder, path) = (folder.clone(), path.to_owned());
                let part = blocking(move || UnnamedFile::begin(&folder, &path)).await?;
                let file = part.file.as_file().try_clone()?;
                Ok(FileWriter { to: Box::new(tokio::fs::File::from_std(file)), part: Some(part) })
            }
            Backend::Bucket(bucket, root) => {
                // Many files are written concurrently: one part of each at a time is enough.
                let writer = BufWriter::with_capacity(Arc::clone(bucket), key(root, path), PART);
                Ok(FileWriter { to: Box::new(writer.with_max_concurrency(1)), part: None })
            }
        }
    }

    /// Writes a small file. It gets its name once it is complete.
    pub(crate) async fn write(&self, path: &str, bytes: Vec<u8>) -> anyhow::Result<()> {
        self.put(path, bytes, PutMode::Overwrite).await.with_context(|| format!("failed to write {path}"))
    }

    /// Writes a small file unless it exists. Returns whether it was written.
    pub(crate) async fn write_new(&self, path: &str, bytes: Vec<u8>) -> anyhow::Result<bool> {
        match self.put(path, bytes, PutMode::Create).await {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error).with_context(|| format!("failed to write {path}")),
        }
    }

    async fn put(&self, path: &str, bytes: Vec<u8>, mode: PutMode) -> io::Result<()> {
        match &self.files {
            Backend::Folder(folder) => {
                let (folder, path) = (folder.clone(), path.to_owned());
                blocking(move || {
                    let mut part = UnnamedFile::begin(&folder, &path)?;
                    io::Write::write_all(&mut part.file, &bytes)?;
                    part.persist(&mode)
                })
                .await
            }
            Backend::Bucket(bucket, root) => {
                let options = PutOptions { mode, ..PutOptions::default() };
                match bucket.put_opts(&key(root, path), bytes.into(), options).await {
                    Ok(_) => Ok(()),
                    Err(Error::AlreadyExists { .. }) => Err(io::ErrorKind::AlreadyExists.into()),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// Removes a file. A missing file is not an error.
    pub(crate) async fn remove(&self, path: &str) -> anyhow::Result<()> {
        let failed = || format!("failed to remove {path}");
        match &self.files {
            Backend::Folder(folder) => {
                let name = within(folder, path).with_context(failed)?;
                let removed = blocking(move || if_there(std::fs::remove_file(name))).await;
                removed.map(drop).with_context(failed)
            }
            Backend::Bucket(bucket, root) => match bucket.delete(&key(root, path)).await {
                Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(error).with_context(failed),
            },
        }
    }

    /// Removes an empty folder (`backups/ID/`). A bucket has no folders.
    pub(crate) async fn remove_folder(&self, path: &str) -> anyhow::Result<()> {
        let Backend::Folder(folder) = &self.files else { return Ok(()) };
        let failed = || format!("failed to remove {path}");
        let name = within(folder, path).with_context(failed)?;
        let removed = blocking(move || if_there(std::fs::remove_dir(name))).await;
        removed.map(drop).with_context(failed)
    }

    /// Lists all files below a folder (`content/`). The list is empty if there is no such folder.
    pub(crate) async fn list(&self, below: &str) -> anyhow::Result<Vec<FileEntry>> {
        let failed = || format!("failed to list {below}");
        match &self.files {
            Backend::Folder(folder) => {
                let (folder, below) = (folder.clone(), below.to_owned());
                blocking(move || files_below(&folder, below)).await.with_context(failed)
            }
            Backend::Bucket(bucket, root) => {
                let mut listed = bucket.list(Some(&key(root, below)));
                let mut entries = Vec::new();
                while let Some(found) = listed.try_next().await.with_context(failed)? {
                    let path = found.location.as_ref().strip_prefix(root.as_ref());
                    let path = path.unwrap_or_default().trim_start_matches('/').to_owned();
                    entries.push(FileEntry { path, bytes: found.size });
                }
                Ok(entries)
            }
        }
    }

    /// Reports whether the location has no files at all.
    pub(crate) async fn is_empty(&self) -> anyhow::Result<bool> {
        match &self.files {
            Backend::Folder(folder) => is_empty(folder),
            Backend::Bucket(bucket, root) => {
                let mut listed = bucket.list(Some(root));
                while let Some(found) = listed.try_next().await.context("failed to list the bucket")? {
                    // Web consoles represent a folder by an empty object of its name.
                    if found.location != *root {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    /// Syncs everything written so far, file names included, so that it survives a power cut. A
    /// bucket needs no sync.
    pub(crate) fn sync(&self) -> anyhow::Result<()> {
        let Backend::Folder(folder) = &self.files else { return Ok(()) };
        let failed = || format!("failed to sync {}", folder.display());
        let opened = std::fs::File::open(folder).with_context(failed)?;
        rustix::fs::syncfs(&opened).with_context(failed)
    }

    /// Removes temporary files that killed writers left, if they were not touched for a day.
    pub(crate) fn tidy(&self) -> anyhow::Result<()> {
        let Backend::Folder(folder) = &self.files else { return Ok(()) };
        let Ok(entries) = std::fs::read_dir(folder.join(TEMPORARY)) else { return Ok(()) };
        for entry in entries {
            let entry = entry?;
            let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
            if age > Duration::from_hours(24) && entry.file_type()?.is_file() {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// The folder that an address names. `None` if it names a bucket.
fn folder(address: &str) -> anyhow::Result<Option<PathBuf>> {
    if address.starts_with("s3://") {
        return Ok(None);
    }
    ensure!(
        !address.contains("://"),
        "the backup location must be a folder or s3://BUCKET/PATH, not {address:?}"
    );
    std::path::absolute(address).map(Some).with_context(|| format!("{address:?} is not a valid path"))
}

/// Reports whether the folder is missing or empty. `lost+found` does not count: a disk that is
/// mounted for backups has one. Neither does the folder of temporary files.
fn is_empty(folder: &Path) -> anyhow::Result<bool> {
    let does_not_count = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name() == "lost+found" || entry.file_name() == TEMPORARY)
    };
    match std::fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.all(does_not_count)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error).with_context(|| format!("failed to list {}", folder.display())),
    }
}

fn bucket(address: &str) -> anyhow::Result<BackupLocation> {
    let (builder, root) = s3_bucket(address)?;
    let set = |key: AmazonS3ConfigKey| builder.get_config_value(&key);
    let name = set(AmazonS3ConfigKey::Bucket).unwrap_or_default();
    // If this option is set, the library adds the bucket neither to the endpoint's host nor to the
    // path. If the host did not contain the bucket, the storage would take the first segment of
    // each path for the bucket.
    let is_hosted = set(AmazonS3ConfigKey::VirtualHostedStyleRequest).as_deref() == Some("true");
    let endpoint = set(AmazonS3ConfigKey::S3Endpoint).or_else(|| set(AmazonS3ConfigKey::Endpoint));
    ensure!(
        !is_hosted || endpoint.is_none_or(|endpoint| endpoint.contains(&format!("://{name}."))),
        "with virtual_hosted_style_request the endpoint must contain the bucket, as in https://{name}.HOST"
    );
    let backoff = BackoffConfig { init_backoff: FIRST_RETRY, max_backoff: LAST_RETRY, base: 2.0 };
    let bucket = builder
        // The timeout counts from the start of a read. Reading a large file takes hours, and an
        // interrupted read is resumed.
        .with_retry(RetryConfig { backoff, max_retries: RETRIES, retry_timeout: Duration::from_hours(24) })
        // Files are removed one at a time, and not every S3 implementation supports bulk deletion.
        .with_disable_bulk_delete(true)
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::ReadTimeout), TIMEOUT)
        .build()
        .context("the address of the bucket is invalid")?;
    Ok(BackupLocation {
        display_name: format!("s3://{name}/{root}"),
        files: Backend::Bucket(Arc::new(bucket), root),
    })
}

fn key(root: &Key, path: &str) -> Key {
    root.parts().chain(path.split('/').map(Into::into)).collect()
}

/// The path of a file in a folder. File names come from manifests, which may be forged: a path that
/// leads out of the folder is an error.
fn within(folder: &Path, path: &str) -> io::Result<PathBuf> {
    if Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
        return Ok(folder.join(path));
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "the path leads out of the backup location"))
}

/// All files below a folder, with their paths relative to the location.
fn files_below(folder: &Path, below: String) -> io::Result<Vec<FileEntry>> {
    let (mut entries, mut waiting) = (Vec::new(), vec![below]);
    while let Some(below) = waiting.pop() {
        let Some(found) = if_there(std::fs::read_dir(within(folder, &below)?))? else { continue };
        for entry in found {
            let entry = entry?;
            // No backup uses a name that is not UTF-8. A concurrent prune may remove a file.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let Some(metadata) = if_there(entry.metadata())? else { continue };
            let path = format!("{below}{name}");
            if metadata.is_dir() {
                waiting.push(format!("{path}/"));
            } else if metadata.is_file() {
                entries.push(FileEntry { path, bytes: metadata.len() });
            }
        }
    }
    Ok(entries)
}

/// Turns the error for a missing file or folder into `None`.
fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Runs work that blocks on a disk on a thread for blocking work.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await?
}

#[cfg(test)]
mod tests;
