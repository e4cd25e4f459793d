//! One call of a plugin: what it may do, what it has kept, and its host.

use crate::blob::{MemoryBlob, MemoryWriter};
use crate::pieces::Noted;
use crate::state::{Bytes, LogLine, RepositoryState, Shared};
use crate::upstream::MemoryFetch;
use packhouse_sdk::host::{
    Host, HostBlob, HostFetch, HostPart, HostRepository, HostRequest, HostWriter, Pairs,
};
use packhouse_sdk::{Action, Digest, Error, LoginState, Token};
use std::cell::RefCell;
use std::rc::Rc;

/// At most so many lines a call.
const LINES: usize = 100;
/// Of so many bytes.
const LINE: usize = 8 << 10;

/// What a call may do, shared by all its handles.
#[derive(Clone)]
pub(crate) struct Rights {
    pub(crate) host: Shared,
    /// None in a check: it can only read.
    pub(crate) action: Option<Action>,
    pub(crate) target: Option<String>,
    /// What was kept and no commit has named yet: repository, SHA-256, bytes.
    kept: Rc<RefCell<Vec<(String, Digest, Bytes)>>>,
    /// The piece that is being made.
    pub(crate) making: Rc<RefCell<Option<Noted>>>,
}

impl Rights {
    pub(crate) fn new(host: Shared, action: Option<Action>, target: Option<String>) -> Self {
        Self { host, action, target, kept: Rc::default(), making: Rc::default() }
    }

    /// Whether the intent was to write, and this is the target.
    pub(crate) fn may_write(&self, repository: &str) -> bool {
        let writes = matches!(self.action, Some(Action::Publish | Action::Delete));
        writes && self.target.as_deref() == Some(repository)
    }

    /// As `may_write`; besides, a proxy's records are its memory of its upstream.
    pub(crate) fn may_record(&self, repository: &str) -> bool {
        let kind = |state: &RepositoryState| state.kind == "proxy";
        let is_proxy = self.host.borrow().repositories.get(repository).is_some_and(kind);
        self.may_write(repository) || (self.action.is_some() && is_proxy)
    }

    /// Holds a blob in a repository, as far as this call sees.
    pub(crate) fn keep(&self, repository: &str, digest: Digest, bytes: Bytes) {
        self.kept.borrow_mut().push((repository.to_owned(), digest, bytes));
    }

    /// The bytes of a blob that this call has kept.
    pub(crate) fn kept(&self, repository: &str, digest: &Digest) -> Option<Bytes> {
        let kept = self.kept.borrow();
        let found = kept.iter().find(|(name, kept, _)| name == repository && kept == digest);
        found.map(|(_, _, bytes)| bytes.clone())
    }

    pub(crate) fn is_kept(&self, repository: &str, digest: &Digest) -> bool {
        self.kept(repository, digest).is_some()
    }

    /// A commit has named this blob: it is durable with it, whatever becomes of the call.
    pub(crate) fn hold(&self, name: &str, digest: &Digest, repository: &mut RepositoryState) {
        if let Some(bytes) = self.kept(name, digest) {
            repository.lease(digest.as_str(), bytes);
        }
    }

    /// The call has succeeded: what it kept is held from now on.
    pub(crate) fn settle(&self) {
        let mut state = self.host.borrow_mut();
        for (name, digest, bytes) in self.kept.take() {
            state.repositories.entry(name).or_default().lease(digest.as_str(), bytes);
        }
    }
}

/// The host, as one call sees it.
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
        self.rights.note_more();
        self.rights.host.borrow().now
    }

    fn writer(&self) -> Box<dyn HostWriter> {
        Box::<MemoryWriter>::default()
    }

    fn fetch(&self, method: &str, target: &str) -> Box<dyn HostFetch> {
        self.rights.note_more();
        Box::new(MemoryFetch::new(self.rights.host.clone(), method, target))
    }

    fn leave_out(&self, proxy: &dyn HostRepository, reason: &str) {
        self.rights.note_more();
        self.rights.host.borrow_mut().left_out.push((proxy.name(), reason.to_owned()));
    }

    fn finish_login(&self, id: &str) -> Result<LoginState, Error> {
        self.rights.note_more();
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
        self.rights.note_more();
        let state = self.rights.host.borrow();
        let own = self.caller.as_ref().and_then(|caller| state.tokens.get(caller));
        Ok(own.cloned().unwrap_or_default())
    }

    fn revoke(&self, id: &str) -> Result<bool, Error> {
        self.rights.note_more();
        let mut state = self.rights.host.borrow_mut();
        let Some(own) = self.caller.as_ref().and_then(|caller| state.tokens.get_mut(caller)) else {
            return Ok(false);
        };
        let before = own.len();
        own.retain(|token| token.id != id);
        Ok(own.len() < before)
    }
}

/// What of a request is not read at once.
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
