//! Compiled components as files of a folder. The host maps the files into memory instead of reading
//! them. So a start loads only the pages that it uses, and the system may drop unused pages. The
//! files are not compressed, because each start would have to decompress them.
//!
//! There are two kinds of folders: the cache that this program writes, and the folder that was
//! installed with it. Only this module runs compiled code, and only from files that
//! [`TrustedFolder`] has checked.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;
use wasmtime::component::Component;
use wasmtime::{Engine, Error};

use crate::description_cache::{self, DescriptionCache};
use crate::trusted_folder::{TrustedFolder, opened_path};

const EXTENSION: &str = "cwasm";
/// Most bytes in the cache. Above it, the least recently loaded files are deleted.
const BYTES_AT_MOST: u64 = 1 << 30;
/// A time limit longer than any write of a file takes. A killed process left behind any older file
/// with a temporary name.
const WRITTEN_WITHIN: Duration = Duration::from_secs(3600);
/// Folders of an earlier version: wasmtime's own cache in this folder, and markers next to it.
const EARLIER: [&str; 2] = ["modules", "../compiled-before"];

/// Folder of compiled code for one engine.
pub(crate) struct CompiledFiles {
    folder: TrustedFolder,
    /// Prefix of file names, which identifies the engine. Another version or other settings use
    /// another prefix.
    prefix: String,
    descriptions: DescriptionCache,
}

impl CompiledFiles {
    /// Opens the cache of this engine and creates the folder if it is missing. Returns none and
    /// logs the reason if the folder is not trusted or cannot be created.
    pub(crate) fn open(engine: &Engine, folder: &Path) -> Option<CompiledFiles> {
        match TrustedFolder::own(folder, empty) {
            Ok(trusted) => Some(CompiledFiles::of(trusted, engine)),
            Err(error) => {
                let folder = folder.display();
                tracing::warn!(%folder, %error, "cannot cache compiled plugins, so each start compiles them");
                None
            }
        }
    }

    /// Opens the folder that `baseline` compiled at packaging time. Returns none if the folder does
    /// not exist. Also returns none, and logs the reason, if it is not trusted.
    pub(crate) fn installed(baseline: &Engine, folder: &Path) -> Option<CompiledFiles> {
        match TrustedFolder::installed(folder) {
            Ok(trusted) => Some(CompiledFiles::of(trusted, baseline)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let folder = folder.display();
                tracing::warn!(%folder, %error, "cannot use the compiled plugins of the package");
                None
            }
        }
    }

    fn of(folder: TrustedFolder, engine: &Engine) -> CompiledFiles {
        let descriptions = DescriptionCache::beside(&folder.path());
        CompiledFiles { folder, prefix: prefix(engine), descriptions }
    }

    /// Descriptions that the components returned when they were compiled.
    pub(crate) fn descriptions(&self) -> &DescriptionCache {
        &self.descriptions
    }

    fn path(&self, digest: &str) -> PathBuf {
        self.folder.path().join(file_name(&self.prefix, digest))
    }

    /// Loads the compiled code of the component with this digest, if it is cached and usable.
    pub(crate) fn load(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let (file, loaded) = self.find(engine, digest)?;
        // Sets the time, so that `tidy` does not delete a file in use as the oldest. A failure only
        // costs a later compilation.
        let _ = file.set_modified(SystemTime::now());
        Some(loaded)
    }

    /// Loads like [`load`](Self::load), without touching the file's time.
    pub(crate) fn load_untouched(&self, engine: &Engine, digest: &str) -> Option<Component> {
        Some(self.find(engine, digest)?.1)
    }

