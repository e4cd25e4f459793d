//! Cache of component descriptions, next to the compiled code. Entries by digest save a start from
//! calling `describe` again. Entries by format and by file name hold the previous version's
//! description. The host uses that description's error format and paths while the next version
//! compiles.

use std::fs::{self, DirEntry, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tempfile::NamedTempFile;

use crate::description::{Description, MAX_DESCRIPTION};

/// Name of the cache in the folder of compiled code.
pub(crate) const FOLDER: &str = "descriptions";
/// Subfolder of the entries by digest.
const BY_DIGEST: &str = "by-digest";
/// Most entries by digest. Above this number, the cache deletes the least recently requested
/// entries.
const MOST: usize = 200;

/// The cache of one folder of compiled code. The host trusts the cached descriptions as much as
/// that code.
pub(crate) struct DescriptionCache {
    folder: PathBuf,
}

impl DescriptionCache {
    /// Opens the cache next to this compiled code.
    pub(crate) fn beside(compiled: &Path) -> DescriptionCache {
        DescriptionCache { folder: compiled.join(FOLDER) }
    }

    /// Caches the description of a component with this name. Ignores errors: the next start then
    /// asks the component again.
    pub(crate) fn store(&self, name: &str, text: &str) {
        let write = || {
            let path = self.path(name);
            let folder = path.parent().unwrap_or(&self.folder);
            fs::create_dir_all(folder)?;
            let mut file = NamedTempFile::new_in(folder)?;
            file.write_all(text.as_bytes())?;
            file.persist(&path)?;
            Ok::<_, std::io::Error>(())
        };
        if let Err(error) = write() {
            tracing::debug!(folder = %self.folder.display(), %error, "cannot cache a description");
        }
    }

    /// Returns the description that was cached last for this name. Returns none if it is missing or
    /// invalid.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Description>> {
        let mut text = String::new();
        let file = File::open(self.path(name)).ok()?;
        file.take(MAX_DESCRIPTION as u64).read_to_string(&mut text).ok()?;
        Description::parse(&text).ok().map(Arc::new)
    }

    /// Caches the description of the component with this digest.
    pub(crate) fn store_for_digest(&self, digest: &str, text: &str) {
        self.store(&by_digest(digest), text);
        let files = fs::read_dir(self.folder.join(BY_DIGEST)).into_iter().flatten().flatten();
        let last_used = |file: &DirEntry| file.metadata().and_then(|of| of.modified()).ok();
        let mut files: Vec<(SystemTime, PathBuf)> =
            files.filter_map(|file| Some((last_used(&file)?, file.path()))).collect();
        files.sort();
        for (_, file) in files.iter().take(files.len().saturating_sub(MOST)) {
            // A file that cannot be removed only wastes a little space.
            let _ = fs::remove_file(file);
        }
    }

    /// Returns the cached description of the component with this digest. Returns none if it is
    /// missing or invalid.
    pub(crate) fn find_by_digest(&self, digest: &str) -> Option<Description> {
        let name = by_digest(digest);
        let found = self.find(&name)?;
        // If this fails, the cache deletes the entry earlier, and a later start calls `describe`
        // again.
        let _ = File::open(self.path(&name)).and_then(|file| file.set_modified(SystemTime::now()));
        Arc::into_inner(found)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name).with_added_extension("json")
    }
}

fn by_digest(digest: &str) -> String {
    format!("{BY_DIGEST}/{}", digest.replace(':', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cached_description_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DescriptionCache::beside(folder.path());
        assert!(cache.find("one").is_none());
        for version in ["1", "2"] {
            cache.store("one", &format!(r#"{{"format": "one", "version": "{version}"}}"#));
            assert_eq!(cache.find("one").unwrap().version, version);
        }
        for text in ["", "{", r#"{"format": "one"}"#] {
            cache.store("two", text);
            assert!(cache.find("two").is_none(), "an invalid description is unknown: {text}");
        }
    }

    #[test]
    fn descriptions_by_digest_are_bounded_and_the_oldest_go_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DescriptionCache::beside(folder.path());
        let text = |number: usize| format!(r#"{{"format": "one", "version": "{number}"}}"#);
        let digest = |number: usize| format!("sha256:{number:04}");
        let long_ago = SystemTime::now() - std::time::Duration::from_secs(3600);
        for number in 0..=MOST {
            cache.store_for_digest(&digest(number), &text(number));
            let file = File::open(cache.path(&by_digest(&digest(number)))).unwrap();
            file.set_modified(long_ago + std::time::Duration::from_secs(number as u64)).unwrap();
            // The second entry is requested at each start.
            assert!(number == 0 || cache.find_by_digest(&digest(1)).is_some());
        }
        assert!(cache.find_by_digest(&digest(0)).is_none());
        assert_eq!(cache.find_by_digest(&digest(1)).unwrap().version, "1");
        assert_eq!(cache.find_by_digest(&digest(MOST)).unwrap().version, MOST.to_string());
    }
}
