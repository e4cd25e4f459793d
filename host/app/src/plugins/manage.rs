//! Changing what formats run: installing, activating, rolling back, pinning. Each judges what the component is and asks for; who may
//! do it is judged by the caller.

use bytes::Bytes;
use packhouse_runtime::{Plugin, component_name, read_component};
use packhouse_store::{
    AuditEvent, ComponentRow, FormatChange, FormatPlugin, NewComponent, OrganizationId, PluginState,
    RepositoryId, Sha256, StoreError,
};

use super::registry::SCHEME;
use super::start::Uncompiled;
use super::{Changes, PluginOrigin, Told};
use crate::App;
use crate::boxed;

/// How often a change is decided anew because another came between.
pub(super) const ATTEMPTS: usize = 10;

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// The component cannot be run here, or may not: says why.
    #[error("{0}")]
    Refused(String),
    /// There is no such component, format or repository.
    #[error("there is no {0}")]
    Missing(String),
    /// Something else runs than was expected, or nothing that could be gone back to: says what.
    #[error("{0}")]
    Conflict(String),
    /// The component asks more than the one that runs.
    #[error("it asks more than the component that runs: {}", .0.in_words())]
    AsksMore(Changes),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is to run.
#[derive(Clone, Debug)]
pub struct Activation<'a> {
    /// The format.
    pub format: &'a str,
    /// The component, as `sha256:` and hex.
    pub digest: &'a str,
    /// What runs until now; none where the format runs nothing.
    pub expected: Option<&'a str>,
    /// Whether it may ask more than that.
    pub accept_changes: bool,
}

/// What a change did.
#[derive(Clone, Debug)]
pub struct Activated {
    /// What ran before.
    pub before: Option<String>,
    /// What runs now.
    pub digest: String,
}

/// What a component is to its format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PluginStateName {
    /// It runs.
    Active,
    /// It may be activated.
    Candidate,
    /// It ran before.
    Retired,
    /// It cannot be run here.
    Refused,
    /// It has to be compiled before it serves, as at the start.
    Compiling,
}

impl PluginStateName {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            PluginStateName::Active => "active",
            PluginStateName::Candidate => "candidate",
            PluginStateName::Retired => "retired",
            PluginStateName::Refused => "refused",
            PluginStateName::Compiling => "compiling",
        }
    }
}

/// A component as it is shown.
#[derive(Clone, Debug)]
pub struct ListedPlugin {
    /// Its format; of a file that is none, its name without the ending.
    pub format: String,
    /// `sha256:` and hex; none of a file that is none.
    pub digest: Option<String>,
    /// What it says of itself; none of a file that is none.
    pub told: Option<Told>,
    /// What it is to its format.
    pub state: PluginStateName,
    /// Where it came from.
    pub source: String,
    /// Who signed it.
    pub signed_by: Option<String>,
    /// When it was installed, in ms since 1970; none of one beside the program.
    pub installed_at: Option<i64>,
    /// Why it cannot be run here.
    pub error: Option<String>,
}

impl App {
    /// Every component: those of the database, those beside the program, and files that are none, or of which only compiling them will
    /// tell.
    #[boxed]
    pub async fn list_plugins(&self) -> Result<Vec<ListedPlugin>, StoreError> {
        let state = self.store.plugin_state().await?;
        let (failed, awaited) = (self.plugins.failed(), self.plugins.uncompiled());
        let mut listed = Vec::new();
        for row in self.store.components().await? {
            let mut item = self.listed(row, &state)?;
            let is_awaited = |digest: &String| awaited.contains_key(&Uncompiled::Stored(digest.clone()));
            if item.digest.as_ref().is_some_and(is_awaited) {
                item.state = PluginStateName::Compiling;
            }
            item.error = item.digest.as_ref().and_then(|digest| failed.get(digest)).cloned();
            listed.push(item);
        }
        for plugin in self.runtime.folder() {
            let digest = plugin.digest().to_string();
            if !listed.iter().any(|item| item.digest.as_ref() == Some(&digest)) {
                let format = plugin.description().format.clone();
                let name = self.state_name(&state, &format, &digest);
                listed.push(ListedPlugin {
                    state: name,
                    format,
                    digest: Some(digest),
                    told: Some(Told::of_plugin(&plugin)),
                    source: file_of(&plugin),
                    signed_by: None,
                    installed_at: None,
                    error: None,
                });
            }
        }
        let of_file = |format: Option<String>, state, source: Option<String>, error| ListedPlugin {
            format: format.unwrap_or_default(),
            digest: None,
            told: None,
            state,
            source: source.unwrap_or_default(),
            signed_by: None,
            installed_at: None,
            error,
        };
        let refused = self.runtime.refused();
        listed.extend(refused.iter().map(|error| {
            of_file(error.stem(), PluginStateName::Refused, error.file_name(), Some(error.reason()))
        }));
        listed.extend(awaited.keys().filter_map(|one| {
            let Uncompiled::File(file) = one else { return None };
            let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
            Some(of_file(component_name(file), PluginStateName::Compiling, name, None))
        }));
        listed.sort_by(|one, other| one.format.cmp(&other.format));
        Ok(listed)
    }