    fn find(&self, engine: &Engine, digest: &str) -> Option<(File, Component)> {
        let name = file_name(&self.prefix, digest);
        let unusable = |error: &dyn std::fmt::Display| {
            let file = self.folder.configured().join(&name);
            tracing::warn!(file = %file.display(), "cannot use compiled code, so the plugin is compiled \
                again: {error:#}");
        };
        let mut file = match self.folder.file(&name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                unusable(&error);
                return None;
            }
        };
        let loaded = map(engine, &file).or_else(|_| copy(engine, &mut file));
        Some((file, loaded.inspect_err(|error| unusable(error)).ok()?))
    }

    /// Caches the code that `compile` writes for the component with this digest, and loads it.
    /// Returns none and logs the reason if the code is unusable. Returns the errors of `compile`
    /// and of the folder.
    pub(crate) fn store_written<E: From<std::io::Error>>(
        &self,
        engine: &Engine,
        digest: &str,
        compile: impl FnOnce(&File) -> Result<(), E>,
    ) -> Result<Option<Component>, E> {
        self.write(&self.path(digest), compile)?;
        self.tidy();
        Ok(self.load(engine, digest))
    }

    /// Caches the code that this engine compiled for the component with this digest, and loads it.
    /// If it cannot be cached, logs the reason and loads the code anyway.
    pub(crate) fn store(&self, engine: &Engine, digest: &str, code: &[u8]) -> Result<Component, Error> {
        let write = |mut file: &File| file.write_all(code);
        if let Err(error) = self.write(&self.path(digest), write) {
            tracing::warn!(folder = %self.folder.configured().display(), %error, "cannot cache compiled code, \
                so the next start compiles it again");
            return of_own_bytes(engine, code);
        }
        self.tidy();
        self.load(engine, digest).map_or_else(|| of_own_bytes(engine, code), Ok)
    }

    /// Writes a file under a temporary name and renames it once all bytes are on disk, so that an
    /// existing file is always complete.
    fn write<E: From<std::io::Error>>(
        &self,
        path: &Path,
        write: impl FnOnce(&File) -> Result<(), E>,
    ) -> Result<(), E> {
        let file = NamedTempFile::new_in(self.folder.path())?;
        write(file.as_file())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Removes files above the size bound, and files that a killed process left half written. A
    /// process that has mapped a removed file can still use it. Errors only waste space.
    fn tidy(&self) {
        let folder = self.folder.path();
        for earlier in EARLIER {
            let _ = fs::remove_dir_all(folder.join(earlier));
        }
        let files = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut files: Vec<(SystemTime, u64, PathBuf)> = files
            .filter_map(|file| file.metadata().ok().map(|of| (file.path(), of)))
            .filter_map(|(file, of)| Some((of.modified().ok()?, of.len(), file)))
            .collect();
        let long_ago = SystemTime::now() - WRITTEN_WITHIN;
        files.retain(|(modified, _, file)| {
            if !is_code(file) && *modified < long_ago {
                let _ = fs::remove_file(file);
            }
            is_code(file)
        });
        files.sort();
        let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, length, file) in files {
            if bytes <= BYTES_AT_MOST {
                return;
            }
            let _ = fs::remove_file(file);
            bytes -= length;
        }
    }
}

/// Writes compiled code into a folder that is installed with the program, for any engine. Returns
/// whether the file is new. All users may read the file.
pub(crate) fn install(
    engine: &Engine,
    folder: &Path,
    digest: &str,
    compile: impl FnOnce() -> Result<Vec<u8>, Error>,
) -> Result<bool, Error> {
    let path = folder.join(file_name(&prefix(engine), digest));
    if path.exists() {
        return Ok(false);
    }
    let mut file = tempfile::Builder::new().permissions(readable()).tempfile_in(folder)?;
    file.write_all(&compile()?)?;
    // Set explicitly, because the umask may restrict it.
    file.as_file().set_permissions(readable())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(true)
}

/// Removes compiled code from a folder unless this engine made it from one of these components.
pub(crate) fn remove_others(engine: &Engine, folder: &Path, digests: &[String]) -> io::Result<()> {
    let names: Vec<String> = digests.iter().map(|digest| file_name(&prefix(engine), digest)).collect();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        let is_named = path.file_name().is_some_and(|name| names.iter().any(|known| name == known.as_str()));
        if is_code(&path) && !is_named {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn readable() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o644)
}

fn prefix(engine: &Engine) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn file_name(prefix: &str, digest: &str) -> String {
    format!("{prefix}-{}.{EXTENSION}", digest.replace(':', "-"))
}

fn is_code(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == EXTENSION)
}

