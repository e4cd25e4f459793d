//! What components said of themselves when they were compiled, kept beside the compiled code by their formats and by the names of their
//! files: while the next version of one is being compiled, its format's words and paths are known from the one before.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::NamedTempFile;

use crate::description::{Description, MAX_DESCRIPTION};

/// Where they lie in the folder of compiled code.
const FOLDER: &str = "descriptions";

/// See the module.
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
            fs::create_dir_all(&self.folder)?;
            let mut file = NamedTempFile::new_in(&self.folder)?;
            file.write_all(text.as_bytes())?;
            file.persist(self.path(name))?;
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

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name).with_added_extension("json")
    }
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
}