    /// The component of this digest as it is shown.
    #[boxed]
    pub async fn find_plugin(&self, digest: &str) -> Result<Option<ListedPlugin>, StoreError> {
        let listed = self.list_plugins().await?;
        Ok(listed.into_iter().find(|item| item.digest.as_deref() == Some(digest)))
    }

    fn listed(&self, row: ComponentRow, state: &PluginState) -> Result<ListedPlugin, StoreError> {
        Ok(ListedPlugin {
            state: self.state_name(state, &row.format, &row.digest),
            told: Some(read(&row)?),
            format: row.format,
            digest: Some(row.digest),
            source: row.source,
            signed_by: row.signed_by,
            installed_at: Some(row.installed_at),
            error: None,
        })
    }

    fn state_name(&self, state: &PluginState, format: &str, digest: &str) -> PluginStateName {
        if self.effective(state, format).as_deref() == Some(digest) {
            return PluginStateName::Active;
        }
        if state.trial(format).is_some_and(|trial| trial.new.digest == digest) {
            return PluginStateName::Candidate;
        }
        let ran = state.of(format).is_some_and(|row| row.history.iter().any(|before| before == digest));
        if ran { PluginStateName::Retired } else { PluginStateName::Candidate }
    }

    /// What the format runs: what was activated, or else what lies beside the program.
    pub(super) fn effective(&self, state: &PluginState, format: &str) -> Option<String> {
        let activated = state.of(format).and_then(|row| row.active.clone());
        activated.or_else(|| Some(self.runtime.of_folder(format)?.digest().to_string()))
    }

    /// Keeps a component as a candidate: its digest, whether it is new, and what it asks beyond the one that its format runs. What
    /// cannot be run here is refused in words.
    pub async fn install_plugin(
        &self,
        bytes: Bytes,
        origin: PluginOrigin,
        audit: impl FnOnce(&str) -> Option<AuditEvent>,
    ) -> Result<(String, bool, Changes), PluginError> {
        let digest = Sha256::of(&bytes).digest().to_string();
        let found = self.runtime.inspect_component(&digest, bytes.clone()).await;
        let found = found.map_err(|error| PluginError::Refused(error.reason()))?;
        let told = Told::of_inspection(&found);
        let format = found.description.format;
        self.judge_claims(&format, &told)?;
        let state = self.store.plugin_state().await?;
        let changes = match self.effective(&state, &format) {
            Some(active) => Changes::between(&self.told(&active).await?, &told),
            None => Changes::default(),
        };
        let PluginOrigin { source, signed_by } = origin;
        let detail = serde_json::json!({"source": source, "signed_by": signed_by}).to_string();
        let event = audit(&digest).map(|event| AuditEvent { detail, ..event });
        let component = NewComponent {
            digest: digest.clone(),
            format,
            told: written(&told)?,
            source: source.clone(),
            signed_by: signed_by.clone(),
            bytes,
        };
        let new = self.store.install_component(component, event.clone()).await?;
        if !new {
            self.renew_origin(&digest, PluginOrigin { source, signed_by }, event).await?;
        }
        self.follow_plugins().await?;
        Ok((digest, new, changes))
    }

    /// A component that is there was installed again: a registry that has it, and a signature, count from now on.
    async fn renew_origin(
        &self,
        digest: &str,
        again: PluginOrigin,
        event: Option<AuditEvent>,
    ) -> Result<(), StoreError> {
        let Some(row) = self.store.find_component(digest).await? else { return Ok(()) };
        let fetched = again.source.starts_with(SCHEME);
        let source = if fetched { again.source } else { row.source.clone() };
        let signed_by = again.signed_by.or_else(|| row.signed_by.clone());
        if (&source, &signed_by) == (&row.source, &row.signed_by) {
            return Ok(());
        }
        self.store.renew_component(digest, &source, signed_by.as_deref(), event).await
    }

