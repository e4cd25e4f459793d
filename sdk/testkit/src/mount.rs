//! Repositories that run a format, and requests to them.

use crate::answer::Answer;
use crate::effects::Effects;
use crate::memory::MemoryHost;
use crate::request::{Form, TestRequest};
use crate::state::RepositoryState;
use crate::table::World;
use crate::table_file::Table;
use packhouse_sdk::{
    Action, Failure, Folding, Format, Intent, Place, Present, Retention, Upkeep, VersionId, Versions, call,
};
use serde_json::Value;
use std::marker::PhantomData;

/// Repository of a format.
pub struct Mount<F> {
    pub(crate) host: MemoryHost,
    pub(crate) name: String,
    pub(crate) format: PhantomData<F>,
}

impl MemoryHost {
    /// Creates a repository of this format and kind (`hosted`, `proxy`, `group`). These settings
    /// override the defaults of the description.
    pub fn mount<F: Format>(&self, name: &str, kind: &str, settings: Value) -> Mount<F> {
        let description = serde_json::to_value(F::describe()).unwrap_or_default();
        let format = description.get("format").and_then(Value::as_str).unwrap_or_default().to_owned();
        let of = |field: &str| description.get(field).cloned().unwrap_or_default();
        let folding: Folding = serde_json::from_value(of("name_folding")).unwrap_or_default();
        let held_by = serde_json::from_value(of("held_by")).unwrap_or_default();
        let file_dates = of("file_dates").as_bool().unwrap_or_default();
        let mut settings = with_defaults(&description, settings);
        fold_patterns(&mut settings, folding);
        let (kind, settings) = (kind.to_owned(), settings.to_string());
        let rest = RepositoryState::default();
        let repository = RepositoryState { format, kind, settings, folding, held_by, file_dates, ..rest };
        self.state.borrow_mut().repositories.insert(name.to_owned(), repository);
        Mount { host: self.clone(), name: name.to_owned(), format: PhantomData }
    }
}

/// Fills in the defaults of the description.
fn with_defaults(description: &Value, settings: Value) -> Value {
    let known = description.get("settings").and_then(Value::as_object).into_iter().flatten();
    let defaults = known.filter_map(|(name, setting)| Some((name.clone(), setting.get("default")?.clone())));
    let mut all: serde_json::Map<_, _> = defaults.collect();
    if let Value::Object(set) = settings {
        all.extend(set);
    }
    Value::Object(all)
}

/// Converts patterns of names to the format's spelling.
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

/// Request that is being prepared; [`Sending::send`] sends it.
#[must_use = "nothing happens before it is sent"]
pub struct Sending<'a, F> {
    mount: &'a Mount<F>,
    request: TestRequest,
}

impl<F: Format> Sending<'_, F> {
    /// Adds a header field; `name` is in lower case.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.request.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body.
    pub fn body(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.request.body = bytes.as_ref().to_vec();
        self
    }

    /// Sets a JSON document as the body.
    pub fn json(self, value: &serde_json::Value) -> Self {
        self.header("content-type", "application/json").body(value.to_string())
    }

    /// Adds a form field.
    pub fn part(mut self, name: &str, filename: Option<&str>, value: impl AsRef<[u8]>) -> Self {
        let (filename, value) = (filename.map(str::to_owned), value.as_ref().to_vec());
        self.request.parts.push(Form { name: name.to_owned(), filename, value });
        self
    }

    /// Sets the name of the caller.
    pub fn caller(mut self, name: &str) -> Self {
        self.request.caller = Some(name.to_owned());
        self
    }

    /// Sends the request to a claim of the description instead of the repository's address.
    pub fn claim(mut self, name: &str) -> Self {
        self.request.claim = Some(name.to_owned());
        self
    }

    /// Sends the request.
    pub fn send(self) -> Answer {
        self.mount.answer(&self.request)
    }
}

impl<F: Format> Mount<F> {
    /// Sets the members of a group.
    pub fn members(self, names: &[&str]) -> Self {
        let members = names.iter().map(|&name| name.to_owned()).collect();
        self.host.state.borrow_mut().repositories.entry(self.name.clone()).or_default().members = members;
        self
    }

    /// Makes the repository unreadable for every caller. A group does not pass this repository to a
    /// plugin, but still withholds the names that it holds.
    pub fn unreadable(self) -> Self {
        self.host.state.borrow_mut().repositories.entry(self.name.clone()).or_default().unreadable = true;
        self
    }

