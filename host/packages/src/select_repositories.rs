//! The step that selects which repositories the plugin is handed: the target, the members of a group that may serve, and what the
//! intent reads from besides.

use packhouse_config::repository_settings;
use packhouse_identity::access::{AccessAction, Kind};
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

/// The repositories that a plugin is handed.
#[derive(Clone, Default)]
pub(crate) struct SelectedRepositories {
    /// What the request is about; none under a claim that names no repository.
    pub target: Option<RepositoryView>,
    /// What else the plugin may read.
    pub others: Vec<RepositoryView>,
    /// What the selection was made by, besides the settings of the repository and of its members.
    pub reads: Reads,
}

/// Selects them. 404 for a read of a group without a member that the caller may read, and for a package whose name a proxy claims;
/// 503 if the store cannot be read.
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

/// A repository of this name that holds nothing and whose settings nobody changed.
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
    let is_group = Kind::of(&row.kind) == Kind::Group;
    if is_group && intent.action == Action::Read && request.members.is_empty() {
        return Err(HttpError::of(&catalogue::GROUP_EMPTY));
    }
    Ok(())
}

/// A proxy has no package whose name it claims, whatever it has fetched of it before.
fn refuse_claimed(
    request: &RepositoryRequest<'_>,
    row: &RepositoryRow,
    intent: &Intent,
) -> Result<(), HttpError> {
    if Kind::of(&row.kind) != Kind::Proxy || intent.packages.is_empty() {
        return Ok(());
    }
    let names = WithheldNames::of(request.description(), [row]);
    if intent.packages.iter().any(|name| names.claims(name)) {
        return Err(HttpError::of(&catalogue::NAME_CLAIMED));
    }
    Ok(())
}

/// The members of a group that may serve, and what the intent reads from, as far as both the credential and the bearer that it
/// came in allow it.
async fn others(
    request: &RepositoryRequest<'_>,
    row: &RepositoryRow,
    intent: &Intent,
    views: &RepositoryViews,
) -> Result<SelectedRepositories, HttpError> {
    let (description, members) = (request.description(), &request.members);
    let mut reads = Reads::default();
    // Only a group has members: for another repository nothing is asked.
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
    Kind::of(&row.kind) == Kind::Proxy
}

/// Whether the bearer that the credential came in, if it did, allows to read the repository of this name.
fn bearer_allows(request: &RepositoryRequest<'_>, name: &str) -> bool {
    let wanted = AccessAction::Read { for_publish: false };
    match &request.principal.bearer_scope {
        BearerScope::Granted(grants) => grants
            .iter()
            .any(|grant| grant.repository == name && grant.covers(name, grant.subject.as_deref(), wanted)),
        BearerScope::Direct => true,
        BearerScope::Refused => false,
    }
}

/// Whether a group's proxies may serve what the request is about. Where it names no package, nothing that the caller cannot see
/// may stand in their way: the plugin then judges by what it is handed.
async fn proxies_serve(
    request: &RepositoryRequest<'_>,
    group: &RepositoryRow,
    intent: &Intent,
    reads: &mut Reads,
) -> Result<bool, HttpError> {
    if intent.packages.is_empty() {
        let is_hosted = |row: &&RepositoryRow| Kind::of(&row.kind) == Kind::Hosted;
        let seen = |row: &RepositoryRow| request.members.iter().any(|member| member.id == row.id);
        return Ok(intent.many_packages || request.all_members().filter(is_hosted).all(seen));
    }
    let names = WithheldNames::of(request.description(), request.all_members().chain([group]));
    names.note_reads(&intent.packages, reads);
    Ok(names.withheld(&request.app.store, &intent.packages).await?.is_empty())
}
