//! Host in memory.

use crate::effects::Effects;
use crate::state::{Fetched, LogLine, RepositoryState, Shared, UpstreamAnswer};
use packhouse_sdk::{LoginState, Statement, Token, Version, VersionDocument};

/// Host whose storage is memory. Clones share the same host.
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
    /// Creates an empty host; its time is 2026-01-01.
    pub fn new() -> Self {
        let host = Self { state: Shared::default() };
        host.set_now(1_767_225_600_000);
        host
    }

    /// Sets the time, as Unix time in ms.
    pub fn set_now(&self, now: u64) {
        self.state.borrow_mut().now = now;
    }

    /// Withholds this version from now on in every proxy, regardless of the settings. A server
    /// would withhold it because of other facts, such as malware.
    pub fn withhold_version(&self, package: &str, version: &str) {
        let version = (package.to_owned(), version.to_owned());
        self.state.borrow_mut().withheld_versions.insert(version, None);
    }

    /// Withholds this version like [`withhold_version`](Self::withhold_version), as if a policy had
    /// denied it for this reason.
    pub fn deny_version(&self, package: &str, version: &str, reason: &str) {
        let version = (package.to_owned(), version.to_owned());
        self.state.borrow_mut().withheld_versions.insert(version, Some(reason.to_owned()));
    }

    /// Returns the lines that plugins have logged.
    pub fn log(&self) -> Vec<LogLine> {
        self.state.borrow().log.clone()
    }

    /// Sets the response of an upstream to this request. If the status is a refusal (for example
    /// 403), the plugin gets the response of the host: 404 with the header `refused`.
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

    /// Sets the final address of the response to this request, as after redirects. Call
    /// [`answer_upstream`](Self::answer_upstream) for the request first.
    pub fn redirect_upstream(&self, method: &str, target: &str, address: &str) {
        let mut state = self.state.borrow_mut();
        if let Some(Ok(answer)) = state.upstream.get_mut(&(method.to_owned(), target.to_owned())) {
            answer.address = Some(address.to_owned());
        }
    }

    /// Makes this request to an upstream fail with this error. An upstream that is down, without a
    /// cached copy, is [`Error::Unavailable`](packhouse_sdk::Error).
    pub fn fail_upstream(&self, method: &str, target: &str, error: packhouse_sdk::Error) {
        self.state.borrow_mut().upstream.insert((method.to_owned(), target.to_owned()), Err(error));
    }

    /// Returns the proxies that were left out of responses, and why.
    pub fn left_out(&self) -> Vec<(String, String)> {
        self.state.borrow().left_out.clone()
    }

    /// Returns the requests that were sent to upstreams, as `GET /path`.
    pub fn fetched(&self) -> Vec<String> {
        let line = |one: &Fetched| format!("{} {}", one.method, one.target);
        self.state.borrow().fetched.iter().map(line).collect()
    }

    /// Returns the requests that were sent to upstreams, with all their options.
    pub fn fetches(&self) -> Vec<Fetched> {
        self.state.borrow().fetched.clone()
    }

    /// Completes a sign-in. The next query of its state returns this placeholder of the token.
    pub fn grant_login(&self, id: &str, placeholder: &str) {
        let granted = LoginState::Granted(placeholder.to_owned());
        self.state.borrow_mut().logins.insert(id.to_owned(), granted);
    }

    /// Adds a token of this owner.
    pub fn add_token(&self, owner: &str, token: Token) {
        self.state.borrow_mut().tokens.entry(owner.to_owned()).or_default().insert(0, token);
    }

    /// Ends the grace period: blobs that no record names are deleted.
    pub fn end_grace(&self) {
        for repository in self.state.borrow_mut().repositories.values_mut() {
            repository.leases.clear();
            let mut bytes = std::mem::take(&mut repository.bytes);
            bytes.retain(|digest, _| repository.holds(digest));
            repository.bytes = bytes;
        }
    }

    /// Returns how many pieces plugins added to the cache and how many they found there since the
    /// last call.
    pub fn take_piece_counts(&self) -> (usize, usize) {
        let mut state = self.state.borrow_mut();
        (std::mem::take(&mut state.pieces_made), std::mem::take(&mut state.pieces_found))
    }

    /// Forgets every piece, as the host does when it starts.
    pub fn forget_pieces(&self) {
        self.state.borrow_mut().pieces.clear();
    }

    /// Returns the signed statements about the listed versions of a repository, in order of
    /// arrival.
    pub fn statements(&self, repository: &str) -> Vec<Statement> {
        self.state
            .borrow()
            .repositories
            .get(repository)
            .map(|state| state.statements.clone())
            .unwrap_or_default()
    }

    /// Returns the documents of the listed versions of a repository, in order of arrival.
    pub fn documents(&self, repository: &str) -> Vec<VersionDocument> {
        self.state
            .borrow()
            .repositories
            .get(repository)
            .map(|state| state.documents.clone())
            .unwrap_or_default()
    }

    /// Sets the advisories of a package: a list as in the result of `advisories.find`.
    pub fn advise(&self, package: &str, advisories: serde_json::Value) {
        self.state.borrow_mut().advisories.insert(package.to_owned(), advisories);
    }

    /// Returns the listed versions of a repository.
    pub fn versions(&self, repository: &str) -> Vec<Version> {
        let state = self.state.borrow();
        state
            .repositories
            .get(repository)
            .map(|state| state.listed.values().cloned().collect())
            .unwrap_or_default()
    }

    /// Returns the number of commits that were applied to a repository.
    pub fn revision(&self, repository: &str) -> u64 {
        self.state.borrow().repositories.get(repository).map_or(0, |state| state.revision)
    }

    /// Returns the contents of a repository.
    pub fn effects(&self, repository: &str) -> Effects {
        let state = self.state.borrow();
        state.repositories.get(repository).map(effects).unwrap_or_default()
    }
}

fn effects(state: &RepositoryState) -> Effects {
    let records = state.records.iter().map(|(key, record)| (key.clone(), record.value.clone()));
    let held = state.bytes.iter().filter(|(digest, _)| state.holds(digest));
    let shown = state.listed.values().flat_map(|version| {
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
