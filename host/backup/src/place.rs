//! Where backups are: a folder or a part of a bucket, through OpenDAL.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use futures::TryStreamExt;
use opendal::layers::{RetryLayer, TimeoutLayer};
use opendal::services::{Fs, S3};
use opendal::{ErrorKind, Operator};

/// Says that a place is one of backups.
pub(crate) const HEADER: &str = "packhouse-backups.json";
/// What is said of a place that is not one and not empty.
pub(crate) const FOREIGN: &str = "this is no place of backups (packhouse-backups.json is missing) and not empty: name a folder or a path of its own";
/// Where a folder's files are until they are whole.
const TEMPORARY: &str = "tmp";
/// How long S3 may take for one request, and for a part of a large object.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A place, which may be empty.
#[derive(Clone, Debug)]
pub struct Place {
    pub(crate) files: Operator,
    folder: Option<PathBuf>,
    shown: String,
}

/// A file of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) bytes: u64,
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
        let fs = Fs::default().root(&text(&folder)?);
        let files =
            Operator::new(fs).with_context(|| format!("failed to use the folder {}", folder.display()))?;
        Ok(Place { files, shown: folder.display().to_string(), folder: Some(folder) })
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
        let fs = Fs::default().root(&text(&folder)?).atomic_write_dir(&text(&folder.join(TEMPORARY))?);
        let files =
            Operator::new(fs).with_context(|| format!("failed to use the folder {}", folder.display()))?;
        Ok(Place { files, shown: folder.display().to_string(), folder: Some(folder) })
    }

    /// The folder, or the bucket and its path; without what follows `?`, which may be a credential.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The whole of a small file; none when there is no such file.
    pub(crate) async fn read(&self, path: &str) -> anyhow::Result<Option<Vec<u8>>> {
        match self.files.read(path).await {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("failed to read {path}")),
        }
    }

    /// Writes a small file: there under its name once it is whole.
    pub(crate) async fn write(&self, path: &str, bytes: Vec<u8>) -> anyhow::Result<()> {
        self.files.write(path, bytes).await.with_context(|| format!("failed to write {path}"))?;
        Ok(())
    }

    /// The same unless there is such a file; whether there was none.
    pub(crate) async fn write_new(&self, path: &str, bytes: Vec<u8>) -> anyhow::Result<bool> {
        match self.files.write_with(path, bytes).if_not_exists(true).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::ConditionNotMatch => Ok(false),
            Err(error) => Err(error).with_context(|| format!("failed to write {path}")),
        }
    }

    /// Removes a file. One that is not there is no fault.
    pub(crate) async fn remove(&self, path: &str) -> anyhow::Result<()> {
        self.files.delete(path).await.with_context(|| format!("failed to remove {path}"))
    }

    /// All files below a folder (`content/`), none where there is no such folder.
    pub(crate) async fn list(&self, folder: &str) -> anyhow::Result<Vec<Entry>> {
        let failed = || format!("failed to list {folder}");
        let mut listed = match self.files.lister_with(folder).recursive(true).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed.with_context(failed)?,
        };
        let mut entries = Vec::new();
        loop {
            match listed.try_next().await {
                Ok(Some(entry)) if entry.metadata().is_file() => {
                    let bytes = entry.metadata().content_length();
                    entries.push(Entry { path: entry.path().to_owned(), bytes });
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(entries),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(entries),
                Err(error) => return Err(error).with_context(failed),
            }
        }
    }

    /// Whether there is nothing at all.
    pub(crate) async fn is_empty(&self) -> anyhow::Result<bool> {
        match &self.folder {
            Some(folder) => is_empty(folder),
            None => {
                let mut listed = self
                    .files
                    .lister_with("")
                    .recursive(true)
                    .limit(2)
                    .await
                    .context("failed to list the bucket")?;
                let mut file = false;
                while let Some(entry) = listed.try_next().await.context("failed to list the bucket")? {
                    file = entry.metadata().is_file();
                    if file {
                        break;
                    }
                }
                Ok(!file)
            }
        }
    }

    /// What was written so far, with the names of the files, survives a power cut from now on. A bucket sees to that itself.
    pub(crate) fn sync(&self) -> anyhow::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let failed = || format!("failed to sync {}", folder.display());
        let opened = std::fs::File::open(folder).with_context(failed)?;
        rustix::fs::syncfs(&opened).with_context(failed)
    }

    /// Removes what writers that were killed have left half written, if it was not touched for a day.
    pub(crate) fn tidy(&self) -> anyhow::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
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

fn text(path: &Path) -> anyhow::Result<String> {
    Ok(path.to_str().context("the path of the folder is no UTF-8")?.to_owned())
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
    opendal::install_default();
    let url = url::Url::parse(address).context("the address of the bucket is no address")?;
    let name = url.host_str().context("the address names no bucket: s3://BUCKET/PATH?endpoint=…")?;
    let environment = |names: &[&str]| names.iter().find_map(|name| std::env::var(name).ok());
    let mut endpoint = environment(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]);
    let mut region = environment(&["AWS_REGION", "AWS_DEFAULT_REGION"]);
    let mut allow_http = environment(&["AWS_ALLOW_HTTP"]).is_some_and(|text| text == "true");
    let mut s3 = S3::default().bucket(name).root(url.path());
    for (parameter, value) in url.query_pairs() {
        s3 = match parameter.strip_prefix("aws_").unwrap_or(&parameter) {
            "endpoint" | "endpoint_url" => {
                endpoint = Some(value.into_owned());
                s3
            }
            "region" => {
                region = Some(value.into_owned());
                s3
            }
            "allow_http" => {
                allow_http = value == "true";
                s3
            }
            "access_key_id" => s3.access_key_id(&value),
            "secret_access_key" => s3.secret_access_key(&value),
            "session_token" | "token" => s3.session_token(&value),
            "virtual_hosted_style_request" if value == "true" => s3.enable_virtual_host_style(),
            "virtual_hosted_style_request" => s3,
            other => bail!("the address of the bucket has a parameter that is not known: {other}"),
        };
    }
    if let Some(endpoint) = endpoint {
        let plain = endpoint.starts_with("http://");
        ensure!(
            allow_http || !plain,
            "the endpoint of the bucket is plain HTTP: add allow_http=true where that is meant"
        );
        s3 = s3.endpoint(&endpoint);
    }
    let s3 = s3.region(region.as_deref().unwrap_or("us-east-1"));
    let files = Operator::new(s3).context("the address of the bucket does not make sense")?;
    let timeout = TimeoutLayer::new().with_timeout(TIMEOUT).with_io_timeout(TIMEOUT);
    let shown = format!("s3://{name}{}", url.path());
    Ok(Place { files: files.layer(timeout).layer(RetryLayer::new().with_jitter()), folder: None, shown })
}
