//! How loading a plugin or calling it can fail.

use std::path::{Path, PathBuf};
use std::time::Duration;

use packhouse_store::StoreError;

use crate::component_file::component_name;

/// Why a call gave no answer of the plugin's. Each is for the log; a client sees a 500, or 503 for [`CallError::Busy`] and
/// [`CallError::Store`], or 429 for [`CallError::TooMany`], which is no failure but the caller's own doing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The guest stopped by a trap of its own: unreachable code, a stack overflow, an import that it may not call here.
    #[error("trapped: {0}")]
    Trap(String),
    /// It took longer than its limit.
    #[error("took longer than {0:?}")]
    Deadline(Duration),
    /// It wanted more memory than its limit and then trapped.
    #[error("wanted {wanted} bytes of memory of {limit} and trapped: {trap}")]
    Memory {
        /// Bytes asked for.
        wanted: usize,
        /// Bytes allowed.
        limit: usize,
        /// How it ended.
        trap: String,
    },
    /// It handed over more bytes in one host call, or in its result, than its limit.
    #[error("handed over more than {0} bytes at once")]
    HostcallBytes(usize),
    /// It opened more handles than its limit.
    #[error("opened more than {0} handles")]
    Handles(usize),
    /// What it answered breaks the contract: says how.
    #[error("answered what the contract does not allow: {0}")]
    BadAnswer(String),
    /// Too many calls of this plugin were under way for too long.
    #[error("no place free among {0} calls")]
    Busy(usize),
    /// It does not export this optional ability.
    #[error("does not offer {0}")]
    NotOffered(&'static str),
    /// The host's storage failed.
    #[error("storage: {0}")]
    Store(#[from] StoreError),
    /// The caller has too much of something under way.
    #[error("the caller has too many under way, and may try again after {retry_after_s} s")]
    TooMany {
        /// Seconds until it may succeed.
        retry_after_s: u64,
    },
    /// The caller's credential does not reach a package that a commit is about: which, or empty where it says none.
    #[error("the credential does not reach the package {0:?}")]
    OtherPackage(String),
    /// A policy refuses what the call is about: a sentence for the caller.
    #[error("a policy denies it: {0}")]
    PolicyDenied(String),
    /// A version that a commit shows is not taken in, because of an advisory: in a sentence.
    #[error("refused: {0}")]
    Advisory(String),
    /// The host itself failed: a defect.
    #[error("host: {0}")]
    Host(String),
}

impl CallError {
    /// Whether the host's storage is to blame, and not the plugin.
    pub fn is_store(&self) -> bool {
        matches!(self, CallError::Store(_))
    }

    /// Whether the caller is to blame, who can do it again: no fault of the plugin's, and nothing to fill a log with.
    pub fn is_callers(&self) -> bool {
        matches!(
            self,
            CallError::TooMany { .. }
                | CallError::OtherPackage(_)
                | CallError::PolicyDenied(_)
                | CallError::Advisory(_)
                | CallError::Store(StoreError::QuotaExceeded { .. })
        )
    }

    /// Whether the request may succeed when it is sent again later: 503 instead of 500.
    pub fn is_temporary(&self) -> bool {
        matches!(self, CallError::Store(_) | CallError::Busy(_))
    }

    /// Every word that [`kind`](CallError::kind) says.
    pub const KINDS: [&'static str; 10] = [
        "trap",
        "deadline",
        "memory",
        "hostcall_bytes",
        "handles",
        "bad_answer",
        "busy",
        "not_offered",
        "store",
        "host",
    ];

    /// One word for logs and metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            CallError::Trap(_) => "trap",
            CallError::Deadline(_) => "deadline",
            CallError::Memory { .. } => "memory",
            CallError::HostcallBytes(_) => "hostcall_bytes",
            CallError::Handles(_) => "handles",
            CallError::BadAnswer(_) => "bad_answer",
            CallError::Busy(_) => "busy",
            CallError::NotOffered(_) => "not_offered",
            CallError::Store(_) => "store",
            CallError::TooMany { .. } => "too_many",
            CallError::OtherPackage(_) => "other_package",
            CallError::PolicyDenied(_) => "policy_denied",
            CallError::Advisory(_) => "advisory",
            CallError::Host(_) => "host",
        }
    }
}

/// Why plugins could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The engine cannot be made on this machine.
    #[error("cannot make the Wasm engine: {0}")]
    Engine(String),
    /// The folder cannot be read.
    #[error("cannot read the plugin folder {}: {source}", folder.display())]
    Folder {
        /// The configured folder.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is no plugin for this host: says what was wanted and what was found.
    #[error("cannot load the plugin {}: {reason}", file.display())]
    Plugin {
        /// The `.wasm` file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Two files are of one format.
    #[error("two plugins are of the format {format}: {} and {}; remove one", first.display(), second.display())]
    Twice {
        /// The format of both.
        format: String,
        /// One file.
        first: PathBuf,
        /// The other file.
        second: PathBuf,
    },
    /// The configuration names a plugin that is not there.
    #[error("the configuration names the plugin {name}, which is not among those loaded: {loaded}")]
    Unknown {
        /// As configured.
        name: String,
        /// The formats that there are.
        loaded: String,
    },
}

impl LoadError {
    /// What is wrong, without the name of the file.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            LoadError::Plugin { reason, .. } => reason.clone(),
            other => other.to_string(),
        }
    }

    /// The name of the file that is no plugin, without its ending: by custom that is its format.
    #[must_use]
    pub fn stem(&self) -> Option<String> {
        component_name(self.file()?)
    }

    /// The name of the file that is no plugin.
    #[must_use]
    pub fn file_name(&self) -> Option<String> {
        Some(self.file()?.file_name()?.to_string_lossy().into_owned())
    }

    fn file(&self) -> Option<&Path> {
        match self {
            LoadError::Plugin { file, .. } => Some(file),
            LoadError::Twice { second, .. } => Some(second),
            LoadError::Engine(_) | LoadError::Folder { .. } | LoadError::Unknown { .. } => None,
        }
    }
}
