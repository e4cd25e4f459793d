//! Restricts the data folder to its owner, whatever the umask and however the folder was created.
//! The folder contains password hashes, sealed secrets and, unless the settings contain it, the
//! sealing key.
//!
//! New files are private from the beginning ([`make_files_private`]). Existing files are restricted
//! at the start, and the log says so. Only this program's own files are changed, because the folder
//! may contain files of other programs.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, ensure};
use rustix::fs::Mode;

use packhouse_config::Config;

/// The umask with which the process was started.
static ORIGINAL_UMASK: OnceLock<Mode> = OnceLock::new();
/// Permission bits for accounts other than the owner.
const OTHERS: u32 = 0o077;
/// Sticky bit: anyone can create files in the folder, but remove only their own.
const STICKY: u32 = 0o1000;
/// Suffixes of the files that SQLite keeps beside a database.
const SQLITE_SUFFIXES: [&str; 3] = ["-wal", "-shm", "-journal"];
/// Files and folders of this program in the data folder, besides the database. A restricted folder
/// protects its contents.
const OWN: [&str; 6] = ["sealing.key", "serve.lock", "packhouse-database", "blobs", "staging", "uploads"];
/// Folder of compiled code. The runtime restricts this folder itself, and discards code that other
/// accounts could have written.
const CACHE: &str = "cache";
/// Temporary file of an interrupted restore, with a sealing key.
const RESTORED: &str = "sealing.key-restored";

/// Files that exist once a server has used the folder, besides the database.
const SECRET: [&str; 2] = ["sealing.key", "packhouse-database"];

/// Sets the umask so that no other account can access files that this process creates from now on.
pub(crate) fn make_files_private() {
    let before = rustix::process::umask(Mode::from_raw_mode(OTHERS));
    // Cannot fail: it is called once, at the beginning.
    let _ = ORIGINAL_UMASK.set(before);
}

/// Restores the original umask, for commands that write files for their author and no secrets.
pub(crate) fn restore_umask() {
    if let Some(before) = ORIGINAL_UMASK.get() {
        rustix::process::umask(*before);
    }
}

/// Creates the data folder if needed and restricts it and its contents. Fails if the folder cannot
/// be created or is shared: the root, or a folder with the sticky bit and files of other programs.
pub(crate) fn data_folder(config: &Config) -> anyhow::Result<()> {
    let data = &config.data;
    fs::create_dir_all(data)
        .with_context(|| format!("failed to create the data folder {}", data.display()))?;
    let metadata = fs::metadata(data)
        .with_context(|| format!("failed to inspect the data folder {}", data.display()))?;
    let root = data.canonicalize().is_ok_and(|path| path.parent().is_none());
    ensure!(
        !root && (metadata.mode() & STICKY == 0 || !has_foreign_files(config)?),
        "the data folder {} is shared with other programs: name a separate folder with --data",
        data.display()
    );
    let own = inside(config);
    // A new, empty folder has disclosed nothing, so its permissions are not worth a warning.
    let used = config.store.sqlite_file().is_some_and(|database| database.exists())
        || SECRET.iter().any(|name| data.join(name).exists());
    close(data, used);
    own.iter().filter(|path| !path.is_symlink()).for_each(|path| close(path, used));
    Ok(())
}

/// Returns the paths of this program in the data folder, and the database wherever it is.
fn inside(config: &Config) -> Vec<PathBuf> {
    let mut inside: Vec<PathBuf> = OWN.iter().map(|name| config.data.join(name)).collect();
    if let Some(database) = config.store.sqlite_file() {
        inside.extend(SQLITE_SUFFIXES.iter().map(|end| with_end(&database, end)));
        inside.push(database);
    }
    inside
}

/// Returns true if the data folder exists and contains files of other programs.
pub(crate) fn has_foreign_files(config: &Config) -> anyhow::Result<bool> {
    let own = inside(config);
    let entries = match fs::read_dir(&config.data) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let is_known = |name: OsString| ["lost+found", CACHE, RESTORED].iter().any(|known| name == *known);
        if !own.contains(&entry.path()) && !is_known(entry.file_name()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    PathBuf::from(name)
}

/// Restricts a file or folder to its owner. Logs a change, as a warning if a server has `used` the
/// data folder before. Logs an error if the path belongs to another account and cannot be changed.
fn close(path: &Path, used: bool) {
    match narrow(path) {
        Ok(None) => {}
        Ok(Some(mode)) => {
            let mode = format!("{:04o}", mode & 0o7777);
            let path = path.display();
            if used {
                tracing::warn!(%path, mode, "removed the access of other accounts");
            } else {
                tracing::info!(%path, mode, "removed the access of other accounts");
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            tracing::error!(path = %path.display(), %error, "other accounts have access, and it cannot be removed");
        }
    }
}

/// Removes all permissions of other accounts. Returns the previous mode if other accounts had
/// permissions.
fn narrow(path: &Path) -> io::Result<Option<u32>> {
    let mode = fs::metadata(path)?.mode();
    if mode & OTHERS == 0 {
        return Ok(None);
    }
    fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS))?;
    Ok(Some(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_accessible_files_are_restricted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        assert_eq!(narrow(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::write(&path, "x").unwrap();
        for (before, after, had_access) in [(0o644, 0o600, true), (0o750, 0o700, true), (0o600, 0o600, false)]
        {
            fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            assert_eq!(narrow(&path).unwrap().is_some(), had_access);
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, after);
        }
        assert_eq!(with_end(Path::new("/d/x.db"), "-wal"), Path::new("/d/x.db-wal"));
    }
}
