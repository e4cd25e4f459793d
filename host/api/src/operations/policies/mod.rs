//! Policies over versions: rules with a component each, previewed before they are enforced, and exceptions with a reason and an end. Rules
//! and exceptions need manage-repositories, components manage-server.

mod components;
mod of_version;
mod preview;
mod recordings;

use packhouse_identity::access::Kind;
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::{
    ExceptionId, ExceptionRow, MAX_EXCEPTIONS, MAX_RULES, NewException, NewRule, RepositoryId, RuleChange,
    RuleId, RuleMode, RuleRow, RuleText,
};
use packhouse_wire::catalogue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use packhouse_app::policies::RuleFailure;

use super::retention::Reach;
use super::{Actor, Listed, PageRequest};
use crate::error::ApiError;
pub use components::{ListedComponent, install, list as components, remove as remove_component};
pub use of_version::{RuledVersion, of_version};
pub use preview::{Preview, PreviewItem, preview};
pub use recordings::{record, recording, recording_of, recordings, stop_recording};

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its row.
    pub row: RuleRow,
    /// What went wrong with it on this server last.
    pub failure: Option<RuleFailure>,
}

/// What a rule is to say.
#[derive(Clone, Debug)]
pub struct RuleRequest {
    /// What people call it.
    pub name: String,
    /// A name of a policy beside the program, or a digest of one that was installed.
    pub component: String,
    /// A JSON object.
    pub settings: Value,
    /// Where it holds.
    pub repositories: Reach,
    /// Patterns of packages; none: all.
    pub packages: Option<Vec<String>>,
}

/// What is to be another of a rule; none: as it is.
#[derive(Clone, Debug, Default)]
pub struct RuleChangeRequest {
    /// What people call it.
    pub name: Option<String>,
    /// What judges.
    pub component: Option<String>,
    /// A JSON object.
    pub settings: Option<Value>,
    /// Where it holds.
    pub repositories: Option<Reach>,
    /// Patterns of packages; the inner none: all.
    pub packages: Option<Option<Vec<String>>>,
    /// How strictly it holds.
    pub mode: Option<RuleMode>,
}

/// What passes a rule nevertheless.
#[derive(Clone, Debug)]
pub struct ExceptionRequest {
    /// Where; none: everywhere.
    pub repository: Option<String>,
    /// A pattern.
    pub package: String,
    /// A pattern.
    pub version: String,
    /// Why.
    pub reason: String,
    /// Until when, in ms since 1970.
    pub until: i64,
}

/// Makes a rule, which is paused. 409 `too_many_policies` where there are as many as may be, 400 for a component that is not there and
/// for settings that it cannot use.
pub async fn create(actor: &Actor, request: RuleRequest) -> Result<Rule, ApiError> {
    actor.needs(ManageRepositories)?;
    let RuleRequest { name, component, settings, repositories, packages } = request;
    let text = text(component, &settings, &repositories, packages);
    check(actor, &text).await?;
    let event = actor.event("create_policy", name.clone());
    let new = NewRule { name, text, created_by: actor.member().email.clone() };
    let made = actor.app.store.create_rule(actor.organization(), new, Some(event)).await?;
    let row = made.ok_or_else(|| ApiError::with(&catalogue::TOO_MANY_RULES, &MAX_RULES.to_string()))?;
    Ok(rule(actor, row))
}

/// A page of them.
pub async fn list(actor: &Actor, page: PageRequest<RuleId>) -> Result<Listed<Rule>, ApiError> {
    actor.needs(ManageRepositories)?;
    let found = actor.app.store.list_rules(actor.organization(), page.after, page.one_further()).await?;
    let Listed { rows, more } = page.cut(found);
    Ok(Listed { rows: rows.into_iter().map(|row| rule(actor, row)).collect(), more })
}

/// The one of this id.
pub async fn find(actor: &Actor, id: &str) -> Result<Rule, ApiError> {
    actor.needs(ManageRepositories)?;
    let id = id.parse::<RuleId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_rule(actor.organization(), id).await?;
    Ok(rule(actor, row.ok_or(&catalogue::NOT_FOUND)?))
}

/// Changes the one of this id. What it says being changed, it is paused. 409 `preview_required` where it is to be enforced and was not
/// previewed as it is then; nothing has changed then.
pub async fn change(actor: &Actor, id: &str, request: RuleChangeRequest) -> Result<Rule, ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    let RuleChangeRequest { name, component, settings, repositories, packages, mode } = request;
    let changes = component.is_some() || settings.is_some() || repositories.is_some() || packages.is_some();
    let text = if changes {
        let before = &row.text;
        let settings = settings.unwrap_or_else(|| serde_json::from_str(&before.settings).unwrap_or_default());
        let reach = repositories.unwrap_or_else(|| reach_of(before));
        let packages = packages.unwrap_or_else(|| before.packages.clone());
        let text = text(component.unwrap_or_else(|| before.component.clone()), &settings, &reach, packages);
        check(actor, &text).await?;
        (text != *before).then_some(text)
    } else {
        None
    };
    let event = actor.event("change_policy", row.name);
    let change = RuleChange { name, text, mode };
    let changed = actor.app.store.change_rule(row.organization, row.id, change, Some(event)).await?;
    actor.app.policies.forget_failure(row.id);
    match changed {
        Some(row) => Ok(rule(actor, row)),
        None if mode == Some(RuleMode::Enforced) => {
            // Or it was deleted meanwhile.
            find(actor, id).await?;
            Err(ApiError::from(&catalogue::PREVIEW_REQUIRED))
        }
        None => Err(ApiError::from(&catalogue::NOT_FOUND)),
    }
}

