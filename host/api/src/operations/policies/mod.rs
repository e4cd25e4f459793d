//! Policies for versions: rules that run one component each and are previewed before they are
//! enforced, and exceptions with a reason and an end. Rules and exceptions need
//! manage-repositories, components need manage-server.

mod components;
mod of_version;
mod preview;
mod recordings;

use packhouse_identity::access::RepositoryKind;
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
use super::{Actor, PageRequest, RowPage};
use crate::error::ApiError;
pub use components::{ListedComponent, install, list as components, remove as remove_component};
pub use of_version::{RuledVersion, of_version, of_versions};
pub use preview::{Preview, PreviewItem, preview};
pub use recordings::{record, recording, recording_of, recordings, stop_recording};

#[derive(Clone, Debug)]
pub struct Rule {
    pub row: RuleRow,
    /// Last failure of its component on this server.
    pub failure: Option<RuleFailure>,
}

#[derive(Clone, Debug)]
pub struct RuleRequest {
    pub name: String,
    /// Name of a component beside the program, or digest of an installed one.
    pub component: String,
    /// Settings as a JSON object.
    pub settings: Value,
    /// Repositories to which it applies.
    pub repositories: Reach,
    /// Patterns of package names; `None` for all packages.
    pub packages: Option<Vec<String>>,
}

/// Changes to a rule; `None` leaves a field unchanged.
#[derive(Clone, Debug, Default)]
pub struct RuleChangeRequest {
    pub name: Option<String>,
    pub component: Option<String>,
    /// Settings as a JSON object.
    pub settings: Option<Value>,
    /// Repositories to which it applies.
    pub repositories: Option<Reach>,
    /// Patterns of package names; the inner `None` means all packages.
    pub packages: Option<Option<Vec<String>>>,
    pub mode: Option<RuleMode>,
}

/// New exception from a rule.
#[derive(Clone, Debug)]
pub struct ExceptionRequest {
    /// Id of a repository; `None` for all repositories.
    pub repository: Option<String>,
    /// Pattern of the package name.
    pub package: String,
    /// Pattern of the version number.
    pub version: String,
    /// Reason, as a text for people.
    pub reason: String,
    /// End in ms since 1970.
    pub until: i64,
}

/// Creates a rule, which is paused at first. 409 `too_many_policies` at the maximum number, 400 if
/// its component does not exist or cannot use its settings.
pub async fn create(actor: &Actor, request: RuleRequest) -> Result<Rule, ApiError> {
    actor.needs(ManageRepositories)?;
    let RuleRequest { name, component, settings, repositories, packages } = request;
    let text = text(component, &settings, &repositories, packages);
    check(actor, &text).await?;
    let event = actor.event("create_policy", name.clone());
    let new = NewRule { name, text, created_by: actor.name().to_owned() };
    let made = actor.app.store.create_rule(actor.organization(), new, Some(event)).await?;
    let row = made.ok_or_else(|| ApiError::with(&catalogue::TOO_MANY_RULES, &MAX_RULES.to_string()))?;
    Ok(rule(actor, row))
}

/// Returns a page of rules.
pub async fn list(actor: &Actor, page: PageRequest<RuleId>) -> Result<RowPage<Rule>, ApiError> {
    actor.needs(ManageRepositories)?;
    let found = actor.app.store.list_rules(actor.organization(), page.after, page.one_further()).await?;
    let RowPage { rows, more } = page.cut(found);
    Ok(RowPage { rows: rows.into_iter().map(|row| rule(actor, row)).collect(), more })
}

pub async fn find(actor: &Actor, id: &str) -> Result<Rule, ApiError> {
    actor.needs(ManageRepositories)?;
    let id = id.parse::<RuleId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_rule(actor.organization(), id).await?;
    Ok(rule(actor, row.ok_or(&catalogue::NOT_FOUND)?))
}

/// Changes a rule. A change of its content pauses it. 409 `preview_required`, without any change,
/// if the rule is to be enforced and its new content was not previewed.
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
            // It may also have been deleted in the meantime.
            find(actor, id).await?;
            Err(ApiError::from(&catalogue::PREVIEW_REQUIRED))
        }
        None => Err(ApiError::from(&catalogue::NOT_FOUND)),
    }
}

/// Deletes a rule with its exceptions.
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

/// Returns a page of a rule's exceptions, including expired ones.
pub async fn exceptions(
    actor: &Actor,
    id: &str,
    page: PageRequest<ExceptionId>,
) -> Result<RowPage<ExceptionRow>, ApiError> {
    let Rule { row, .. } = find(actor, id).await?;
    let store = &actor.app.store;
    let found = store.list_exceptions(row.organization, row.id, page.after, page.one_further()).await?;
    Ok(page.cut(found))
}

/// Creates an exception from a rule. 400 if the repository does not exist, 409
/// `too_many_exceptions` at the maximum number.
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
    let created_by = actor.name().to_owned();
    let new = NewException { repository, package, version, reason, until, created_by };
    let made = actor.app.store.create_exception(row.organization, row.id, new, Some(event)).await?;
    made.ok_or_else(|| ApiError::with(&catalogue::TOO_MANY_EXCEPTIONS, &MAX_EXCEPTIONS.to_string()))
}

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

/// Repositories to which a rule applies.
#[must_use]
pub fn reach_of(text: &RuleText) -> Reach {
    text.repositories.clone().map_or(Reach::All, Reach::Only)
}

fn rule(actor: &Actor, row: RuleRow) -> Rule {
    Rule { failure: actor.app.policies.failure(row.id), row }
}

async fn repository_of(actor: &Actor, id: &str) -> Result<RepositoryId, ApiError> {
    let unknown = || ApiError::invalid("`repository` must be the id of an existing repository.");
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
    let content = json!([component, settings, ids, packages]).to_string();
    let digest = hex::encode(Sha256::digest(content.as_bytes()));
    RuleText { component, settings, repositories, packages, digest }
}

/// Checks that the component and the repositories exist, and that the component can use the
/// settings; otherwise 400.
async fn check(actor: &Actor, text: &RuleText) -> Result<(), ApiError> {
    if let Some(ids) = &text.repositories {
        let found = actor.app.store.find_repositories(actor.organization(), ids).await?;
        if found.len() != ids.len() {
            return Err(ApiError::invalid(
                "`repositories` lists a repository that does not exist, or lists one twice.",
            ));
        }
        if let Some(group) = found.iter().find(|row| RepositoryKind::of(&row.kind) == RepositoryKind::Group) {
            let (name, problem) = (
                &group.name,
                "has no versions of its own; list its members instead, because their versions are judged.",
            );
            return Err(ApiError::invalid(&format!(
                "`repositories` names the group {name}, which {problem}"
            )));
        }
    }
    let found = actor.app.policy_component(&text.component).await?;
    let component = found.map_err(|why| ApiError::invalid(&format!("`component` cannot be used: {why}.")))?;
    match component.check(&text.settings).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(wrong)) => Err(ApiError::invalid(&format!("`settings` cannot be used: {wrong}."))),
        Err(error) => {
            Err(ApiError::invalid(&format!("`component` could not check its settings: the policy {error}.")))
        }
    }
}
