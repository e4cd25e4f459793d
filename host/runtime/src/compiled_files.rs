//! Compiled components as files of a folder, which are mapped into memory instead of read: a start takes of them what it uses, and the
//! system may drop what is used no more. They are as large as the code, which is what compressing them would cost at each start.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;
use wasmtime::component::Component;
use wasmtime::{Engine, Error};

/// How the names of the files end.
const EXTENSION: &str = "cwasm";
/// Bytes that are kept; above it those go that were loaded longest ago.
const BYTES_AT_MOST: u64 = 1 << 30;
/// Longer than it takes to write a file: what is older and not in its place was left by a kill.
const WRITTEN_WITHIN: Duration = Duration::from_secs(3600);
/// What an earlier version kept: wasmtime's own folder in this one, and marks beside it.
const EARLIER: [&str; 2] = ["modules", "../compiled-before"];

/// See the module.
pub(crate) struct CompiledFiles {
    folder: PathBuf,
    /// Of what this engine compiled: to another version of it, other settings or another processor it is of no use.
    prefix: String,
}

impl CompiledFiles {
    /// Makes the folder where it is not there; none where that cannot be done, which the log says.
    pub(crate) fn open(engine: &Engine, folder: &Path) -> Option<CompiledFiles> {
        let opened = fs::create_dir_all(folder).and_then(|()| folder.canonicalize()).inspect_err(|error| {
            tracing::warn!(folder = %folder.display(), %error, "cannot keep compiled plugins, so each start compiles them");
        });
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        Some(CompiledFiles { folder: opened.ok()?, prefix: format!("{:016x}", hasher.finish()) })
    }

    fn path(&self, digest: &str) -> PathBuf {
        let name = format!("{}-{}", self.prefix, digest.replace(':', "-"));
        self.folder.join(name).with_extension(EXTENSION)
    }

    /// What was compiled of the component of this digest, if it is kept and of use.
    pub(crate) fn load(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let path = self.path(digest);
        let file = File::open(&path).ok()?;
        let loaded = map(engine, &path).or_else(|unmapped| {
            copy(engine, &path).inspect_err(|error| {
                tracing::warn!(file = %path.display(), "compiled code is of no use: {unmapped:#}; {error:#}");
            })
        });
        let loaded = loaded.ok()?;
        // So that what is loaded is not what goes when there is too much. Else it is compiled again one day.
        let _ = file.set_modified(SystemTime::now());
        Some(loaded)
    }

    /// Keeps what `compile` writes of the component of this digest for this engine, and loads it: none where that is of no use, which the log
    /// says. An error of its own, or of the folder.
    pub(crate) fn keep_written<E: From<std::io::Error>>(
        &self,
        engine: &Engine,
        digest: &str,
        compile: impl FnOnce(&File) -> Result<(), E>,
    ) -> Result<Option<Component>, E> {
        self.write(&self.path(digest), compile)?;
        self.tidy();
        Ok(self.load(engine, digest))
    }

    /// Keeps what this engine compiled of the component of this digest, and loads it. Where it cannot be kept, which the log says, it is
    /// loaded all the same.
    pub(crate) fn keep(&self, engine: &Engine, digest: &str, code: &[u8]) -> Result<Component, Error> {
        let write = |mut file: &File| file.write_all(code);
        if let Err(error) = self.write(&self.path(digest), write) {
            tracing::warn!(folder = %self.folder.display(), %error, "compiled code cannot be kept, so the next start compiles it again");
            return of_own_bytes(engine, code);
        }
        self.tidy();
        self.load(engine, digest).map_or_else(|| of_own_bytes(engine, code), Ok)
    }

