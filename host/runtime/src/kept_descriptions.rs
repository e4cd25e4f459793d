//! What components said of themselves when they were compiled, kept beside the compiled code: by their digests, so that a start asks none of
//! them again, and by their formats and by the names of their files: while the next version of one is being compiled, its format's words
//! and paths are known from the one before.

use std::fs::{self, DirEntry, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tempfile::NamedTempFile;

use crate::description::{Description, MAX_DESCRIPTION};

/// Where they lie in the folder of compiled code.
pub(crate) const FOLDER: &str = "descriptions";
/// Where in that those lie that are kept by digests.
const BY_DIGEST: &str = "by-digest";
/// How many of those there are at most; above it those go that were asked for longest ago.
const MOST: usize = 200;

/// See the module. They are trusted as the code is that they lie beside.
pub(crate) struct KeptDescriptions {
    folder: PathBuf,
}

impl KeptDescriptions {
    /// Beside this compiled code.
    pub(crate) fn beside(compiled: &Path) -> KeptDescriptions {
        KeptDescriptions { folder: compiled.join(FOLDER) }
    }

    /// Keeps what a component of this name said. What goes wrong costs no more than that it is not known.
    pub(crate) fn keep(&self, name: &str, text: &str) {
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
            tracing::debug!(folder = %self.folder.display(), %error, "a description cannot be kept");
        }
    }

    /// What the component of this name that was compiled last said of itself; none where that is not known, or of no use.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Description>> {
        let mut text = String::new();
        let file = File::open(self.path(name)).ok()?;
        file.take(MAX_DESCRIPTION as u64).read_to_string(&mut text).ok()?;
        Description::parse(&text).ok().map(Arc::new)
    }

    /// Keeps what the component of this digest said.
    pub(crate) fn keep_of(&self, digest: &str, text: &str) {
        self.keep(&by_digest(digest), text);
        let files = fs::read_dir(self.folder.join(BY_DIGEST)).into_iter().flatten().flatten();
        let asked_for = |file: &DirEntry| file.metadata().and_then(|of| of.modified()).ok();
        let mut files: Vec<(SystemTime, PathBuf)> =
            files.filter_map(|file| Some((asked_for(&file)?, file.path()))).collect();
        files.sort();
        for (_, file) in files.iter().take(files.len().saturating_sub(MOST)) {
            // What stays is a small file too many.
            let _ = fs::remove_file(file);
        }
    }

    /// What the component of this digest said of itself; none where that is not known, or of no use.
    pub(crate) fn find_of(&self, digest: &str) -> Option<Description> {
        let name = by_digest(digest);
        let found = self.find(&name)?;
        // Else it goes sooner, and is asked for again.
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
    fn what_was_said_last_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let kept = KeptDescriptions::beside(folder.path());
        assert!(kept.find("one").is_none());
        for version in ["1", "2"] {
            kept.keep("one", &format!(r#"{{"format": "one", "version": "{version}"}}"#));
            assert_eq!(kept.find("one").unwrap().version, version);
        }
        for text in ["", "{", r#"{"format": "one"}"#] {
            kept.keep("two", text);
            assert!(kept.find("two").is_none(), "what is no description is not known: {text}");
        }
    }

    #[test]
    fn what_was_said_is_known_by_digest_as_long_as_there_are_not_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let kept = KeptDescriptions::beside(folder.path());
        let text = |number: usize| format!(r#"{{"format": "one", "version": "{number}"}}"#);
        let digest = |number: usize| format!("sha256:{number:04}");
        let long_ago = SystemTime::now() - std::time::Duration::from_secs(3600);
        for number in 0..=MOST {
            kept.keep_of(&digest(number), &text(number));
            let file = File::open(kept.path(&by_digest(&digest(number)))).unwrap();
            file.set_modified(long_ago + std::time::Duration::from_secs(number as u64)).unwrap();
            // The second is asked for at each start.
            assert!(number == 0 || kept.find_of(&digest(1)).is_some());
        }
        assert!(kept.find_of(&digest(0)).is_none());
        assert_eq!(kept.find_of(&digest(1)).unwrap().version, "1");
        assert_eq!(kept.find_of(&digest(MOST)).unwrap().version, MOST.to_string());
    }
}
