//! Execution of a plan. Every step can be repeated, and the next plan contains what an interruption
//! left undone.

use crate::cli::json::Members as _;
use std::path::Path;

use anyhow::{Context, bail};
use reqwest::StatusCode;
use serde_json::{Map, Value, json};

use super::bodies;
use super::documents::ConfigDocument;
use super::kinds::DocumentKind;
use super::plan::{ApplyPlan, FieldChange, PlanAction, PlanStep};
use super::secrets::{SecretFile, UpstreamPasswords};
use super::state::{NameIds, has_content};
use crate::cli::print;
use crate::cli::remote::{ApiClient, ApiRefusal, text};

/// Everything that the steps of a plan need.
pub(super) struct PlanExecutor<'a> {
    pub(super) api: &'a ApiClient,
    /// Ids of the objects, to which the steps add those that they create.
    pub(super) ids: NameIds,
    pub(super) passwords: UpstreamPasswords,
    /// Folder of the documents, to which paths in them are relative.
    pub(super) folder: &'a Path,
    /// Allows deleting repositories with packages.
    pub(super) prune_repositories: bool,
}

impl PlanExecutor<'_> {
    /// Runs all steps. The error names the step that failed and how many were completed.
    pub(super) async fn run(&mut self, plan: &ApplyPlan) -> anyhow::Result<()> {
        let memberships = plan.steps.iter().filter(|step| sets_members(step)).count();
        let (mut done, all) = (0, plan.steps.len() + memberships);
        let failed = |step: &PlanStep, done: usize| {
            let (kind, name) = (step.kind.name(), &step.name);
            format!("{done} of {all} steps are done, and the next run does the rest; {kind} {name:?} failed")
        };
        let is_early = |step: &&PlanStep| step.kind <= DocumentKind::ServiceAccount && !is_deletion(step);
        for step in plan.steps.iter().filter(is_early) {
            self.step(step).await.with_context(|| failed(step, done))?;
            done += 1;
        }
        // Members of teams may be service accounts, and service accounts are created in teams.
        for step in plan.steps.iter().filter(|step| sets_members(step)) {
            self.set_members(step).await.with_context(|| failed(step, done))?;
            done += 1;
        }
        for step in plan.steps.iter().filter(|step| !is_early(step)) {
            self.step(step).await.with_context(|| failed(step, done))?;
            done += 1;
        }
        Ok(())
    }

    async fn step(&mut self, step: &PlanStep) -> anyhow::Result<()> {
        match &step.action {
            PlanAction::Create(document) => self.create(document).await,
            PlanAction::Change { document, id, changes } => self.change(document, id, changes).await,
            PlanAction::WriteCredentials { document, id } => self.write_credentials(document, id).await,
            PlanAction::Delete { id, .. } => self.delete(step.kind, id).await,
        }
    }

    async fn create(&mut self, document: &ConfigDocument) -> anyhow::Result<()> {
        let body = bodies::creation(document, &self.ids)?;
        if document.kind == DocumentKind::Webhook {
            return self.create_webhook(document, &body).await;
        }
        let made = self.api.post(&[document.kind.segment()], &body).await?;
        let (name, id) = (document.name.clone(), text(&made, "id").to_owned());
        match document.kind {
            DocumentKind::Repository => {
                self.write_credentials(document, &id).await?;
                self.ids.repositories.insert(name, id);
            }
            DocumentKind::Team => {
                self.ids.teams.insert(name, id);
            }
            DocumentKind::ServiceAccount => {
                self.ids.members.insert(name, id);
            }
            DocumentKind::Policy | DocumentKind::RetentionPolicy => self.set_mode(document, &made).await?,
            DocumentKind::TrustedPublisher | DocumentKind::Webhook => {}
        }
        Ok(())
    }

    async fn create_webhook(&self, document: &ConfigDocument, body: &Value) -> anyhow::Result<()> {
        let file = document.secret_file.as_ref().context("`secret_file` is missing")?;
        let file = SecretFile::prepare(self.folder.join(file))?;
        let made = self.api.post(&["webhooks"], body).await?;
        file.write(text(&made, "secret")).context(
            "the webhook exists, but its secret could not be stored: delete the webhook, and run the command again",
        )?;
        if document.spec.get("state").is_some_and(|state| state == "paused") {
            self.api.patch(&["webhooks", text(&made, "id")], &json!({"state": "paused"})).await?;
        }
        Ok(())
    }

    async fn change(
        &self,
        document: &ConfigDocument,
        id: &str,
        changes: &[FieldChange],
    ) -> anyhow::Result<()> {
        let segments = [document.kind.segment(), id];
        if document.kind == DocumentKind::TrustedPublisher {
            // The API cannot change a publisher. The new one comes first, so that a refusal leaves
            // the old one.
            let body = bodies::creation(document, &self.ids)?;
            self.api.post(&[document.kind.segment()], &body).await?;
            return self.delete(document.kind, id).await;
        }
        let body = bodies::change(document, changes, &self.ids)?;
        let mut changed = Value::Null;
        if body.as_object().is_some_and(|body| !body.is_empty()) {
            changed = self.api.patch(&segments, &body).await?;
        }
        match document.kind {
            DocumentKind::Repository => self.write_credentials(document, id).await,
            DocumentKind::Policy | DocumentKind::RetentionPolicy => {
                if changed.is_null() {
                    changed = self.api.get(&segments).await?;
                }
                self.set_mode(document, &changed).await
            }
            _ => Ok(()),
        }
    }

    /// Sets the mode of a policy whose rule is up to date. The server enforces only a rule that was
    /// previewed.
    async fn set_mode(&self, document: &ConfigDocument, policy: &Value) -> anyhow::Result<()> {
        let Some(mode) = document.spec.get("mode").filter(|mode| *mode != policy.at("mode")) else {
            return Ok(());
        };
        let (kind, id) = (document.kind.segment(), text(policy, "id"));
        if mode == "enforced" {
            let preview = self.api.post_empty(&[kind, id, "preview"]).await?;
            if document.kind == DocumentKind::RetentionPolicy {
                let (name, versions, bytes) = (&document.name, preview.at("versions"), preview.at("bytes"));
                print(&format!(
                    "RetentionPolicy {name}: deletes {versions} versions of {bytes} bytes as of now"
                ))?;
            }
        }
        self.api.patch(&[kind, id], &json!({"mode": mode})).await.map(drop)
    }

    async fn write_credentials(&self, document: &ConfigDocument, id: &str) -> anyhow::Result<()> {
        let Some(credentials) = &document.credentials else { return Ok(()) };
        let mut body = credentials.as_object().cloned().unwrap_or_default();
        body.insert("password".to_owned(), json!(self.passwords.of(&document.name)?.reveal()));
        let segments = ["repositories", id, "upstream-credentials"];
        self.api.put(&segments, &Value::Object(body)).await.map(drop)
    }

    /// Adds and removes members until a team has exactly those of its document, apart from members
    /// through external groups.
    async fn set_members(&self, step: &PlanStep) -> anyhow::Result<()> {
        let (PlanAction::Create(document) | PlanAction::Change { document, .. }) = &step.action else {
            return Ok(());
        };
        let team = bodies::id_of(&self.ids.teams, "team", &document.name)?;
        let present = self.api.list(&["teams", team, "members"]).await?;
        let mut described = Vec::new();
        for name in document.spec.get("members").and_then(Value::as_array).into_iter().flatten() {
            let name = name.as_str().unwrap_or_default();
            described.push(bodies::id_of(&self.ids.members, "member", name)?);
        }
        for member in &described {
            if !present.iter().any(|there| text(there, "id") == *member) {
                self.api.put_empty(&["teams", team, "members", member]).await?;
            }
        }
        for there in present.iter().filter(|there| text(there, "source") != "external") {
            let id = text(there, "id");
            if !described.contains(&id) {
                self.api.delete(&["teams", team, "members", id]).await?;
            }
        }
        Ok(())
    }

    /// Deletes an object. An object that is gone already counts as deleted.
    async fn delete(&self, kind: DocumentKind, id: &str) -> anyhow::Result<()> {
        let segments = [kind.segment(), id];
        if kind == DocumentKind::Repository && !self.prune_repositories {
            // A client may have published to it since the plan was made.
            let there = self.api.get(&segments).await;
            if there.as_ref().is_ok_and(has_content) {
                bail!("the repository has packages now; --prune-repositories deletes it with them");
            }
        }
        match self.api.delete(&segments).await {
            Err(error) if ApiRefusal::has_status(&error, StatusCode::NOT_FOUND) => Ok(()),
            done => done,
        }
    }
}

fn is_deletion(step: &PlanStep) -> bool {
    matches!(step.action, PlanAction::Delete { .. })
}

/// Returns whether a step also changes the members of a team.
fn sets_members(step: &PlanStep) -> bool {
    step.kind == DocumentKind::Team
        && match &step.action {
            PlanAction::Create(document) => has_members(&document.spec),
            PlanAction::Change { changes, .. } => changes.iter().any(|change| change.field == "members"),
            PlanAction::WriteCredentials { .. } | PlanAction::Delete { .. } => false,
        }
}

fn has_members(spec: &Map<String, Value>) -> bool {
    spec.get("members").and_then(Value::as_array).is_some_and(|members| !members.is_empty())
}