    /// Under its name only when all of it is on the disk: a file that is there is whole.
    fn write<E: From<std::io::Error>>(
        &self,
        path: &Path,
        write: impl FnOnce(&File) -> Result<(), E>,
    ) -> Result<(), E> {
        let file = NamedTempFile::new_in(&self.folder)?;
        write(file.as_file())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Removes what is too much, and what a kill left half written. A process that has mapped a file keeps it. What goes wrong costs room
    /// alone.
    fn tidy(&self) {
        for earlier in EARLIER {
            let _ = fs::remove_dir_all(self.folder.join(earlier));
        }
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<(SystemTime, u64, PathBuf)> = files
            .filter_map(|file| file.metadata().ok().map(|of| (file.path(), of)))
            .filter_map(|(file, of)| Some((of.modified().ok()?, of.len(), file)))
            .collect();
        let long_ago = SystemTime::now() - WRITTEN_WITHIN;
        let is_code = |path: &PathBuf| path.extension().is_some_and(|extension| extension == EXTENSION);
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

#[expect(unsafe_code, reason = "wasmtime has no other way to load what it compiled")]
fn map(engine: &Engine, path: &Path) -> Result<Component, Error> {
    // SAFETY: nobody but this program writes into its folder, which is closed to others. It writes there what its engine compiled, puts
    // it in place whole, by renaming, and never changes it afterwards. wasmtime refuses what another version or other settings made.
    unsafe { Component::deserialize_file(engine, path) }
}

/// For a file system without execution (`noexec`), of which code cannot be mapped: a copy in memory can be run.
#[expect(clippy::disallowed_methods, reason = "compiled code, which this program wrote")]
fn copy(engine: &Engine, path: &Path) -> Result<Component, Error> {
    of_own_bytes(engine, &fs::read(path)?)
}

#[expect(unsafe_code, reason = "wasmtime has no other way to load what it compiled")]
fn of_own_bytes(engine: &Engine, code: &[u8]) -> Result<Component, Error> {
    // SAFETY: the bytes are what this engine compiled, just now or in a file of which the above holds.
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
    fn what_is_kept_is_loaded() {
        let (engine, _folder, files) = folder_with(None);
        assert!(files.load(&engine, DIGEST).is_none());
        files.keep(&engine, DIGEST, &compiled()).unwrap();
        assert!(files.load(&engine, DIGEST).is_some());
        assert!(files.load(&engine, "sha256:01").is_none());
    }

    #[test]
    fn what_is_no_code_or_half_of_it_is_not_loaded() {
        let code = compiled();
        for broken in [&b""[..], b"no code", &code[..code.len() / 2], &code[..code.len() - 1]] {
            let (engine, _folder, files) = folder_with(Some(broken));
            assert!(files.load(&engine, DIGEST).is_none(), "{} bytes", broken.len());
            files.keep(&engine, DIGEST, &code).unwrap();
            assert!(files.load(&engine, DIGEST).is_some());
        }
    }

    #[test]
    fn what_cannot_be_kept_is_loaded_all_the_same() {
        let (engine, folder, files) = folder_with(None);
        folder.close().unwrap();
        assert!(files.keep(&engine, DIGEST, &compiled()).is_ok());
        assert!(files.load(&engine, DIGEST).is_none());
    }

    #[test]
    fn what_an_earlier_version_kept_and_a_kill_left_goes() {
        let (engine, folder, files) = folder_with(None);
        fs::create_dir_all(folder.path().join("modules/wasmtime-1")).unwrap();
        let (left, written) = (folder.path().join(".left"), folder.path().join(".written"));
        File::create(&left).unwrap().set_modified(SystemTime::now() - WRITTEN_WITHIN * 2).unwrap();
        File::create(&written).unwrap();
        files.keep(&engine, DIGEST, &compiled()).unwrap();
        assert!(!folder.path().join("modules").exists() && !left.exists());
        assert!(written.exists() && files.load(&engine, DIGEST).is_some());
    }

    #[test]
    fn what_was_loaded_longest_ago_goes_first() {
        let (engine, _folder, files) = folder_with(None);
        let mut now = SystemTime::now();
        for digest in ["sha256:01", "sha256:02", "sha256:03"] {
            let file = File::create(files.path(digest)).unwrap();
            // Of which nothing is written.
            file.set_len(BYTES_AT_MOST / 2 - 1).unwrap();
            now -= WRITTEN_WITHIN;
            file.set_modified(now).unwrap();
        }
        files.keep(&engine, DIGEST, &compiled()).unwrap();
        let there = ["sha256:01", "sha256:02", "sha256:03", DIGEST].map(|digest| files.path(digest).exists());
        assert_eq!(there, [true, false, false, true]);
    }
}
