//! Errors of loading and calling plugins.

use std::path::{Path, PathBuf};
use std::time::Duration;

use packhouse_store::StoreError;

use crate::component_file::component_name;
use crate::package_bounds::PackageRefusal;

/// Reason why a call gave no answer of the plugin. The text of each is for the log. A client gets a
/// 500, or a 503 for [`CallError::Busy`] and [`CallError::Store`], or a 429 for
/// [`CallError::TooMany`], which the client causes itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The guest trapped: unreachable code, a stack overflow, or an import that it may not call
    /// here.
    #[error("trapped: {0}")]
    Trap(String),
    /// The call took longer than its limit.
    #[error("took longer than {0:?}")]
    Deadline(Duration),
    /// The guest requested more memory than its limit and then trapped.
    #[error("requested {requested} bytes of memory, with a limit of {limit}, and trapped: {trap}")]
    Memory { requested: usize, limit: usize, trap: String },
    /// The guest passed more bytes in one host call, or in its result, than its limit.
    #[error("passed more than {0} bytes in one call")]
    HostcallBytes(usize),
    /// The guest opened more handles than its limit.
    #[error("opened more than {0} handles")]
    Handles(usize),
    /// The guest's answer breaks the contract; the text says how.
    #[error("returned a value that the contract does not allow: {0}")]
    BadAnswer(String),
    /// Too many calls of this plugin were in progress for too long.
    #[error("all {0} slots for concurrent calls are in use")]
    Busy(usize),
    /// The plugin does not export this optional function.
    #[error("does not offer {0}")]
    NotOffered(&'static str),
    #[error("storage: {0}")]
    Store(#[from] StoreError),
    /// The caller has too many requests in progress.
    #[error("the caller has too many requests in progress and may try again after {retry_after_s} s")]
    TooMany {
        /// Seconds until a retry may succeed.
        retry_after_s: u64,
    },
    /// The caller's credential may not write a package of a commit, or the commit names none.
    #[error("the credential may not write these packages: {:?}", .0.packages)]
    OtherPackage(PackageRefusal),
    /// A policy refuses the call. Holds a sentence for the caller.
    #[error("a policy denies it: {0}")]
    PolicyDenied(String),
    /// A version that a commit shows is refused because of an advisory. Holds a sentence.
    #[error("refused: {0}")]
    Advisory(String),
    /// The host itself failed because of a defect.
    #[error("host: {0}")]
    Host(String),
}

impl CallError {
    /// Returns true if the host's storage failed, not the plugin.
    pub fn is_store(&self) -> bool {
        matches!(self, CallError::Store(_))
    }

    /// Returns true if the caller caused the error and can repeat it. The plugin is not at fault,
    /// and such errors must not fill the log.
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

    /// Returns true if the same request may succeed later: 503 instead of 500.
    pub fn is_temporary(&self) -> bool {
        matches!(self, CallError::Store(_) | CallError::Busy(_))
    }

    /// Every value that [`kind`](CallError::kind) returns.
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

/// Reason why plugins could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The engine cannot be created on this machine.
    #[error("cannot create the Wasm engine: {0}")]
    Engine(String),
    #[error("cannot read the plugin folder {}: {source}", folder.display())]
    Folder { folder: PathBuf, source: std::io::Error },
    /// A file is not a plugin for this host. The reason states what was expected and what was
    /// found.
    #[error("cannot load the plugin {}: {reason}", file.display())]
    Plugin { file: PathBuf, reason: String },
    /// Two files implement the same format.
    #[error("two plugins implement the format {format}: {} and {}; remove one", first.display(), second.display())]
    Twice { format: String, first: PathBuf, second: PathBuf },
    /// The configuration names a plugin that does not exist.
    #[error(
        "the configuration has settings for the plugin {name}, which is not loaded; loaded are: {loaded}"
    )]
    Unknown {
        name: String,
        /// Loaded formats, separated by commas.
        loaded: String,
    },
}

impl LoadError {
    /// The reason without the file name.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            LoadError::Plugin { reason, .. } => reason.clone(),
            other => other.to_string(),
        }
    }

    /// Name of the refused file without its ending, which is usually the format.
    #[must_use]
    pub fn stem(&self) -> Option<String> {
        component_name(self.file()?)
    }

    /// Name of the refused file.
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
