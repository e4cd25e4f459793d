//! Changes of the components of formats: install, activate, roll back, pin. Each function checks
//! the component and its capabilities. The caller must check the permissions of the user.

use bytes::Bytes;
use packhouse_runtime::{Plugin, component_name, read_component};
use packhouse_store::{
    AuditEvent, ComponentRow, FormatChange, FormatPlugin, NewComponent, OrganizationId, PluginState,
    RepositoryId, Sha256, StoreError,
};

use super::registry::SCHEME;
use super::start::Uncompiled;
use super::{Changes, ComponentFacts, PluginOrigin, PluginStateName};
use crate::App;
use crate::boxed;

/// Maximum number of attempts to make a change while concurrent changes interfere.
pub(super) const ATTEMPTS: usize = 10;

/// Reason why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// The component cannot run, or is not allowed to run, on this server. The text contains the
    /// reason.
    #[error("{0}")]
    Refused(String),
    /// The component, format or repository does not exist.
    #[error("there is no {0}")]
    Missing(String),
    /// The active component is not the expected one, or the format has no earlier component to
    /// which it could roll back.
    #[error("{0}")]
    Conflict(String),
    /// The component requests capabilities that the active component does not have.
    #[error("the component requests more than the active one: {}", .0.in_words())]
    AsksMore(Changes),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Request to activate a component for a format.
#[derive(Clone, Debug)]
pub struct Activation<'a> {
    pub format: &'a str,
    /// Digest of the component, as `sha256:` and hex.
    pub digest: &'a str,
    /// Digest of the component that is active now; `None` if the format has none.
    pub expected: Option<&'a str>,
    /// True if the operator accepts capabilities that the active component does not have.
    pub accept_changes: bool,
}

#[derive(Clone, Debug)]
pub struct Activated {
    pub before: Option<String>,
    pub digest: String,
}

/// A component in a list.
#[derive(Clone, Debug)]
pub struct ListedPlugin {
    /// Format of the component. For an invalid file, the file's name without its extension.
    pub format: String,
    /// `sha256:` and hex; `None` for an invalid file.
    pub digest: Option<String>,
    /// Facts about the component; `None` for an invalid file.
    pub facts: Option<ComponentFacts>,
    pub state: PluginStateName,
    pub source: String,
    /// Fingerprint of the trusted key that signed the component.
    pub signed_by: Option<String>,
    /// Time of the installation, in ms since 1970; `None` for a component in the plugin folder.
    pub installed_at: Option<i64>,
    /// Reason why the component cannot run on this server.
    pub error: Option<String>,
}

impl App {
    /// Lists every component in the database and in the plugin folder. Includes files that are
    /// invalid or not yet compiled.
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
                    facts: Some(ComponentFacts::of_plugin(&plugin)),
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
            facts: None,
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

    /// Returns the component with this digest from the list.
    #[boxed]
    pub async fn find_plugin(&self, digest: &str) -> Result<Option<ListedPlugin>, StoreError> {
        let listed = self.list_plugins().await?;
        Ok(listed.into_iter().find(|item| item.digest.as_deref() == Some(digest)))
    }