    /// Prepares a request of any method to this target: a percent-encoded path that begins with
    /// `/`, and its query.
    pub fn request(&self, method: &str, target: &str) -> Sending<'_, F> {
        Sending { mount: self, request: TestRequest::new(method, target) }
    }

    /// Prepares a `GET`.
    pub fn get(&self, target: &str) -> Sending<'_, F> {
        self.request("GET", target)
    }

    /// Prepares a `HEAD`.
    pub fn head(&self, target: &str) -> Sending<'_, F> {
        self.request("HEAD", target)
    }

    /// Prepares a `PUT`.
    pub fn put(&self, target: &str) -> Sending<'_, F> {
        self.request("PUT", target)
    }

    /// Prepares a `POST`.
    pub fn post(&self, target: &str) -> Sending<'_, F> {
        self.request("POST", target)
    }

    /// Prepares a `PATCH`.
    pub fn patch(&self, target: &str) -> Sending<'_, F> {
        self.request("PATCH", target)
    }

    /// Prepares a `DELETE`.
    pub fn delete(&self, target: &str) -> Sending<'_, F> {
        self.request("DELETE", target)
    }

    /// Returns the contents of the repository.
    pub fn effects(&self) -> Effects {
        self.host.effects(&self.name)
    }

    /// Returns the intent of a request.
    ///
    /// # Errors
    /// The failure of the plan or of the router.
    pub fn plan(&self, request: &TestRequest) -> Result<Intent, Failure> {
        let Some(address) = request.address() else {
            return Err(Failure::invalid("a path that no host hands on"));
        };
        self.route(request, &address)
    }

    /// Calls `upkeep.delete-version`.
    ///
    /// # Errors
    /// The format's failure.
    pub fn delete_version(&self, id: &VersionId) -> Result<(), Failure>
    where
        F: Upkeep,
    {
        self.upkeep(Action::Delete, |cx| call::delete_version::<F>(cx, id))
    }

    /// Calls `upkeep.mark-version`.
    ///
    /// # Errors
    /// The format's failure.
    pub fn mark_version(&self, id: &VersionId, state: &str, reason: &str) -> Result<(), Failure>
    where
        F: Upkeep,
    {
        self.upkeep(Action::Publish, |cx| call::mark_version::<F>(cx, id, state, reason))
    }
}

impl<F: Present> Mount<F> {
    /// Calls `present.present-version` and returns its JSON object.
    ///
    /// # Errors
    /// The format's failure.
    pub fn present_version(&self, id: &VersionId) -> Result<Value, Failure> {
        let text = self.present(|cx| call::present_version::<F>(cx, id))?;
        serde_json::from_str(&text).map_err(|problem| Failure::internal(format!("no JSON: {problem}")))
    }
}

impl<F: Retention> Mount<F> {
    /// Calls `retention.judge-versions` and returns its JSON array.
    ///
    /// # Errors
    /// The format's failure.
    pub fn judge_versions(&self, ids: &[VersionId]) -> Result<Value, Failure> {
        let text = self.present(|cx| call::judge_versions::<F>(cx, ids))?;
        serde_json::from_str(&text).map_err(|problem| Failure::internal(format!("no JSON: {problem}")))
    }

    /// Calls `retention.list-unshown` and returns its JSON object.
    ///
    /// # Errors
    /// The format's failure.
    pub fn list_unshown(&self, after: &str) -> Result<Value, Failure> {
        let text = self.present(|cx| call::list_unshown::<F>(cx, after))?;
        serde_json::from_str(&text).map_err(|problem| Failure::internal(format!("no JSON: {problem}")))
    }
}

impl<F: Versions> Mount<F> {
    /// Calls `versions.compare-versions`.
    pub fn compare_versions(&self, versions: &[&str]) -> Vec<Place> {
        let versions: Vec<String> = versions.iter().map(|&version| version.to_owned()).collect();
        call::compare_versions::<F>(&versions)
    }
}

impl<F: Format> World for Mount<F> {
    fn send(&mut self, request: &TestRequest) -> Answer {
        self.answer(request)
    }

    fn effects(&mut self) -> Effects {
        Mount::effects(self)
    }

    fn blank(&self) -> Option<Table> {
        let state = self.host.state.borrow();
        let untouched = |state: &&RepositoryState| {
            state.revision == 0
                && state.bytes.is_empty()
                && state.uploads.is_empty()
                && state.kind == "hosted"
        };
        let own = state.repositories.get(&self.name).filter(untouched)?;
        let settings = serde_json::from_str(&own.settings).ok()?;
        Some(Table { name: String::new(), repository: self.name.clone(), settings, cases: Vec::new() })
    }
}
