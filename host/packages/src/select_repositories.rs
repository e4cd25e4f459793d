//! The step that selects the repositories that the plugin sees. They are the target, members of a
//! group, and further repositories that the intent names.

use packhouse_config::repository_settings;
use packhouse_identity::access::{AccessAction, RepositoryKind};
use packhouse_runtime::{Action, Intent, Reads, RepositoryView};
use packhouse_store::{RepositoryId, RepositoryRow};
use packhouse_wire::catalogue;
use serde_json::Value;

use crate::access_request as access;
use crate::bearer_scope::BearerScope;

use crate::error_response::HttpError;
use crate::repository_request::{NamedRepository, RepositoryRequest, UNDISCLOSED_KIND};
use crate::repository_views::RepositoryViews;
use crate::withheld_names::WithheldNames;

/// The repositories that a plugin sees.
#[derive(Clone, Default)]
pub(crate) struct SelectedRepositories {
    /// Repository of the request; `None` below a claim without a repository.
    pub target: Option<RepositoryView>,
    /// Further repositories that the plugin may read.
    pub others: Vec<RepositoryView>,
    /// Facts on which the selection depends, apart from the settings of the repository and its
    /// members.
    pub reads: Reads,
}

/// Selects the repositories. Fails with 404 for a read of a group in which the caller may read no
/// member. Also fails with 404 for a package whose name a proxy claims. Fails with 503 if the store
/// cannot be read.
pub(crate) async fn select_repositories(
    request: &RepositoryRequest<'_>,
    intent: &Intent,
    views: &RepositoryViews,
) -> Result<SelectedRepositories, HttpError> {
    match &request.repository {
        None => Ok(SelectedRepositories::default()),
        Some(NamedRepository::Undisclosed { name, .. } | NamedRepository::Missing(name)) => {
            let target = Some(undisclosed(request, name));
            Ok(SelectedRepositories { target, ..SelectedRepositories::default() })
        }
        Some(NamedRepository::Found(row)) => {
            refuse_empty_group(request, row, intent)?;
            refuse_claimed(request, row, intent)?;
            let target = Some(views.of(row, &request.plugin));
            if request.members.is_empty() && intent.also_read.is_empty() {
                return Ok(SelectedRepositories { target, ..SelectedRepositories::default() });
            }
            let selected = Box::pin(others(request, row, intent, views)).await?;
            Ok(SelectedRepositories { target, ..selected })
        }
    }
}

/// Returns the view of an empty repository of this name with default settings.
fn undisclosed(request: &RepositoryRequest<'_>, name: &str) -> RepositoryView {
    let settings = repository_settings::effective("{}", false, Some(request.description()));
    RepositoryView {
        id: RepositoryId(0),
        revision: 0,
        name: name.into(),
        kind: UNDISCLOSED_KIND.into(),
        settings: Value::Object(settings).to_string().into(),
    }
}

fn refuse_empty_group(
    request: &RepositoryRequest<'_>,
    row: &RepositoryRow,
    intent: &Intent,
) -> Result<(), HttpError> {
    let is_group = RepositoryKind::of(&row.kind) == RepositoryKind::Group;
    if is_group && intent.action == Action::Read && request.members.is_empty() {
        return Err(HttpError::of(&catalogue::GROUP_EMPTY));
    }
    Ok(())
}

/// Refuses packages whose names a proxy claims, even if the proxy fetched them earlier.
fn refuse_claimed(
    request: &RepositoryRequest<'_>,
    row: &RepositoryRow,
    intent: &Intent,
) -> Result<(), HttpError> {
    if RepositoryKind::of(&row.kind) != RepositoryKind::Proxy || intent.packages.is_empty() {
        return Ok(());
    }
    let names = WithheldNames::of(request.description(), [row]);
    if intent.packages.iter().any(|name| names.claims(name)) {
        return Err(HttpError::of(&catalogue::NAME_CLAIMED));
    }
    Ok(())
}

/// Selects the members of a group that may serve the request, and the repositories that the intent
/// names. Both the credential and its bearer token must allow access to them.
async fn others(
    request: &RepositoryRequest<'_>,
    row: &RepositoryRow,
    intent: &Intent,
    views: &RepositoryViews,
) -> Result<SelectedRepositories, HttpError> {
    let (description, members) = (request.description(), &request.members);
    let mut reads = Reads::default();
    // Only groups have members, so this check applies only to groups.
    let proxies =
        !members.iter().any(|row| is_proxy(row)) || proxies_serve(request, row, intent, &mut reads).await?;
    let serving = members.iter().filter(|row| proxies || !is_proxy(row));
    let mut others: Vec<RepositoryView> = serving.map(|row| views.of(row, &request.plugin)).collect();
    let names: Vec<String> =
        intent.also_read.iter().filter(|name| bearer_allows(request, name)).cloned().collect();
    let facts = &request.principal.facts;
    let found = request.app.store.look_up_others(row.organization, &names, facts).await?;
    let readable = access::readable(request.principal, description, &found, request.now);
    let named = |name: &String| readable.iter().find(|row| row.name == *name);
    let named = names.iter().filter_map(named).filter(|row| proxies || !is_proxy(row));
    others.extend(named.map(|row| views.of(row, &request.plugin)));
    Ok(SelectedRepositories { target: None, others, reads })
}

fn is_proxy(row: &RepositoryRow) -> bool {
    RepositoryKind::of(&row.kind) == RepositoryKind::Proxy
}

/// Reports whether the bearer token allows reading this repository. Returns true if the credential
/// did not arrive in a bearer token.
fn bearer_allows(request: &RepositoryRequest<'_>, name: &str) -> bool {
    let required = AccessAction::Read { for_publish: false };
    match &request.principal.bearer_scope {
        BearerScope::Granted(grants) => grants
            .iter()
            .any(|grant| grant.repository == name && grant.covers(name, grant.subject.as_deref(), required)),
        BearerScope::Direct => true,
        BearerScope::Refused => false,
    }
}

/// Reports whether a group's proxies may serve the request. If the request names no package, they
/// may only if the caller can read all hosted members. The plugin knows only the repositories that
/// it sees.
async fn proxies_serve(
    request: &RepositoryRequest<'_>,
    group: &RepositoryRow,
    intent: &Intent,
    reads: &mut Reads,
) -> Result<bool, HttpError> {
    if intent.packages.is_empty() {
        let is_hosted = |row: &&RepositoryRow| RepositoryKind::of(&row.kind) == RepositoryKind::Hosted;
        let is_readable = |row: &RepositoryRow| request.members.iter().any(|member| member.id == row.id);
        return Ok(intent.many_packages || request.all_members().filter(is_hosted).all(is_readable));
    }
    let names = WithheldNames::of(request.description(), request.all_members().chain([group]));
    names.record_reads(&intent.packages, reads);
    Ok(names.withheld(&request.app.store, &intent.packages).await?.is_empty())
}
