//! The data folder is its owner's alone, whatever the umask was and however it was made: it holds hashes of passwords, sealed
//! secrets and, unless the operator chose one, the key that they are sealed with.
//!
//! What the program makes is closed from the beginning ([`make_files_private`]). What is there already is closed at the start, and
//! the log says so. Only names of our own are touched: a folder may hold other things.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, ensure};
use rustix::fs::Mode;

use packhouse_config::Config;

/// What the process was started with.
static BEFORE: OnceLock<Mode> = OnceLock::new();
/// What others may do with a file or folder.
const OTHERS: u32 = 0o077;
/// Anyone makes files in such a folder, and removes their own.
const STICKY: u32 = 0o1000;
/// What SQLite keeps beside a database, by what is put behind its name.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];
/// What lies in the data folder besides the database. Of folders that are closed nothing in them is open.
const OWN: [&str; 6] = ["sealing.key", "serve.lock", "packhouse-database", "blobs", "staging", "uploads"];
/// Compiled code. The runtime closes this folder itself, since it throws away what others could have put there.
const CACHE: &str = "cache";
/// A key on its way, which a restore that was broken off has left.
const RESTORED: &str = "sealing.key-restored";

/// What is there once a server has used the folder, besides the database.
const SECRET: [&str; 2] = ["sealing.key", "packhouse-database"];

/// Takes from every file and folder that this process makes from now on what others might do with it.
pub(crate) fn make_files_private() {
    let before = rustix::process::umask(Mode::from_raw_mode(OTHERS));
    // Asked for once: at the beginning.
    let _ = BEFORE.set(before);
}

/// Lets files be as whoever started the program has them: for commands that write for their author and hold nothing secret.
pub(crate) fn as_the_author_has_it() {
    if let Some(before) = BEFORE.get() {
        rustix::process::umask(*before);
    }
}

/// Makes the data folder where it is not there, and closes it and what it holds to others. An error where it cannot be made, or is a
/// folder that everybody uses: the root, or one in which anyone makes files and somebody has.
pub(crate) fn data_folder(config: &Config) -> anyhow::Result<()> {
    let data = &config.data;
    fs::create_dir_all(data).with_context(|| format!("failed to make the data folder {}", data.display()))?;
    let metadata = fs::metadata(data)
        .with_context(|| format!("failed to look at the data folder {}", data.display()))?;
    let root = data.canonicalize().is_ok_and(|path| path.parent().is_none());
    ensure!(
        !root && (metadata.mode() & STICKY == 0 || !holds_others(config)?),
        "the data folder {} is one that everybody uses: name one of its own with --data",
        data.display()
    );
    let own = inside(config);
    // A folder that was made for this server and holds nothing yet has disclosed nothing: that is no warning.
    let used = config.store.sqlite_file().is_some_and(|database| database.exists())
        || SECRET.iter().any(|name| data.join(name).exists());
    close(data, used);
    own.iter().filter(|path| !path.is_symlink()).for_each(|path| close(path, used));
    Ok(())
}

/// What of our own lies in the data folder, and the database wherever it is.
fn inside(config: &Config) -> Vec<PathBuf> {
    let mut inside: Vec<PathBuf> = OWN.iter().map(|name| config.data.join(name)).collect();
    if let Some(database) = config.store.sqlite_file() {
        inside.extend(BESIDE.iter().map(|end| with_end(&database, end)));
        inside.push(database);
    }
    inside
}

/// Whether the data folder is there and holds what is not ours.
pub(crate) fn holds_others(config: &Config) -> anyhow::Result<bool> {
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

/// Closes a file or folder to others, which is told in the log, as a warning where it was `used`. So is that one cannot be closed,
/// since it is somebody else's.
fn close(path: &Path, used: bool) {
    match narrow(path) {
        Ok(None) => {}
        Ok(Some(mode)) => {
            let mode = format!("{:04o}", mode & 0o7777);
            let path = path.display();
            if used {
                tracing::warn!(%path, mode, "this was open to other accounts and is closed to them now");
            } else {
                tracing::info!(%path, mode, "this was open to other accounts and is closed to them now");
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            tracing::error!(path = %path.display(), %error, "this is open to other accounts and cannot be closed to them");
        }
    }
}

/// Takes from a file or folder what others might do with it; its mode from before where they might do anything.
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
    fn only_what_is_open_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        assert_eq!(narrow(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::write(&path, "x").unwrap();
        for (before, after, told) in [(0o644, 0o600, true), (0o750, 0o700, true), (0o600, 0o600, false)] {
            fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            assert_eq!(narrow(&path).unwrap().is_some(), told);
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, after);
        }
        assert_eq!(with_end(Path::new("/d/x.db"), "-wal"), Path::new("/d/x.db-wal"));
    }
}
