//! `GET /v1/me`.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_store::RepositoryRow;
use serde::Serialize;
use utoipa::ToSchema;

use super::view::MemberView;
use crate::Answer;
use crate::call::Call;
use crate::error::ErrorBody;
use packhouse_identity::access::Rights;
use packhouse_identity::permissions::RepositoryAction;

/// An organization as its members see it.
#[derive(Serialize, ToSchema)]
pub(super) struct OrganizationView {
    id: String,
    name: String,
    base_url: String,
}

/// A repository and what the caller may do there.
#[derive(Serialize, ToSchema)]
pub(super) struct ReachableRepository {
    id: String,
    name: String,
    format: String,
    kind: String,
    actions: Vec<RepositoryAction>,
}

impl ReachableRepository {
    fn new(row: RepositoryRow, rights: Rights) -> Option<ReachableRepository> {
        let held = [
            (rights.read, RepositoryAction::Read),
            (rights.publish, RepositoryAction::Publish),
            (rights.delete, RepositoryAction::Delete),
        ];
        let actions: Vec<_> = held.into_iter().filter(|(held, _)| *held).map(|(_, action)| action).collect();
        let reachable = !actions.is_empty();
        reachable.then(|| ReachableRepository {
            id: row.id.to_string(),
            name: row.name,
            format: row.format,
            kind: row.kind,
            actions,
        })
    }
}

/// The caller.
#[derive(Serialize, ToSchema)]
pub(super) struct Me {
    #[serde(flatten)]
    member: MemberView,
    organization: OrganizationView,
    repositories: Vec<ReachableRepository>,
}

/// The caller, with organization, permissions and repositories.
#[utoipa::path(get, operation_id = "show_me", path = "/v1/me",
    responses((status = 200, body = Me), (status = 401, body = ErrorBody)))]
pub(crate) async fn me(call: Call) -> Answer {
    call.only(&[])?;
    let caller = call.judge_permission()?;
    let id = caller.member.organization;
    let organizations = call.app.store.organizations().await?;
    let organization = organizations.into_iter().find(|organization| organization.id == id);
    let mut repositories = Vec::new();
    let mut after = None;
    loop {
        let page = call.app.store.list_repositories(id, after, PAGE).await?;
        after = page.last().map(|row| row.id);
        let last = page.len() < PAGE as usize;
        repositories.extend(page.into_iter().filter_map(|row| {
            let rights = caller.permissions.rights(row.id);
            ReachableRepository::new(row, rights)
        }));
        if last {
            break;
        }
    }
    let organization = OrganizationView {
        id: id.to_string(),
        name: organization.as_ref().map(|row| row.name.clone()).unwrap_or_default(),
        base_url: organization.and_then(|row| row.base_url).unwrap_or_else(|| call.app.base_url()),
    };
    Ok(Json(Me { member: MemberView::from(&caller.member), organization, repositories }).into_response())
}

/// Rows read at a time.
const PAGE: u32 = 500;
