//! Compiled components as files of a folder, which are mapped into memory instead of read: a start takes of them what it uses, and the
//! system may drop what is used no more. They are as large as the code, which is what compressing them would cost at each start.
//!
//! There are two kinds of folders: the one that this program writes, and the one that was installed with it. This module is the only place
//! that runs compiled code, and does so only with files that [`TrustedFolder`] has checked.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;
use wasmtime::component::Component;
use wasmtime::{Engine, Error};

use crate::kept_descriptions::{self, KeptDescriptions};
use crate::trusted_folder::{TrustedFolder, opened_path};

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
    folder: TrustedFolder,
    /// Of what one engine compiles: another version of it, or other settings, find nothing under their own.
    prefix: String,
    descriptions: KeptDescriptions,
}

impl CompiledFiles {
    /// What this engine compiles and keeps in this folder, which is made where it is missing. None where the folder is not trusted or cannot
    /// be made, which the log says.
    pub(crate) fn open(engine: &Engine, folder: &Path) -> Option<CompiledFiles> {
        match TrustedFolder::own(folder, empty) {
            Ok(trusted) => Some(CompiledFiles::of(trusted, engine)),
            Err(error) => {
                let folder = folder.display();
                tracing::warn!(%folder, %error, "compiled plugins are not kept, so each start compiles them");
                None
            }
        }
    }

    /// What `baseline` compiled when the program was packaged. None where there is no such folder, or where it is not trusted, which
    /// the log says.
    pub(crate) fn installed(baseline: &Engine, folder: &Path) -> Option<CompiledFiles> {
        match TrustedFolder::installed(folder) {
            Ok(trusted) => Some(CompiledFiles::of(trusted, baseline)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let folder = folder.display();
                tracing::warn!(%folder, %error, "the compiled plugins of the package are not used");
                None
            }
        }
    }

    fn of(folder: TrustedFolder, engine: &Engine) -> CompiledFiles {
        let descriptions = KeptDescriptions::beside(&folder.path());
        CompiledFiles { folder, prefix: prefix(engine), descriptions }
    }

    /// What the components said of themselves when they were compiled.
    pub(crate) fn descriptions(&self) -> &KeptDescriptions {
        &self.descriptions
    }

    fn path(&self, digest: &str) -> PathBuf {
        self.folder.path().join(file_name(&self.prefix, digest))
    }

    /// What was compiled of the component of this digest, if it is kept and of use.
    pub(crate) fn load(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let (file, loaded) = self.find(engine, digest)?;
        // So that what is loaded is not what goes when there is too much. Else it is compiled again one day.
        let _ = file.set_modified(SystemTime::now());
        Some(loaded)
    }

    /// The same without any trace in the folder.
    pub(crate) fn look(&self, engine: &Engine, digest: &str) -> Option<Component> {
        Some(self.find(engine, digest)?.1)
    }

    fn find(&self, engine: &Engine, digest: &str) -> Option<(File, Component)> {
        let name = file_name(&self.prefix, digest);
        let of_no_use = |error: &dyn std::fmt::Display| {
            let file = self.folder.shown().join(&name);
            tracing::warn!(file = %file.display(), "compiled code is not used, so the plugin is compiled: {error:#}");
        };
        let mut file = match self.folder.file(&name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                of_no_use(&error);
                return None;
            }
        };
        let loaded = map(engine, &file).or_else(|_| copy(engine, &mut file));
        Some((file, loaded.inspect_err(|error| of_no_use(error)).ok()?))
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
            tracing::warn!(folder = %self.folder.shown().display(), %error, "compiled code cannot be kept, so the next start compiles it again");
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
        let file = NamedTempFile::new_in(self.folder.path())?;
        write(file.as_file())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Removes what is too much, and what a kill left half written. A process that has mapped a file keeps it. What goes wrong costs room
    /// alone.
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

/// Writes compiled code of components into a folder that is installed with the program, of whatever engine made it. Answers whether it
/// was not there yet. `others` may read it.
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
    // Whatever the umask is.
    file.as_file().set_permissions(readable())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(true)
}

/// Removes compiled code from a folder unless it is what this engine made of one of these components.
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

/// Throws away what a folder keeps.
fn empty(folder: &Path) -> io::Result<()> {
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        if is_code(&path) {
            fs::remove_file(path)?;
        }
    }
    match fs::remove_dir_all(folder.join(kept_descriptions::FOLDER)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[expect(unsafe_code, reason = "wasmtime has no other way to load what it compiled")]
fn map(engine: &Engine, file: &File) -> Result<Component, Error> {
    // SAFETY: only trusted accounts can write to the file and to its folder. What they write there is what an engine compiled; it is put
    // in place whole, by renaming, and never changed afterwards. wasmtime refuses what another version, other settings or another
    // processor made. The path is that of the file that was checked.
    unsafe { Component::deserialize_file(engine, opened_path(file)) }
}

/// For a file system without execution (`noexec`), of which code cannot be mapped: a copy in memory can be run.
fn copy(engine: &Engine, file: &mut File) -> Result<Component, Error> {
    let mut code = Vec::new();
    file.read_to_end(&mut code)?;
    of_own_bytes(engine, &code)
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
    fn code_for_another_processor_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let component = wat::parse_str("(component (core module (func)))").unwrap();
        let baseline = crate::engine::baseline().unwrap();
        let compile = || baseline.precompile_component(&component);
        assert!(install(&baseline, folder.path(), DIGEST, compile).unwrap());
        assert!(!install(&baseline, folder.path(), DIGEST, || panic!("it is there")).unwrap());
        let files = CompiledFiles::installed(&baseline, folder.path()).unwrap();
        let mut config = crate::engine::base();
        assert!(files.look(&Engine::new(&config).unwrap(), DIGEST).is_some());
        #[expect(unsafe_code, reason = "the processor seems to have less than it has")]
        // SAFETY: nothing is run.
        unsafe {
            config.detect_host_feature(|_| Some(false));
        }
        let older = Engine::new(&config);
        assert!(older.is_err() || files.look(&older.unwrap(), DIGEST).is_none());
        remove_others(&baseline, folder.path(), &["sha256:01".to_owned()]).unwrap();
        assert!(files.look(&baseline, DIGEST).is_none());
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
        assert!(!path.exists(), "what lay there is thrown away");
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
