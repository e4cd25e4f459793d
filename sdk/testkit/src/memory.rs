//! The host in memory.

use crate::effects::Effects;
use crate::state::{Fetched, LogLine, RepositoryState, Shared, UpstreamAnswer};
use packhouse_sdk::{LoginState, Statement, Token, Version, VersionDocument};

/// A host whose storage is memory. Clones are the same host.
#[derive(Clone)]
pub struct MemoryHost {
    pub(crate) state: Shared,
}

impl Default for MemoryHost {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryHost {
    /// An empty host at 2026-01-01.
    pub fn new() -> Self {
        let host = Self { state: Shared::default() };
        host.set_now(1_767_225_600_000);
        host
    }

    /// Sets the time, in ms since 1970.
    pub fn set_now(&self, now: u64) {
        self.state.borrow_mut().now = now;
    }

    /// From now on no proxy may offer this version, whatever its settings say: as a server decides by what else it knows of it.
    pub fn withhold_version(&self, package: &str, version: &str) {
        let version = (package.to_owned(), version.to_owned());
        self.state.borrow_mut().withheld_versions.insert(version, None);
    }

    /// The same by a policy, which says why.
    pub fn deny_version(&self, package: &str, version: &str, because: &str) {
        let version = (package.to_owned(), version.to_owned());
        self.state.borrow_mut().withheld_versions.insert(version, Some(because.to_owned()));
    }

    /// What plugins have logged.
    pub fn log(&self) -> Vec<LogLine> {
        self.state.borrow().log.clone()
    }

    /// Lays down what an upstream answers to this request. A status that refuses to say what the
    /// upstream has (403, for one) reaches the plugin as it does from the host: as 404 with the header
    /// `refused`.
    pub fn answer_upstream(
        &self,
        method: &str,
        target: &str,
        status: u16,
        headers: &[(&str, &str)],
        body: &[u8],
    ) {
        let headers = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let answer = UpstreamAnswer { status, address: None, headers, body: body.into() };
        self.state.borrow_mut().upstream.insert((method.to_owned(), target.to_owned()), Ok(answer));
    }

    /// From now on what was laid down for this request comes from this address, as after redirects.
    pub fn redirect_upstream(&self, method: &str, target: &str, address: &str) {
        let mut state = self.state.borrow_mut();
        if let Some(Ok(answer)) = state.upstream.get_mut(&(method.to_owned(), target.to_owned())) {
            answer.address = Some(address.to_owned());
        }
    }

    /// From now on an upstream fails at this request: [`Error::Unavailable`](packhouse_sdk::Error) when it is down and no copy
    /// is kept.
    pub fn fail_upstream(&self, method: &str, target: &str, error: packhouse_sdk::Error) {
        self.state.borrow_mut().upstream.insert((method.to_owned(), target.to_owned()), Err(error));
    }

    /// The proxies that answers were made without, and why.
    pub fn left_out(&self) -> Vec<(String, String)> {
        self.state.borrow().left_out.clone()
    }

    /// Requests that were sent to upstreams, as `GET /path`.
    pub fn fetched(&self) -> Vec<String> {
        let line = |one: &Fetched| format!("{} {}", one.method, one.target);
        self.state.borrow().fetched.iter().map(line).collect()
    }

    /// The same with all that was said of each.
    pub fn fetches(&self) -> Vec<Fetched> {
        self.state.borrow().fetched.clone()
    }

    /// Somebody has signed in at the host's page: the next question finds the placeholder of the token.
    pub fn grant_login(&self, id: &str, placeholder: &str) {
        let granted = LoginState::Granted(placeholder.to_owned());
        self.state.borrow_mut().logins.insert(id.to_owned(), granted);
    }

    /// Gives somebody a token.
    pub fn add_token(&self, owner: &str, token: Token) {
        self.state.borrow_mut().tokens.entry(owner.to_owned()).or_default().insert(0, token);
    }

    /// The time of grace has passed: what no record names is gone.
    pub fn end_grace(&self) {
        for repository in self.state.borrow_mut().repositories.values_mut() {
            repository.leases.clear();
            let mut bytes = std::mem::take(&mut repository.bytes);
            bytes.retain(|digest, _| repository.holds(digest));
            repository.bytes = bytes;
        }
    }

    /// How many pieces were remembered since the last time that it was asked, and how many found.
    pub fn take_piece_counts(&self) -> (usize, usize) {
        let mut state = self.state.borrow_mut();
        (std::mem::take(&mut state.pieces_made), std::mem::take(&mut state.pieces_found))
    }

    /// Forgets every piece, as the host does when it starts.
    pub fn forget_pieces(&self) {
        self.state.borrow_mut().pieces.clear();
    }

    /// Signed statements about what is shown of a repository, as they came.
    pub fn statements(&self, repository: &str) -> Vec<Statement> {
        self.state
            .borrow()
            .repositories
            .get(repository)
            .map(|state| state.statements.clone())
            .unwrap_or_default()
    }

    /// Documents that came with what is shown of a repository, as they came.
    pub fn documents(&self, repository: &str) -> Vec<VersionDocument> {
        self.state
            .borrow()
            .repositories
            .get(repository)
            .map(|state| state.documents.clone())
            .unwrap_or_default()
    }

    /// Lays down what is known to be wrong with a package: a list of advisories as `advisories.find` tells them.
    pub fn advise(&self, package: &str, advisories: serde_json::Value) {
        self.state.borrow_mut().advisories.insert(package.to_owned(), advisories);
    }

    /// What is shown of a repository.
    pub fn versions(&self, repository: &str) -> Vec<Version> {
        let state = self.state.borrow();
        state
            .repositories
            .get(repository)
            .map(|state| state.shown.values().cloned().collect())
            .unwrap_or_default()
    }

    /// How many changes were applied to a repository.
    pub fn revision(&self, repository: &str) -> u64 {
        self.state.borrow().repositories.get(repository).map_or(0, |state| state.revision)
    }

    /// What a repository holds.
    pub fn effects(&self, repository: &str) -> Effects {
        let state = self.state.borrow();
        state.repositories.get(repository).map(effects).unwrap_or_default()
    }
}

fn effects(state: &RepositoryState) -> Effects {
    let records = state.records.iter().map(|(key, record)| (key.clone(), record.value.clone()));
    let held = state.bytes.iter().filter(|(digest, _)| state.holds(digest));
    let shown = state.shown.values().flat_map(|version| {
        let id = format!("{} {}", version.name, version.version);
        if version.files.is_empty() {
            vec![id]
        } else {
            let files = version.files.iter();
            files.map(|file| format!("{id} {} {}", file.path, file.digest)).collect()
        }
    });
    Effects {
        records: records.collect(),
        blobs: held.map(|(digest, bytes)| (digest.clone(), bytes.len() as u64)).collect(),
        shown: shown.collect(),
    }
}