    /// Lets a format run a component from now on. Calls in flight end on the one before.
    pub async fn activate_plugin(
        &self,
        activation: &Activation<'_>,
        audit: impl Fn(&str) -> Option<AuditEvent>,
    ) -> Result<Activated, PluginError> {
        let Activation { format, digest, expected, accept_changes } = *activation;
        for _ in 0..ATTEMPTS {
            let state = self.store.plugin_state().await?;
            let before = self.effective(&state, format);
            if before.as_deref() != expected {
                return Err(PluginError::Conflict(runs_another(format, before.as_deref(), expected)));
            }
            let told = self.told_of(format, digest).await?;
            if before.as_deref() == Some(digest) {
                return Ok(Activated { before: before.clone(), digest: digest.to_owned() });
            }
            self.judge_signature(&state, digest).await?;
            self.judge_claims(format, &told)?;
            if let Some(before) = &before {
                let changes = Changes::between(&self.told(before).await?, &told);
                if !accept_changes && !changes.is_empty() {
                    return Err(PluginError::AsksMore(changes));
                }
            }
            self.can_run(format, digest).await?;
            let mut row = of_format(&state, format);
            row.history.extend(before.clone());
            if self.change(row, digest, &state, with_digest(audit(format), Some(digest))).await? {
                return Ok(Activated { before, digest: digest.to_owned() });
            }
        }
        Err(PluginError::Conflict("others change the same at this moment: look again".to_owned()))
    }

    /// Lets a format run what it ran before.
    pub async fn roll_back_plugin(
        &self,
        format: &str,
        audit: impl Fn(&str) -> Option<AuditEvent>,
    ) -> Result<Activated, PluginError> {
        for _ in 0..ATTEMPTS {
            let state = self.store.plugin_state().await?;
            let before = self.effective(&state, format);
            let mut row = of_format(&state, format);
            let Some(digest) = row.history.pop() else {
                let message = format!("the format {format} has run nothing before");
                return Err(PluginError::Conflict(message));
            };
            self.can_run(format, &digest).await?;
            if self.change(row, &digest, &state, with_digest(audit(format), Some(&digest))).await? {
                return Ok(Activated { before, digest });
            }
        }
        Err(PluginError::Conflict("others change the same at this moment: look again".to_owned()))
    }

    /// Lets a component of its format serve a repository, whatever the format runs; with none, takes that back.
    #[boxed]
    pub async fn pin_plugin(
        &self,
        organization: OrganizationId,
        repository: RepositoryId,
        digest: Option<&str>,
        audit: Option<AuditEvent>,
    ) -> Result<(), PluginError> {
        let row = self.store.find_repository(organization, repository).await?;
        let row = row.ok_or_else(|| PluginError::Missing("such repository".to_owned()))?;
        let mut taken_in = None;
        if let Some(digest) = digest {
            self.told_of(&row.format, digest).await?;
            self.judge_signature(&self.store.plugin_state().await?, digest).await?;
            self.can_run(&row.format, digest).await?;
            taken_in = self.of_folder(&row.format, Some(digest)).await?;
        }
        let audit = with_digest(audit, digest);
        if !self.store.pin_repository(organization, repository, digest, taken_in, audit).await? {
            return Err(PluginError::Missing("such repository".to_owned()));
        }
        Ok(self.follow_plugins().await?)
    }

    /// Writes what a format runs, and follows; false where another change came before.
    async fn change(
        &self,
        row: FormatPlugin,
        digest: &str,
        state: &PluginState,
        audit: Option<AuditEvent>,
    ) -> Result<bool, PluginError> {
        // What lies beside the program is kept before something takes its place.
        let displaced = self.effective(state, &row.format);
        let taken_in = self.of_folder(&row.format, displaced.as_deref()).await?;
        let of_folder = self.runtime.of_folder(&row.format);
        let back = of_folder.is_some_and(|plugin| plugin.digest().to_string() == digest);
        let format = FormatPlugin { active: (!back).then(|| digest.to_owned()), ..row };
        let change = FormatChange { format, seen: state.number, taken_in };
        let done = self.store.change_format_plugin(change, audit).await?.is_some();
        if done {
            self.follow_plugins().await?;
        }
        Ok(done)
    }

    /// What a component of this format says of itself.
    pub(super) async fn told_of(&self, format: &str, digest: &str) -> Result<Told, PluginError> {
        let of_folder = self.runtime.folder();
        let of_folder = of_folder.iter().find(|plugin| plugin.digest().to_string() == digest);
        let (own, told) = match self.store.find_component(digest).await? {
            Some(row) => (row.format.clone(), read(&row)?),
            None => match of_folder {
                Some(plugin) => (plugin.description().format.clone(), Told::of_plugin(plugin)),
                None => return Err(PluginError::Missing(format!("component {digest}"))),
            },
        };
        if own != format {
            let sentence = format!("the component {digest} is of the format {own}, not of {format}");
            return Err(PluginError::Refused(sentence));
        }
        Ok(told)
    }

