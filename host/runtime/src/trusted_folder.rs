//! Folders of code that this process runs. An account that can write to such a folder, or to a file
//! in it, runs native code with the rights of this process. So owner and mode of both are checked.
//! The check uses open descriptors, and the host then reads through the same descriptors, because a
//! path may lead somewhere else a moment later.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Mode bits that let other accounts write.
const WRITABLE: u32 = 0o022;
/// Mode bits that give other accounts any access.
const OTHERS: u32 = 0o077;
/// Mode of a folder that this process creates.
const OWN: u32 = 0o700;
const ROOT: u32 = 0;
const PROGRAM: &str = "/proc/self/exe";

/// A folder to which only trusted accounts can write.
pub(crate) struct TrustedFolder {
    directory: File,
    configured: PathBuf,
    owners: Vec<u32>,
}

impl TrustedFolder {
    /// Opens a folder that belongs to this process's account or to root, and creates it if it is
    /// missing. If this account owns the folder, removes all access of other accounts. If other
    /// accounts could write to the folder before, calls `empty` to delete its content. The error
    /// says why the folder is not trusted.
    pub(crate) fn own(path: &Path, empty: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<TrustedFolder> {
        make(path)?;
        let folder = TrustedFolder::open(path, vec![ROOT, account()])?;
        let metadata = folder.directory.metadata()?;
        if metadata.uid() == account() && metadata.mode() & OTHERS != 0 {
            folder.directory.set_permissions(Permissions::from_mode(OWN))?;
            if metadata.mode() & WRITABLE != 0 {
                empty(&folder.path())?;
                let path = path.display();
                tracing::warn!(%path, "deleted the compiled code, because other accounts could write to it");
            }
        }
        folder.checked()
    }

    /// Opens a folder that was installed with the program. It may belong to this process's account,
    /// to root, or to the account that owns the program and could change the program itself. The
    /// error says why the folder is not trusted.
    pub(crate) fn installed(path: &Path) -> io::Result<TrustedFolder> {
        let program = fs::metadata(PROGRAM).map(|program| program.uid());
        let owners = [ROOT, account()].into_iter().chain(program).collect();
        TrustedFolder::open(path, owners)?.checked()
    }

    fn open(path: &Path, owners: Vec<u32>) -> io::Result<TrustedFolder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        Ok(TrustedFolder { directory, configured: path.to_owned(), owners })
    }

    fn checked(self) -> io::Result<TrustedFolder> {
        check(&self.directory.metadata()?, &self.owners)?;
        Ok(self)
    }

    /// Opens a file of the folder for reading. The error says why the file is not trusted.
    pub(crate) fn file(&self, name: &str) -> io::Result<File> {
        // `NONBLOCK`: opening a pipe must not wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&self.directory, name, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        check(&metadata, &self.owners)?;
        Ok(file)
    }

    /// A path to the open folder, even if its configured path now leads elsewhere. The path is
    /// valid as long as this value lives.
    pub(crate) fn path(&self) -> PathBuf {
        opened_path(&self.directory)
    }

    /// The folder's name, for the log.
    pub(crate) fn configured(&self) -> &Path {
        &self.configured
    }
}

/// A path to an open file, valid as long as the file is open.
pub(crate) fn opened_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Creates the folder for this account only. Root does not create a folder within another account's
/// folder, because that account could not use the new folder.
fn make(path: &Path) -> io::Result<()> {
    let parent = path.parent().and_then(|parent| fs::metadata(parent).ok());
    let is_foreign = parent.is_some_and(|parent| account() == ROOT && parent.uid() != ROOT);
    if is_foreign && !path.exists() {
        return Err(io::Error::other("it would be created in a folder of another account"));
    }
    DirBuilder::new().recursive(true).mode(OWN).create(path)
}

fn account() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn check(metadata: &Metadata, owners: &[u32]) -> io::Result<()> {
    if !owners.contains(&metadata.uid()) {
        return Err(io::Error::other(format!(
            "it belongs to the account {}, but this process runs as {}",
            metadata.uid(),
            account()
        )));
    }
    if metadata.mode() & WRITABLE != 0 {
        let mode = metadata.mode() & 0o7777;
        return Err(io::Error::other(format!("other accounts can write to it (mode {mode:04o})")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn own(path: &Path) -> io::Result<TrustedFolder> {
        TrustedFolder::own(path, |_| Ok(()))
    }

    #[test]
    fn a_file_that_others_can_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("code");
        fs::write(&path, "x").unwrap();
        for (bits, trusted) in [(0o600, true), (0o644, true), (0o664, false), (0o606, false)] {
            mode(&path, bits);
            assert_eq!(own(folder.path()).unwrap().file("code").is_ok(), trusted, "{bits:o}");
        }
    }

    #[test]
    fn a_link_and_a_pipe_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("code"), "x").unwrap();
        std::os::unix::fs::symlink(folder.path().join("code"), folder.path().join("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("pipe"), Mode::RUSR).unwrap();
        let trusted = own(folder.path()).unwrap();
        assert!(trusted.file("code").is_ok());
        assert!(trusted.file("link").is_err() && trusted.file("pipe").is_err());
    }

    #[test]
    fn a_folder_that_others_could_write_to_is_closed_and_emptied() {
        let folder = tempfile::tempdir().unwrap();
        mode(folder.path(), 0o770);
        assert!(TrustedFolder::installed(folder.path()).is_err());
        assert!(
            TrustedFolder::own(folder.path(), |_| Err(io::Error::other("it cannot be emptied"))).is_err()
        );
        mode(folder.path(), 0o770);
        let mut emptied = false;
        let empty = |_: &Path| {
            emptied = true;
            Ok(())
        };
        assert!(TrustedFolder::own(folder.path(), empty).is_ok() && emptied);
        assert_eq!(fs::metadata(folder.path()).unwrap().mode() & 0o777, OWN);
    }

    #[test]
    fn a_folder_of_another_account_is_refused() {
        if account() != ROOT {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("code"), "x").unwrap();
        std::os::unix::fs::chown(path.join("code"), Some(65534), None).unwrap();
        assert!(own(&path).unwrap().file("code").is_err());
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        let refused = own(&path).err().unwrap().to_string();
        assert!(refused.contains("account 65534"), "{refused}");
        std::os::unix::fs::chown(folder.path(), Some(65534), None).unwrap();
        assert!(own(&folder.path().join("new")).is_err(), "root creates no folder there");
    }
}
