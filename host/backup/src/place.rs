//! Where backups are: a folder, or a bucket of S3 or a part of one.

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

/// Says that a place is one of backups.
pub(crate) const HEADER: &str = "packhouse-backups.json";
/// What is said of a place that is not one and not empty.
pub(crate) const FOREIGN: &str = "this is no place of backups (packhouse-backups.json is missing) and not empty: name a folder or a path of its own";
/// Where a folder's files are until they are whole.
const TEMPORARY: &str = "tmp";
/// Bytes that are written to a bucket at a time: a part of a large object.
const PART: usize = 8 * 1024 * 1024;
/// Bytes that are read of a folder's file at a time.
const PIECE: usize = 64 * 1024;
/// How often a request to a bucket is tried again. A backup waits longer for it than a server, whose clients try again themselves.
const RETRIES: usize = 3;
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(5);
/// How long a bucket may take to answer, and may send nothing of what was asked of it.
const TIMEOUT: &str = "2 minutes";

/// The bytes of a file, as they are read.
pub(crate) type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// A place, which may be empty.
#[derive(Clone, Debug)]
pub struct Place {
    files: Files,
    shown: String,
}

#[derive(Clone, Debug)]
enum Files {
    Folder(PathBuf),
    /// A bucket, and what the keys of the files begin with.
    Bucket(Arc<dyn ObjectStore>, Key),
}

/// A file of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) bytes: u64,
}

/// A file that is being written.
pub(crate) struct Writer {
    /// Takes its bytes, and is shut down after the last.
    pub(crate) to: Box<dyn AsyncWrite + Send + Unpin>,
    /// What becomes the file, of a folder.
    part: Option<Part>,
}

impl Writer {
    /// Gives the file its name. A bucket did that when the last byte was written.
    pub(crate) async fn finish(self) -> io::Result<()> {
        match self.part {
            Some(part) => blocking(move || part.keep(&PutMode::Overwrite)).await,
            None => Ok(()),
        }
    }
}

/// A file of a folder without its name. It is removed unless it is kept.
struct Part {
    file: NamedTempFile,
    name: PathBuf,
}

impl Part {
    fn begin(folder: &Path, path: &str) -> io::Result<Part> {
        let (temporary, name) = (folder.join(TEMPORARY), within(folder, path)?);
        std::fs::create_dir_all(&temporary)?;
        if let Some(parent) = name.parent() {
            std::fs::create_dir_all(parent)?;
        }
        // As of any other file, the umask says who may read it.
        let permissions = Permissions::from_mode(0o666);
        let file = tempfile::Builder::new().permissions(permissions).tempfile_in(temporary)?;
        Ok(Part { file, name })
    }

    /// Gives it its name. After a power cut, too, nothing but a whole file has one.
    fn keep(self, mode: &PutMode) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        let kept = match mode {
            PutMode::Create => self.file.persist_noclobber(self.name),
            _ => self.file.persist(self.name),
        };
        kept.map(drop).map_err(|error| error.error)
    }
}

impl Place {
    /// A folder, or `s3://BUCKET/PATH?endpoint=…&region=…&access_key_id=…&secret_access_key=…`, to read what is there. What the address of
    /// a bucket does not say comes from the environment (`AWS_…`), as for the setting `blobs`. An error where the address makes no sense,
    /// or where there is no such folder.
    pub fn to_read(address: &str) -> anyhow::Result<Place> {
        let Some(folder) = folder(address)? else { return bucket(address) };
        ensure!(
            folder.is_dir(),
            "there are no backups at this place: there is no folder {}",
            folder.display()
        );
        Ok(Place::in_folder(folder))
    }

    /// The same to add to it: a folder is made where there is none. An error where it holds what is nobody's backup, or is in the
    /// folder `apart`, with which it would be lost.
    pub fn to_write(address: &str, apart: &Path) -> anyhow::Result<Place> {
        let Some(folder) = folder(address)? else { return bucket(address) };
        let apart = std::path::absolute(apart).context("the data folder has no usable path")?;
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        ensure!(
            !real(&folder).starts_with(real(&apart)) && !folder.starts_with(&apart),
            "{} is in the data folder, and would be lost with it: name another place",
            folder.display()
        );
        ensure!(folder.join(HEADER).exists() || is_empty(&folder)?, FOREIGN);
        Ok(Place::in_folder(folder))
    }

    fn in_folder(folder: PathBuf) -> Place {
        Place { shown: folder.display().to_string(), files: Files::Folder(folder) }
    }