    fn listed(&self, row: ComponentRow, state: &PluginState) -> Result<ListedPlugin, StoreError> {
        Ok(ListedPlugin {
            state: self.state_name(state, &row.format, &row.digest),
            facts: Some(read(&row)?),
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
        let ran = state.of(format).is_some_and(|row| row.history.iter().any(|before| before == digest));
        if ran { PluginStateName::Retired } else { PluginStateName::Candidate }
    }

    /// Returns the digest of the component that the format runs: the activated component, or else
    /// the one in the plugin folder.
    pub(super) fn effective(&self, state: &PluginState, format: &str) -> Option<String> {
        let activated = state.of(format).and_then(|row| row.active.clone());
        activated.or_else(|| Some(self.runtime.of_folder(format)?.digest().to_string()))
    }

    /// Stores a component as a candidate. Returns its digest, whether it is new, and the
    /// capabilities that it requests in addition to the active component. Refuses a component that
    /// cannot run on this server, and states the reason.
    pub async fn install_plugin(
        &self,
        bytes: Bytes,
        origin: PluginOrigin,
        audit: impl FnOnce(&str) -> Option<AuditEvent>,
    ) -> Result<(String, bool, Changes), PluginError> {
        let digest = Sha256::of(&bytes).digest().to_string();
        let found = self.runtime.inspect_component(&digest, bytes.clone()).await;
        let found = found.map_err(|error| PluginError::Refused(error.reason()))?;
        let facts = ComponentFacts::of_inspection(&found);
        let format = found.description.format;
        self.judge_claims(&format, &facts)?;
        let state = self.store.plugin_state().await?;
        let changes = match self.effective(&state, &format) {
            Some(active) => Changes::between(&self.active_facts(&active).await?, &facts),
            None => Changes::default(),
        };
        let PluginOrigin { source, signed_by } = origin;
        let detail = serde_json::json!({"source": source, "signed_by": signed_by}).to_string();
        let event = audit(&digest).map(|event| AuditEvent { detail, ..event });
        let component = NewComponent {
            digest: digest.clone(),
            format,
            description: written(&facts)?,
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

    /// Updates the origin of a component that was installed again. A source that is a registry, or
    /// a signature, replaces the earlier value.
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

    /// Activates a component for a format. Calls that are already running finish in the previous
    /// component.
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
            let facts = self.component_facts(format, digest).await?;
            if before.as_deref() == Some(digest) {
                return Ok(Activated { before: before.clone(), digest: digest.to_owned() });
            }
            self.judge_signature(&state, digest).await?;
            self.judge_claims(format, &facts)?;
            if let Some(before) = &before {
                let changes = Changes::between(&self.active_facts(before).await?, &facts);
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
        Err(PluginError::Conflict(
            "another change is in progress; read the current state and try again".to_owned(),
        ))
    }

    /// Reactivates the previous component of a format.
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
                let message = format!("the format {format} has no earlier component");
                return Err(PluginError::Conflict(message));
            };
            self.can_run(format, &digest).await?;
            if self.change(row, &digest, &state, with_digest(audit(format), Some(&digest))).await? {
                return Ok(Activated { before, digest });
            }
        }
        Err(PluginError::Conflict(
            "another change is in progress; read the current state and try again".to_owned(),
        ))
    }

    /// Pins a component to a repository, whichever component the repository's format runs. `None`
    /// removes the pin.
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
            self.component_facts(&row.format, digest).await?;
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

    /// Stores which component of a format is active, and applies this. Returns false if another
    /// change came first.
    async fn change(
        &self,
        row: FormatPlugin,
        digest: &str,
        state: &PluginState,
        audit: Option<AuditEvent>,
    ) -> Result<bool, PluginError> {
        // Store a component of the plugin folder before another component replaces it.
        let displaced = self.effective(state, &row.format);
        let taken_in = self.of_folder(&row.format, displaced.as_deref()).await?;
        let of_folder = self.runtime.of_folder(&row.format);
        let back = of_folder.is_some_and(|plugin| plugin.digest().to_string() == digest);
        let format = FormatPlugin { active: (!back).then(|| digest.to_owned()), ..row };
        let change = FormatChange { format, based_on: state.number, taken_in };
        let done = self.store.change_format_plugin(change, audit).await?.is_some();
        if done {
            self.follow_plugins().await?;
        }
        Ok(done)
    }

    /// Returns the facts about a component. Fails if the component belongs to another format.
    pub(super) async fn component_facts(
        &self,
        format: &str,
        digest: &str,
    ) -> Result<ComponentFacts, PluginError> {
        let of_folder = self.runtime.folder();
        let of_folder = of_folder.iter().find(|plugin| plugin.digest().to_string() == digest);
        let (own, facts) = match self.store.find_component(digest).await? {
            Some(row) => (row.format.clone(), read(&row)?),
            None => match of_folder {
                Some(plugin) => (plugin.description().format.clone(), ComponentFacts::of_plugin(plugin)),
                None => return Err(PluginError::Missing(format!("component {digest}"))),
            },
        };
        if own != format {
            let sentence = format!("the component {digest} belongs to the format {own}, not to {format}");
            return Err(PluginError::Refused(sentence));
        }
        Ok(facts)
    }

    /// Returns the facts about the active component.
    pub(super) async fn active_facts(&self, digest: &str) -> Result<ComponentFacts, PluginError> {
        if let Some(row) = self.store.find_component(digest).await? {
            return Ok(read(&row)?);
        }
        let loaded = self.runtime.loaded(digest);
        loaded
            .map(|plugin| ComponentFacts::of_plugin(&plugin))
            .ok_or_else(|| PluginError::Missing(format!("component {digest}")))
    }

    /// Checks that this server can run the component, by loading the component.
    pub(super) async fn can_run(&self, format: &str, digest: &str) -> Result<(), PluginError> {
        if self.runtime.loaded(digest).is_some() {
            return Ok(());
        }
        let bytes = self.store.component_bytes(digest).await?;
        let bytes = bytes.ok_or_else(|| PluginError::Missing(format!("component {digest} of {format}")))?;
        // The component stays loaded for later use.
        let loaded = self.runtime.load_component(digest, bytes).await;
        loaded.map(drop).map_err(|error| PluginError::Refused(error.reason()))
    }

    /// Refuses a component that claims a path which another format already claims.
    fn judge_claims(&self, format: &str, facts: &ComponentFacts) -> Result<(), PluginError> {
        for plugin in self.runtime.current().plugins() {
            let other = plugin.description();
            if other.format == format {
                continue;
            }
            let theirs = ComponentFacts::of_plugin(plugin).capabilities.claims;
            if let Some(path) = facts.capabilities.claims.iter().find(|path| theirs.contains(path)) {
                let sentence = format!(
                    "the component claims the path {path}, which the format {} already claims",
                    other.format
                );
                return Err(PluginError::Refused(sentence));
            }
        }
        Ok(())
    }

    /// Returns the format's component from the plugin folder if it has this digest and the database
    /// does not contain it yet.
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
            let sentence = format!(
                "the file {} has changed since the server started: restart the server first",
                file.display()
            );
            return Err(PluginError::Refused(sentence));
        }
        Ok(Some(NewComponent {
            digest: digest.to_owned(),
            format: format.to_owned(),
            description: written(&ComponentFacts::of_plugin(&plugin))?,
            source: file_of(&plugin),
            signed_by: None,
            bytes: bytes.into(),
        }))
    }
}

/// Returns the message if another component is active than the activation expected.
fn runs_another(format: &str, runs: Option<&str>, expected: Option<&str>) -> String {
    let runs = runs.map_or_else(|| "no component".to_owned(), |runs| format!("the component {runs}"));
    let expected =
        expected.map_or_else(|| "no component".to_owned(), |expected| format!("the component {expected}"));
    format!(
        "the format {format} runs {runs}, but the activation expected {expected}: read the active \
         component again and retry with it"
    )
}

/// Adds the digest of the new component to the event, or null if a pin was removed.
fn with_digest(event: Option<AuditEvent>, digest: Option<&str>) -> Option<AuditEvent> {
    with_detail(event, &serde_json::json!({"digest": digest}))
}

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

fn read(row: &ComponentRow) -> Result<ComponentFacts, StoreError> {
    serde_json::from_str(&row.description).map_err(|error| {
        StoreError::Corrupt(format!("the description of the component {}: {error}", row.digest))
    })
}

fn written(facts: &ComponentFacts) -> Result<String, StoreError> {
    serde_json::to_string(facts)
        .map_err(|error| StoreError::Invalid(format!("the description of a component: {error}")))
}
