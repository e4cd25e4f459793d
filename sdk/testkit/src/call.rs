//! State of one call to a plugin: its rights, the blobs that it kept, and its host.

use crate::blob::{MemoryBlob, MemoryWriter};
use crate::pieces::RecordedReads;
use crate::state::{Bytes, LogLine, RepositoryState, Shared};
use crate::upstream::MemoryFetch;
use packhouse_sdk::host::{
    Host, HostBlob, HostFetch, HostPart, HostRepository, HostRequest, HostWriter, Pairs,
};
use packhouse_sdk::{Action, Digest, Error, LoginState, Token};
use std::cell::RefCell;
use std::rc::Rc;

/// Largest number of log lines in a call.
const LINES: usize = 100;
/// Largest log line in bytes.
const LINE: usize = 8 << 10;

/// Rights of a call, shared by all its handles.
#[derive(Clone)]
pub(crate) struct Rights {
    pub(crate) host: Shared,
    /// Action of the intent; `None` in a check, which can only read.
    pub(crate) action: Option<Action>,
    pub(crate) target: Option<String>,
    /// Blobs that this call has kept: repository, SHA-256, bytes.
    pending: Rc<RefCell<Vec<(String, Digest, Bytes)>>>,
    /// Reads for the piece that is being made, if any.
    pub(crate) making: Rc<RefCell<Option<RecordedReads>>>,
}

impl Rights {
    pub(crate) fn new(host: Shared, action: Option<Action>, target: Option<String>) -> Self {
        Self { host, action, target, pending: Rc::default(), making: Rc::default() }
    }

    /// True if the intent allows writing and this is the target.
    pub(crate) fn may_write(&self, repository: &str) -> bool {
        let writes = matches!(self.action, Some(Action::Publish | Action::Delete));
        writes && self.target.as_deref() == Some(repository)
    }

    /// True if the call may change records of this repository. A read may change the records of a
    /// proxy, because they cache its upstream.
    pub(crate) fn may_record(&self, repository: &str) -> bool {
        let kind = |state: &RepositoryState| state.kind == "proxy";
        let is_proxy = self.host.borrow().repositories.get(repository).is_some_and(kind);
        self.may_write(repository) || (self.action.is_some() && is_proxy)
    }

    /// Keeps a blob in a repository. Until the call succeeds, only this call finds the blob.
    pub(crate) fn keep(&self, repository: &str, digest: Digest, bytes: Bytes) {
        self.pending.borrow_mut().push((repository.to_owned(), digest, bytes));
    }

    /// Returns the bytes of a blob that this call has kept.
    pub(crate) fn pending_bytes(&self, repository: &str, digest: &Digest) -> Option<Bytes> {
        let pending = self.pending.borrow();
        let found = pending.iter().find(|(name, known, _)| name == repository && known == digest);
        found.map(|(_, _, bytes)| bytes.clone())
    }

    pub(crate) fn is_pending(&self, repository: &str, digest: &Digest) -> bool {
        self.pending_bytes(repository, digest).is_some()
    }

    /// Makes a blob durable because a commit names it, even if the call fails later.
    pub(crate) fn hold(&self, name: &str, digest: &Digest, repository: &mut RepositoryState) {
        if let Some(bytes) = self.pending_bytes(name, digest) {
            repository.lease(digest.as_str(), bytes);
        }
    }

    /// Makes the kept blobs durable because the call succeeded.
    pub(crate) fn settle(&self) {
        let mut state = self.host.borrow_mut();
        for (name, digest, bytes) in self.pending.take() {
            state.repositories.entry(name).or_default().lease(digest.as_str(), bytes);
        }
    }
}

/// Host as one call sees it.
pub(crate) struct CallHost {
    pub(crate) rights: Rights,
    pub(crate) caller: Option<String>,
    pub(crate) lines: RefCell<usize>,
}

impl Host for CallHost {
    fn log(&self, level: &str, message: &str, fields: &[(&str, &str)]) {
        if *self.lines.borrow() == LINES {
            return;
        }
        *self.lines.borrow_mut() += 1;
        let level = match level {
            "error" | "warn" | "info" | "debug" | "trace" => level,
            _ => "info",
        };
        let fields = fields.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let end = message.floor_char_boundary(LINE);
        let message = message.get(..end).unwrap_or_default().to_owned();
        self.rights.host.borrow_mut().log.push(LogLine { level: level.to_owned(), message, fields });
    }

    fn now(&self) -> u64 {
        self.rights.mark_untracked();
        self.rights.host.borrow().now
    }

    fn writer(&self) -> Box<dyn HostWriter> {
        Box::<MemoryWriter>::default()
    }

    fn fetch(&self, method: &str, target: &str) -> Box<dyn HostFetch> {
        self.rights.mark_untracked();
        Box::new(MemoryFetch::new(self.rights.host.clone(), method, target))
    }

    fn leave_out(&self, proxy: &dyn HostRepository, reason: &str) {
        self.rights.mark_untracked();
        self.rights.host.borrow_mut().left_out.push((proxy.name(), reason.to_owned()));
    }

    fn finish_login(&self, id: &str) -> Result<LoginState, Error> {
        self.rights.mark_untracked();
        let mut state = self.rights.host.borrow_mut();
        Ok(match state.logins.get(id).cloned() {
            Some(LoginState::Granted(placeholder)) => {
                state.logins.remove(id);
                LoginState::Granted(placeholder)
            }
            Some(other) => other,
            None => LoginState::Gone,
        })
    }

    fn tokens(&self) -> Result<Vec<Token>, Error> {
        self.rights.mark_untracked();
        let state = self.rights.host.borrow();
        let own = self.caller.as_ref().and_then(|caller| state.tokens.get(caller));
        Ok(own.cloned().unwrap_or_default())
    }

    fn revoke(&self, id: &str) -> Result<bool, Error> {
        self.rights.mark_untracked();
        let mut state = self.rights.host.borrow_mut();
        let Some(own) = self.caller.as_ref().and_then(|caller| state.tokens.get_mut(caller)) else {
            return Ok(false);
        };
        let before = own.len();
        own.retain(|token| token.id != id);
        Ok(own.len() < before)
    }
}

/// Parts of a request that are read on demand.
#[derive(Default)]
pub(crate) struct CallRequest {
    pub(crate) query: Pairs,
    pub(crate) headers: Pairs,
    pub(crate) address: String,
    pub(crate) caller: Option<String>,
    pub(crate) is_moved: bool,
    pub(crate) body: RefCell<Option<MemoryBlob>>,
    pub(crate) parts: RefCell<Vec<HostPart>>,
}

impl HostRequest for CallRequest {
    fn query(&self) -> Pairs {
        self.query.clone()
    }

    fn headers(&self) -> Pairs {
        self.headers.clone()
    }

    fn address(&self) -> String {
        self.address.clone()
    }

    fn caller(&self) -> Option<String> {
        self.caller.clone()
    }

    fn is_moved(&self) -> bool {
        self.is_moved
    }

    fn take_body(&self) -> Option<Box<dyn HostBlob>> {
        self.body.take().map(|blob| Box::new(blob) as Box<dyn HostBlob>)
    }

    fn take_parts(&self) -> Vec<HostPart> {
        self.parts.take()
    }
}