/// Deletes the cached code and descriptions in a folder.
fn empty(folder: &Path) -> io::Result<()> {
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        if is_code(&path) {
            fs::remove_file(path)?;
        }
    }
    match fs::remove_dir_all(folder.join(description_cache::FOLDER)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[expect(unsafe_code, reason = "wasmtime has no safe function to load compiled code")]
fn map(engine: &Engine, file: &File) -> Result<Component, Error> {
    // SAFETY: only trusted accounts can write to the file and to its folder. They write only code
    // that an engine compiled. Each file is put in place complete, by renaming, and never changes
    // afterwards. wasmtime refuses code of another version, other settings or another processor.
    // The path refers to the file that `TrustedFolder` checked.
    unsafe { Component::deserialize_file(engine, opened_path(file)) }
}

/// Loads a copy of the file into memory. A file system mounted with `noexec` forbids mapping code,
/// but not running a copy.
fn copy(engine: &Engine, file: &mut File) -> Result<Component, Error> {
    let mut code = Vec::new();
    file.read_to_end(&mut code)?;
    of_own_bytes(engine, &code)
}

#[expect(unsafe_code, reason = "wasmtime has no safe function to load compiled code")]
fn of_own_bytes(engine: &Engine, code: &[u8]) -> Result<Component, Error> {
    // SAFETY: this engine compiled the bytes, just now or in a file that meets the conditions
    // above.
    unsafe { Component::deserialize(engine, code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:00";

    fn folder_with(code: Option<&[u8]>) -> (Engine, tempfile::TempDir, CompiledFiles) {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::default();
        let files = CompiledFiles::open(&engine, folder.path()).unwrap();
        if let Some(code) = code {
            files.write(&files.path(DIGEST), |mut file| file.write_all(code)).unwrap();
        }
        (engine, folder, files)
    }

    fn compiled() -> Vec<u8> {
        let component = wat::parse_str("(component (core module (func)))").unwrap();
        Engine::default().precompile_component(&component).unwrap()
    }

    #[test]
    fn cached_code_is_loaded() {
        let (engine, _folder, files) = folder_with(None);
        assert!(files.load(&engine, DIGEST).is_none());
        files.store(&engine, DIGEST, &compiled()).unwrap();
        assert!(files.load(&engine, DIGEST).is_some());
        assert!(files.load(&engine, "sha256:01").is_none());
    }

    #[test]
    fn invalid_or_truncated_code_is_not_loaded() {
        let code = compiled();
        for broken in [&b""[..], b"no code", &code[..code.len() / 2], &code[..code.len() - 1]] {
            let (engine, _folder, files) = folder_with(Some(broken));
            assert!(files.load(&engine, DIGEST).is_none(), "{} bytes", broken.len());
            files.store(&engine, DIGEST, &code).unwrap();
            assert!(files.load(&engine, DIGEST).is_some());
        }
    }

    #[test]
    fn code_for_another_processor_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let component = wat::parse_str("(component (core module (func)))").unwrap();
        let baseline = crate::engine::baseline().unwrap();
        let compile = || baseline.precompile_component(&component);
        assert!(install(&baseline, folder.path(), DIGEST, compile).unwrap());
        assert!(!install(&baseline, folder.path(), DIGEST, || panic!("it is there")).unwrap());
        let files = CompiledFiles::installed(&baseline, folder.path()).unwrap();
        let mut config = crate::engine::base();
        assert!(files.load_untouched(&Engine::new(&config).unwrap(), DIGEST).is_some());
        #[expect(unsafe_code, reason = "the processor seems to have less than it has")]
        // SAFETY: nothing is run.
        unsafe {
            config.detect_host_feature(|_| Some(false));
        }
        let older = Engine::new(&config);
        assert!(older.is_err() || files.load_untouched(&older.unwrap(), DIGEST).is_none());
        remove_others(&baseline, folder.path(), &["sha256:01".to_owned()]).unwrap();
        assert!(files.load_untouched(&baseline, DIGEST).is_none());
    }

    #[test]
    fn code_that_others_can_write_is_not_used() {
        let (engine, folder, files) = folder_with(Some(&compiled()));
        assert!(files.load(&engine, DIGEST).is_some());
        let path = folder.path().join(file_name(&files.prefix, DIGEST));
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o660)).unwrap();
        assert!(files.load(&engine, DIGEST).is_none());
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o770)).unwrap();
        assert!(CompiledFiles::open(&engine, folder.path()).is_some());
        assert!(!path.exists(), "earlier code is deleted");
    }

    #[test]
    fn code_that_cannot_be_cached_is_loaded_anyway() {
        let (engine, folder, files) = folder_with(None);
        folder.close().unwrap();
        assert!(files.store(&engine, DIGEST, &compiled()).is_ok());
        assert!(files.load(&engine, DIGEST).is_none());
    }

    #[test]
    fn files_of_earlier_versions_and_of_killed_processes_are_removed() {
        let (engine, folder, files) = folder_with(None);
        fs::create_dir_all(folder.path().join("modules/wasmtime-1")).unwrap();
        let (left, written) = (folder.path().join(".left"), folder.path().join(".written"));
        File::create(&left).unwrap().set_modified(SystemTime::now() - WRITTEN_WITHIN * 2).unwrap();
        File::create(&written).unwrap();
        files.store(&engine, DIGEST, &compiled()).unwrap();
        assert!(!folder.path().join("modules").exists() && !left.exists());
        assert!(written.exists() && files.load(&engine, DIGEST).is_some());
    }

    #[test]
    fn the_least_recently_loaded_code_is_deleted_first() {
        let (engine, _folder, files) = folder_with(None);
        let mut now = SystemTime::now();
        for digest in ["sha256:01", "sha256:02", "sha256:03"] {
            let file = File::create(files.path(digest)).unwrap();
            // The file is sparse and takes no space.
            file.set_len(BYTES_AT_MOST / 2 - 1).unwrap();
            now -= WRITTEN_WITHIN;
            file.set_modified(now).unwrap();
        }
        files.store(&engine, DIGEST, &compiled()).unwrap();
        let there = ["sha256:01", "sha256:02", "sha256:03", DIGEST].map(|digest| files.path(digest).exists());
        assert_eq!(there, [true, false, false, true]);
    }
}