    /// The folder, or the bucket and its path; without what follows `?`, which may be a credential.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The whole of a small file; none when there is no such file.
    pub(crate) async fn read(&self, path: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let Some(mut reader) = self.open(path).await? else { return Ok(None) };
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).await.with_context(|| format!("failed to read {path}"))?;
        Ok(Some(bytes))
    }

    /// A file of any size, to be read; none when there is no such file.
    pub(crate) async fn open(&self, path: &str) -> anyhow::Result<Option<Reader>> {
        let failed = || format!("failed to read {path}");
        match &self.files {
            Files::Folder(folder) => {
                let name = within(folder, path).with_context(failed)?;
                let file = if_there(tokio::fs::File::open(name).await).with_context(failed)?;
                // Headers of what is encrypted are read in small pieces, and each read of a file is a task of its own.
                let buffered =
                    |file: tokio::fs::File| futures::io::BufReader::with_capacity(PIECE, file.compat());
                Ok(file.map(|file| Box::new(buffered(file)) as Reader))
            }
            Files::Bucket(bucket, root) => match bucket.get(&key(root, path)).await {
                Ok(found) => {
                    let pieces = found.into_stream().map_err(io::Error::from);
                    Ok(Some(Box::new(pieces.into_async_read()) as Reader))
                }
                Err(Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(error).with_context(failed),
            },
        }
    }

    /// Begins a file of any size. It has its name once the writer was shut down and [finished](Writer::finish).
    pub(crate) async fn create(&self, path: &str) -> io::Result<Writer> {
        match &self.files {
            Files::Folder(folder) => {
                let (folder, path) = (folder.clone(), path.to_owned());
                let part = blocking(move || Part::begin(&folder, &path)).await?;
                let file = part.file.as_file().try_clone()?;
                Ok(Writer { to: Box::new(tokio::fs::File::from_std(file)), part: Some(part) })
            }
            Files::Bucket(bucket, root) => {
                // Many files are written at one time: one part of each is enough.
                let writer = BufWriter::with_capacity(Arc::clone(bucket), key(root, path), PART);
                Ok(Writer { to: Box::new(writer.with_max_concurrency(1)), part: None })
            }
        }
    }

    /// Writes a small file: there under its name once it is whole.
    pub(crate) async fn write(&self, path: &str, bytes: Vec<u8>) -> anyhow::Result<()> {
        self.put(path, bytes, PutMode::Overwrite).await.with_context(|| format!("failed to write {path}"))
    }

    /// The same unless there is such a file; whether there was none.
    pub(crate) async fn write_new(&self, path: &str, bytes: Vec<u8>) -> anyhow::Result<bool> {
        match self.put(path, bytes, PutMode::Create).await {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error).with_context(|| format!("failed to write {path}")),
        }
    }

    async fn put(&self, path: &str, bytes: Vec<u8>, mode: PutMode) -> io::Result<()> {
        match &self.files {
            Files::Folder(folder) => {
                let (folder, path) = (folder.clone(), path.to_owned());
                blocking(move || {
                    let mut part = Part::begin(&folder, &path)?;
                    io::Write::write_all(&mut part.file, &bytes)?;
                    part.keep(&mode)
                })
                .await
            }
            Files::Bucket(bucket, root) => {
                let options = PutOptions { mode, ..PutOptions::default() };
                match bucket.put_opts(&key(root, path), bytes.into(), options).await {
                    Ok(_) => Ok(()),
                    Err(Error::AlreadyExists { .. }) => Err(io::ErrorKind::AlreadyExists.into()),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// Removes a file. One that is not there is no fault.
    pub(crate) async fn remove(&self, path: &str) -> anyhow::Result<()> {
        let failed = || format!("failed to remove {path}");
        match &self.files {
            Files::Folder(folder) => {
                let name = within(folder, path).with_context(failed)?;
                let removed = blocking(move || if_there(std::fs::remove_file(name))).await;
                removed.map(drop).with_context(failed)
            }
            Files::Bucket(bucket, root) => match bucket.delete(&key(root, path)).await {
                Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(error).with_context(failed),
            },
        }
    }

    /// Removes a folder (`backups/ID/`) without files. A bucket has no folders.
    pub(crate) async fn remove_folder(&self, path: &str) -> anyhow::Result<()> {
        let Files::Folder(folder) = &self.files else { return Ok(()) };
        let failed = || format!("failed to remove {path}");
        let name = within(folder, path).with_context(failed)?;
        let removed = blocking(move || if_there(std::fs::remove_dir(name))).await;
        removed.map(drop).with_context(failed)
    }

    /// All files below a folder (`content/`), none where there is no such folder.
    pub(crate) async fn list(&self, below: &str) -> anyhow::Result<Vec<Entry>> {
        let failed = || format!("failed to list {below}");
        match &self.files {
            Files::Folder(folder) => {
                let (folder, below) = (folder.clone(), below.to_owned());
                blocking(move || files_below(&folder, below)).await.with_context(failed)
            }
            Files::Bucket(bucket, root) => {
                let mut listed = bucket.list(Some(&key(root, below)));
                let mut entries = Vec::new();
                while let Some(found) = listed.try_next().await.with_context(failed)? {
                    let path = found.location.as_ref().strip_prefix(root.as_ref());
                    let path = path.unwrap_or_default().trim_start_matches('/').to_owned();
                    entries.push(Entry { path, bytes: found.size });
                }
                Ok(entries)
            }
        }
    }

    /// Whether there is nothing at all.
    pub(crate) async fn is_empty(&self) -> anyhow::Result<bool> {
        match &self.files {
            Files::Folder(folder) => is_empty(folder),
            Files::Bucket(bucket, root) => {
                let mut listed = bucket.list(Some(root));
                while let Some(found) = listed.try_next().await.context("failed to list the bucket")? {
                    // Consoles make a folder by an empty object of its name.
                    if found.location != *root {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    /// What was written so far, with the names of the files, survives a power cut from now on. A bucket sees to that itself.
    pub(crate) fn sync(&self) -> anyhow::Result<()> {
        let Files::Folder(folder) = &self.files else { return Ok(()) };
        let failed = || format!("failed to sync {}", folder.display());
        let opened = std::fs::File::open(folder).with_context(failed)?;
        rustix::fs::syncfs(&opened).with_context(failed)
    }

    /// Removes what writers that were killed have left half written, if it was not touched for a day.
    pub(crate) fn tidy(&self) -> anyhow::Result<()> {
        let Files::Folder(folder) = &self.files else { return Ok(()) };
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

/// The folder of an address; none where it is one of a bucket.
fn folder(address: &str) -> anyhow::Result<Option<PathBuf>> {
    if address.starts_with("s3://") {
        return Ok(None);
    }
    ensure!(
        !address.contains("://"),
        "backups are kept in a folder or at s3://BUCKET/PATH, and not at {address:?}"
    );
    std::path::absolute(address).map(Some).with_context(|| format!("{address:?} is no usable path"))
}

/// Whether there is no such folder, or nothing in it. A disk that was mounted for backups has a folder of its own.
fn is_empty(folder: &Path) -> anyhow::Result<bool> {
    let of_nobody = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name() == "lost+found" || entry.file_name() == TEMPORARY)
    };
    match std::fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.all(of_nobody)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error).with_context(|| format!("failed to list {}", folder.display())),
    }
}

fn bucket(address: &str) -> anyhow::Result<Place> {
    let (builder, root) = s3_bucket(address)?;
    let set = |key: AmazonS3ConfigKey| builder.get_config_value(&key);
    let name = set(AmazonS3ConfigKey::Bucket).unwrap_or_default();
    // Of such addresses the library takes the endpoint's host as it is. Without the bucket in it, paths would be taken for buckets.
    let is_hosted = set(AmazonS3ConfigKey::VirtualHostedStyleRequest).as_deref() == Some("true");
    let endpoint = set(AmazonS3ConfigKey::S3Endpoint).or_else(|| set(AmazonS3ConfigKey::Endpoint));
    ensure!(
        !is_hosted || endpoint.is_none_or(|endpoint| endpoint.contains(&format!("://{name}."))),
        "with virtual_hosted_style_request the endpoint names the bucket, as in https://{name}.HOST"
    );
    let backoff = BackoffConfig { init_backoff: FIRST_RETRY, max_backoff: LAST_RETRY, base: 2.0 };
    let bucket = builder
        // The time counts from the beginning of a read, which takes hours where the file is large and is taken up where it broke off.
        .with_retry(RetryConfig { backoff, max_retries: RETRIES, retry_timeout: Duration::from_hours(24) })
        // One file is removed at a time, and not every store knows how several are.
        .with_disable_bulk_delete(true)
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::ReadTimeout), TIMEOUT)
        .build()
        .context("the address of the bucket does not make sense")?;
    Ok(Place { shown: format!("s3://{name}/{root}"), files: Files::Bucket(Arc::new(bucket), root) })
}

fn key(root: &Key, path: &str) -> Key {
    root.parts().chain(path.split('/').map(Into::into)).collect()
}

/// The path of a file in a folder. Manifests have names of files, and somebody may have forged them: none leads out of the folder.
fn within(folder: &Path, path: &str) -> io::Result<PathBuf> {
    if Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
        return Ok(folder.join(path));
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "its path leads out of the place"))
}

/// All files below a folder, by their paths in the place.
fn files_below(folder: &Path, below: String) -> io::Result<Vec<Entry>> {
    let (mut entries, mut waiting) = (Vec::new(), vec![below]);
    while let Some(below) = waiting.pop() {
        let Some(found) = if_there(std::fs::read_dir(within(folder, &below)?))? else { continue };
        for entry in found {
            let entry = entry?;
            // Other names are nobody's here; and who prunes may remove a file meanwhile.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let Some(metadata) = if_there(entry.metadata())? else { continue };
            let path = format!("{below}{name}");
            if metadata.is_dir() {
                waiting.push(format!("{path}/"));
            } else if metadata.is_file() {
                entries.push(Entry { path, bytes: metadata.len() });
            }
        }
    }
    Ok(entries)
}

/// None where there is no such file or folder.
fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Work that waits for a disk, on a thread where nothing else waits for it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await?
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use tempfile::TempDir;
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    fn places(home: &TempDir) -> [Place; 2] {
        let bucket = Files::Bucket(Arc::new(InMemory::new()), Key::from("a/part"));
        [Place::in_folder(home.path().join("new")), Place { files: bucket, shown: String::new() }]
    }

    async fn read(place: &Place, path: &str) -> Option<Vec<u8>> {
        place.read(path).await.unwrap()
    }

    #[tokio::test]
    async fn a_folder_and_a_bucket_keep_files_alike() {
        let home = tempfile::tempdir().unwrap();
        for place in places(&home) {
            assert!(place.is_empty().await.unwrap());
            assert!(place.list("a/").await.unwrap().is_empty());
            assert_eq!(read(&place, "a/b").await, None);
            place.remove("a/b").await.unwrap();
            place.remove_folder("a/").await.unwrap();

            place.write("a/b", b"1".to_vec()).await.unwrap();
            place.write("a/b", b"23".to_vec()).await.unwrap();
            assert!(!place.write_new("a/b", b"4".to_vec()).await.unwrap());
            assert!(place.write_new("a/c/d", Vec::new()).await.unwrap());
            assert_eq!(read(&place, "a/b").await.unwrap(), b"23");
            let mut entries = place.list("a/").await.unwrap();
            entries.sort_by(|one, other| one.path.cmp(&other.path));
            let entry = |path: &str, bytes| Entry { path: path.to_owned(), bytes };
            assert_eq!(entries, [entry("a/b", 2), entry("a/c/d", 0)]);
            assert_eq!(place.list("a/c/").await.unwrap(), [entry("a/c/d", 0)]);
            assert!(!place.is_empty().await.unwrap());

            for path in ["a/b", "a/c/d"] {
                place.remove(path).await.unwrap();
            }
            place.remove_folder("a/c/").await.unwrap();
            assert!(place.list("a/").await.unwrap().is_empty());
        }
    }

    #[tokio::test]
    async fn a_file_has_its_name_once_it_is_whole() {
        let home = tempfile::tempdir().unwrap();
        for place in places(&home) {
            let large = vec![7; PART + 1];
            let mut broken_off = place.create("a/b").await.unwrap();
            broken_off.to.write_all(&large).await.unwrap();
            drop(broken_off);
            assert_eq!(read(&place, "a/b").await, None);

            let mut whole = place.create("a/b").await.unwrap();
            whole.to.write_all(&large).await.unwrap();
            whole.to.shutdown().await.unwrap();
            whole.finish().await.unwrap();
            assert_eq!(read(&place, "a/b").await.unwrap(), large);
        }
        let left = std::fs::read_dir(home.path().join("new").join(TEMPORARY)).unwrap();
        assert_eq!(left.count(), 0);
    }

    #[tokio::test]
    async fn no_path_leads_out_of_a_folder() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("secret"), "of somebody").unwrap();
        let [place, _] = places(&home);
        place.write("a", Vec::new()).await.unwrap();
        for path in ["../secret", "a/../../secret", "/etc/passwd"] {
            assert!(place.read(path).await.is_err(), "{path}");
            assert!(place.write(path, Vec::new()).await.is_err(), "{path}");
            assert!(place.remove(path).await.is_err(), "{path}");
        }
    }

    #[test]
    fn what_is_shown_of_a_bucket_has_no_credentials() {
        let place = bucket("s3://b/a/part?access_key_id=a&secret_access_key=hidden").unwrap();
        assert_eq!(place.shown(), "s3://b/a/part");
    }
}
