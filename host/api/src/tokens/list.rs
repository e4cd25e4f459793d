//! `GET /v1/tokens`: the caller's own, another member's, or service keys. Never a secret.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_store::{MemberRow, TokenId, TokenRow};

use super::view::TokenView;
use crate::Answer;
use crate::call::Call;
use crate::error::{ApiError, ErrorBody};
use crate::paging::{self, Page};
use packhouse_identity as identity;
use packhouse_identity::permissions::Permission;
use packhouse_wire::catalogue;

/// Lists tokens.
#[utoipa::path(get, operation_id = "list_tokens", path = "/v1/tokens",
    params(("member" = Option<String>, Query, description = "E-mail of another member"),
        ("backing" = Option<String>, Query, description = "`org` or `repo`, for service keys"),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<TokenView>), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub async fn list(call: Call) -> Answer {
    call.only(&["member", "backing", "limit", "after"])?;
    let limit = paging::limit(&call)?;
    let after = paging::after::<TokenId>(&call)?;
    let page = match (call.query("member"), call.query("backing")) {
        (Some(_), Some(_)) => return Err(ApiError::invalid("`member` and `backing` do not go together.")),
        (None, Some(backing)) => of_backing(&call, backing, after, limit).await?,
        (member, None) => of_member(&call, member, after, limit).await?,
    };
    Ok(Json(page).into_response())
}

async fn of_member(
    call: &Call,
    named: Option<&str>,
    after: Option<TokenId>,
    limit: u32,
) -> Result<Page<TokenView>, ApiError> {
    let member = match named {
        Some(name) if name.trim().is_empty() => return Err(ApiError::from(&catalogue::INVALID_USER_ID)),
        Some(name) if identity::email(name).as_ref() != Some(&call.caller()?.member.email) => {
            // Before it is known whether there is such a member: who may not ask learns nothing of that.
            call.needs(Permission::ManageOwnerAccount)?;
            other(call, name).await?
        }
        _ => call.caller()?.member.clone(),
    };
    call.judge_permission()?;
    let rows =
        call.app.store.list_tokens(call.organization()?, Some(member.id), None, after, limit + 1).await?;
    Ok(cut(call, rows, limit, Some(&member.email)))
}

/// The member of that address in the caller's organization.
async fn other(call: &Call, name: &str) -> Result<MemberRow, ApiError> {
    let email = identity::email(name).unwrap_or_default();
    let organization = call.organization()?;
    let members = call.app.store.members_by_email(&email).await?;
    let member = members.into_iter().find(|row| row.organization == organization);
    member.ok_or(ApiError::from(&catalogue::USER_NOT_FOUND))
}

/// Service keys: of the organization for its owners, of repositories for those who may publish and delete there.
async fn of_backing(
    call: &Call,
    backing: &str,
    after: Option<TokenId>,
    limit: u32,
) -> Result<Page<TokenView>, ApiError> {
    match backing {
        "org" => call.needs(Permission::ManageOwnerAccount)?,
        "repo" => {}
        _ => return Err(ApiError::invalid("`backing` is `org` or `repo`.")),
    }
    call.judge_permission()?;
    let mut found = Vec::new();
    let mut after = after;
    while found.len() <= limit as usize {
        let organization = call.organization()?;
        let page = call.app.store.list_tokens(organization, None, Some(backing), after, READ_AT_ONCE).await?;
        after = page.last().map(|row| row.id);
        let last = page.len() < READ_AT_ONCE as usize;
        for row in page {
            if super::revoke::may_manage_key(call, &row)? {
                found.push(row);
            }
        }
        if last {
            break;
        }
    }
    found.truncate(limit as usize + 1);
    Ok(cut(call, found, limit, None))
}

/// Rows read in one statement.
const READ_AT_ONCE: u32 = 201;

fn cut(call: &Call, rows: Vec<TokenRow>, limit: u32, owner: Option<&str>) -> Page<TokenView> {
    Page::cut(rows, limit, |row| row.id.to_string(), |row| TokenView::new(&row, owner, call.now))
}
