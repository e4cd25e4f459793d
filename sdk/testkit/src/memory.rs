//! The host in memory.

use crate::effects::Effects;
use crate::mount::Mount;
use crate::state::{LogLine, RepositoryState, Shared, UpstreamAnswer};
use crate::upstream::Fetched;
use packhouse_sdk::{Folding, Format, LoginState, Token, Version};
use serde_json::Value;
use std::marker::PhantomData;

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

    /// A repository of this format and kind (`hosted`, `proxy`, `group`), with these settings over the description's
    /// defaults.
    pub fn mount<F: Format>(&self, name: &str, kind: &str, settings: Value) -> Mount<F> {
        let description = serde_json::to_value(F::describe()).unwrap_or_default();
        let format = description.get("format").and_then(Value::as_str).unwrap_or_default().to_owned();
        let of = |field: &str| description.get(field).cloned().unwrap_or_default();
        let folding: Folding = serde_json::from_value(of("name_folding")).unwrap_or_default();
        let held_by = serde_json::from_value(of("held_by")).unwrap_or_default();
        let mut settings = with_defaults(&description, settings);
        fold_patterns(&mut settings, folding);
        let (kind, settings) = (kind.to_owned(), settings.to_string());
        let repository =
            RepositoryState { format, kind, settings, folding, held_by, ..RepositoryState::default() };
        self.state.borrow_mut().repositories.insert(name.to_owned(), repository);
        Mount { host: self.clone(), name: name.to_owned(), format: PhantomData }
    }

    /// Sets the time, in ms since 1970.
    pub fn set_now(&self, now: u64) {
        self.state.borrow_mut().now = now;
    }

    /// What plugins have logged.
    pub fn log(&self) -> Vec<LogLine> {
        self.state.borrow().log.clone()
    }

    /// Lays down what an upstream answers to this request.
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

    /// What is shown of a repository.
    pub fn versions(&self, repository: &str) -> Vec<Version> {
        let state = self.state.borrow();
        state
            .repositories
            .get(repository)
            .map(|state| state.shown.values().cloned().collect())
            .unwrap_or_default()
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

/// Settings with every default of the description filled in.
fn with_defaults(description: &Value, settings: Value) -> Value {
    let known = description.get("settings").and_then(Value::as_object).into_iter().flatten();
    let defaults = known.filter_map(|(name, setting)| Some((name.clone(), setting.get("default")?.clone())));
    let mut all: serde_json::Map<_, _> = defaults.collect();
    if let Value::Object(set) = settings {
        all.extend(set);
    }
    Value::Object(all)
}

/// Spells patterns of names as the format spells names.
fn fold_patterns(settings: &mut Value, folding: Folding) {
    for name in ["claimed_names", "min_release_age_except"] {
        let patterns = settings.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten();
        for pattern in patterns {
            if let Value::String(text) = pattern {
                *text = folding.fold(text).into_owned();
            }
        }
    }
}