    /// The same of what runs, which is there.
    pub(super) async fn told(&self, digest: &str) -> Result<Told, PluginError> {
        if let Some(row) = self.store.find_component(digest).await? {
            return Ok(read(&row)?);
        }
        let loaded = self.runtime.loaded(digest);
        loaded
            .map(|plugin| Told::of_plugin(&plugin))
            .ok_or_else(|| PluginError::Missing(format!("component {digest}")))
    }

    /// Whether this server can run it, found out by loading it.
    pub(super) async fn can_run(&self, format: &str, digest: &str) -> Result<(), PluginError> {
        if self.runtime.loaded(digest).is_some() {
            return Ok(());
        }
        let bytes = self.store.component_bytes(digest).await?;
        let bytes = bytes.ok_or_else(|| PluginError::Missing(format!("component {digest} of {format}")))?;
        // It stays loaded for what follows.
        let loaded = self.runtime.load_component(digest, bytes).await;
        loaded.map(drop).map_err(|error| PluginError::Refused(error.reason()))
    }

    /// Refuses a component that claims a path which another format has.
    fn judge_claims(&self, format: &str, told: &Told) -> Result<(), PluginError> {
        for plugin in self.runtime.current().plugins() {
            let other = plugin.description();
            if other.format == format {
                continue;
            }
            let theirs = Told::of_plugin(plugin).capabilities.claims;
            if let Some(path) = told.capabilities.claims.iter().find(|path| theirs.contains(path)) {
                let sentence = format!("it claims the path {path}, which the format {} has", other.format);
                return Err(PluginError::Refused(sentence));
            }
        }
        Ok(())
    }

    /// The component beside the program of this format, if its digest is this one and the database does not keep it yet.
    pub(super) async fn of_folder(
        &self,
        format: &str,
        digest: Option<&str>,
    ) -> Result<Option<NewComponent>, PluginError> {
        let Some((plugin, digest)) = self.runtime.of_folder(format).zip(digest) else { return Ok(None) };
        if plugin.digest().to_string() != digest || self.store.find_component(digest).await?.is_some() {
            return Ok(None);
        }
        let Some(file) = plugin.file().map(ToOwned::to_owned) else { return Ok(None) };
        let path = file.clone();
        let read = tokio::task::spawn_blocking(move || read_component(&path)).await;
        let bytes = read.ok().and_then(Result::ok).unwrap_or_default();
        if Sha256::of(&bytes).digest().to_string() != digest {
            let sentence = format!("the file {} was changed since the start: restart first", file.display());
            return Err(PluginError::Refused(sentence));
        }
        Ok(Some(NewComponent {
            digest: digest.to_owned(),
            format: format.to_owned(),
            told: written(&Told::of_plugin(&plugin))?,
            source: file_of(&plugin),
            signed_by: None,
            bytes: bytes.into(),
        }))
    }
}

/// Why an activation that expected something else is refused.
fn runs_another(format: &str, runs: Option<&str>, expected: Option<&str>) -> String {
    let runs = runs.map_or_else(|| "no component".to_owned(), |runs| format!("the component {runs}"));
    let expected =
        expected.map_or_else(|| "no component".to_owned(), |expected| format!("the component {expected}"));
    format!(
        "the format {format} runs {runs}, and the activation expected {expected}: read what it runs again, and activate with that"
    )
}

/// The event with the component that runs from then on; null where a pin is taken back.
fn with_digest(event: Option<AuditEvent>, digest: Option<&str>) -> Option<AuditEvent> {
    with_detail(event, &serde_json::json!({"digest": digest}))
}

/// The event with these details.
pub(super) fn with_detail(event: Option<AuditEvent>, detail: &serde_json::Value) -> Option<AuditEvent> {
    event.map(|event| AuditEvent { detail: detail.to_string(), ..event })
}

fn of_format(state: &PluginState, format: &str) -> FormatPlugin {
    let none = || FormatPlugin { format: format.to_owned(), ..FormatPlugin::default() };
    state.of(format).cloned().unwrap_or_else(none)
}

fn file_of(plugin: &Plugin) -> String {
    let name = plugin.file().and_then(|file| file.file_name());
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn read(row: &ComponentRow) -> Result<Told, StoreError> {
    serde_json::from_str(&row.told)
        .map_err(|error| StoreError::Corrupt(format!("what the component {} says: {error}", row.digest)))
}

fn written(told: &Told) -> Result<String, StoreError> {
    serde_json::to_string(told).map_err(|error| StoreError::Invalid(format!("a component's words: {error}")))
}