/// Deletes the one of this id with its exceptions.
pub async fn remove(actor: &Actor, id: &str) -> Result<(), ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    let event = actor.event("delete_policy", row.name);
    actor.app.policies.forget_failure(row.id);
    if actor.app.store.delete_rule(row.organization, row.id, Some(event)).await? {
        Ok(())
    } else {
        Err(ApiError::from(&catalogue::NOT_FOUND))
    }
}

/// The exceptions of the one of this id, ended ones among them.
pub async fn exceptions(
    actor: &Actor,
    id: &str,
    page: PageRequest<ExceptionId>,
) -> Result<Listed<ExceptionRow>, ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    let store = &actor.app.store;
    let found = store.list_exceptions(row.organization, row.id, page.after, page.one_further()).await?;
    Ok(page.cut(found))
}

/// Makes an exception of the one of this id. 400 for a repository that is not there, 409 `too_many_exceptions` where there are as many as
/// may be.
pub async fn except(actor: &Actor, id: &str, request: ExceptionRequest) -> Result<ExceptionRow, ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    let ExceptionRequest { repository, package, version, reason, until } = request;
    let repository = match repository {
        Some(id) => Some(repository_of(actor, &id).await?),
        None => None,
    };
    let detail = json!({"package": package, "version": version, "reason": reason, "until": until});
    let event = actor.event("except_from_policy", row.name);
    let event = packhouse_store::AuditEvent { detail: detail.to_string(), ..event };
    let created_by = actor.member().email.clone();
    let new = NewException { repository, package, version, reason, until, created_by };
    let made = actor.app.store.create_exception(row.organization, row.id, new, Some(event)).await?;
    made.ok_or_else(|| ApiError::with(&catalogue::TOO_MANY_EXCEPTIONS, &MAX_EXCEPTIONS.to_string()))
}

/// Takes an exception back.
pub async fn end_exception(actor: &Actor, id: &str, exception: &str) -> Result<(), ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    let exception = exception.parse::<ExceptionId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let event = actor.event("end_exception_from_policy", row.name);
    if actor.app.store.delete_exception(row.organization, row.id, exception, Some(event)).await? {
        Ok(())
    } else {
        Err(ApiError::from(&catalogue::NOT_FOUND))
    }
}

/// Where a rule holds.
#[must_use]
pub fn reach_of(text: &RuleText) -> Reach {
    text.repositories.clone().map_or(Reach::All, Reach::Only)
}

fn rule(actor: &Actor, row: RuleRow) -> Rule {
    Rule { failure: actor.app.policies.failure(row.id), row }
}

async fn repository_of(actor: &Actor, id: &str) -> Result<RepositoryId, ApiError> {
    let unknown = || ApiError::invalid("`repository` names one that is not there.");
    let id = id.parse::<RepositoryId>().map_err(|_| unknown())?;
    let found = actor.app.store.find_repository(actor.organization(), id).await?;
    found.map(|row| row.id).ok_or_else(unknown)
}

fn text(
    component: String,
    settings: &Value,
    repositories: &Reach,
    packages: Option<Vec<String>>,
) -> RuleText {
    let repositories = match repositories {
        Reach::All => None,
        Reach::Only(ids) => Some(ids.clone()),
    };
    let settings = settings.to_string();
    let ids: Option<Vec<i64>> = repositories.as_ref().map(|ids| ids.iter().map(|id| id.0).collect());
    let said = json!([component, settings, ids, packages]).to_string();
    let digest = hex::encode(Sha256::digest(said.as_bytes()));
    RuleText { component, settings, repositories, packages, digest }
}

/// 400 where the component is not there, cannot use the settings, or a repository is not there.
async fn check(actor: &Actor, text: &RuleText) -> Result<(), ApiError> {
    if let Some(ids) = &text.repositories {
        let found = actor.app.store.find_repositories(actor.organization(), ids).await?;
        if found.len() != ids.len() {
            return Err(ApiError::invalid("`repositories` names one that is not there, or one twice."));
        }
        if let Some(group) = found.iter().find(|row| Kind::of(&row.kind) == Kind::Group) {
            let (name, told) =
                (&group.name, "has no versions of its own; name its members, by which it is judged.");
            return Err(ApiError::invalid(&format!("`repositories` names the group {name}, which {told}")));
        }
    }
    let found = actor.app.policy_component(&text.component).await?;
    let component = found.map_err(|why| ApiError::invalid(&format!("`component` cannot be used: {why}.")))?;
    match component.check(&text.settings).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(wrong)) => Err(ApiError::invalid(&format!("`settings` cannot be used: {wrong}."))),
        Err(error) => {
            Err(ApiError::invalid(&format!("`component` could not judge its settings: it {error}.")))
        }
    }
}
