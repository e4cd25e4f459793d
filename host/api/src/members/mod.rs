//! Members of an organization with their permissions, invitations, and password resets.

pub(crate) mod bodies;
mod view;

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::{MemberId, MemberRow};

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::{Anyone, OfObject, SignedIn};
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::confirmations::Action;
use crate::operations::members;
use crate::paging::{self, Page};
use crate::scope::Family;
use bodies::{Accept, ChangeMe, ChangeMember, Complete, CreateMember, Invite, Reset, SetPermissions};
pub(crate) use view::MemberView;
use view::{InvitationView, Me, ResetView};

pub(crate) fn endpoints() -> Vec<Described> {
    vec![
        routes!(me),
        routes!(change_me),
        routes!(create),
        routes!(list),
        routes!(show),
        routes!(change),
        routes!(remove),
        routes!(set_permissions),
        routes!(reset),
        routes!(complete),
        routes!(invite),
        routes!(accept),
    ]
}

/// Returns the caller with their organization, permissions and repositories.
#[utoipa::path(get, path = "/v1/me", operation_id = "show_me",
    extensions(("x-right" = json!(SignedIn)), ("x-scope" = json!(Family::Any))),
    responses((status = 200, body = Me)))]
async fn me(call: Call) -> HandlerResult {
    call.only(&[])?;
    let actor = call.actor()?;
    let me = members::me(actor).await?;
    Ok(Json(Me::new(actor.member(), me)).into_response())
}

/// Changes the caller's own name or password. A new password requires the current one and ends the
/// caller's other sessions.
#[utoipa::path(patch, path = "/v1/me", operation_id = "change_me",
    extensions(("x-right" = json!(SignedIn)), ("x-scope" = json!(Family::None))),
    request_body = ChangeMe,
    responses((status = 200, body = Me), (status = 401, body = ErrorBody), (status = 429, body = ErrorBody)))]
async fn change_me(mut call: Call) -> HandlerResult {
    let body: ChangeMe = call.body()?;
    call.only(&[])?;
    let actor = call.actor()?;
    let change = body.change()?;
    // Read before the change, so that a completed change is not answered with an error.
    let me = members::me(actor).await?;
    let member = members::change(actor, change).await?;
    Ok(Json(Me::new(&member, me)).into_response())
}

/// Creates a member.
#[utoipa::path(post, path = "/v1/members", operation_id = "create_member",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Members)),
        ("x-confirmation" = json!(Action::ManageMembers))),
    request_body = CreateMember,
    responses((status = 201, body = MemberView), (status = 409, body = ErrorBody)))]
async fn create(mut call: Call) -> HandlerResult {
    let body: CreateMember = call.body()?;
    call.only(&[])?;
    let confirmation = call.confirmation(body.confirmation_token.as_ref());
    let row = members::create(call.actor()?, &confirmation, body.request()?).await?;
    Ok((StatusCode::CREATED, Json(detailed(&call, row).await?)).into_response())
}

/// Lists members, without their teams and effective permissions.
#[utoipa::path(get, path = "/v1/members", operation_id = "list_members",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Members))),
    params(("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<MemberView>)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let page = paging::request::<MemberId>(&call)?;
    let listed = members::list(call.actor()?, page).await?;
    let view = |row: MemberRow| MemberView::from(&row);
    Ok(Json(Page::of(listed, |row| row.id.to_string(), view)).into_response())
}

/// Returns a member.
#[utoipa::path(get, path = "/v1/members/{id}", operation_id = "show_member",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Members))),
    params(("id" = String, Path)),
    responses((status = 200, body = MemberView)))]
async fn show(call: Call) -> HandlerResult {
    call.only(&[])?;
    let row = members::show(call.actor()?, call.path("id")).await?;
    Ok(Json(detailed(&call, row).await?).into_response())
}

/// Suspends a member, or reactivates it. All credentials of a suspended member are refused from the
/// next request on, and work again after the reactivation. The last owner cannot be suspended, and
/// a member who holds more than the caller neither.
#[utoipa::path(patch, path = "/v1/members/{id}", operation_id = "change_member",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Members))),
    params(("id" = String, Path)),
    request_body = ChangeMember,
    responses((status = 200, body = MemberView), (status = 409, body = ErrorBody)))]
async fn change(mut call: Call) -> HandlerResult {
    let ChangeMember { active } = call.body()?;
    call.only(&[])?;
    let row = members::set_active(call.actor()?, call.path("id"), active).await?;
    Ok(Json(detailed(&call, row).await?).into_response())
}

/// Deletes a member. Its sessions end, its tokens are revoked, and its invitations become invalid.
#[utoipa::path(delete, path = "/v1/members/{id}", operation_id = "delete_member",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Members))),
    params(("id" = String, Path)),
    responses((status = 204), (status = 409, body = ErrorBody)))]
async fn remove(call: Call) -> HandlerResult {
    call.only(&[])?;
    members::remove(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Sets the permissions of a member. Neither the old nor the new permissions may exceed the
/// caller's. A change ends the member's invitations, the password resets that the member started,
/// and those of the member's own password.
#[utoipa::path(put, path = "/v1/members/{id}/permissions", operation_id = "set_member_permissions",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Members))),
    params(("id" = String, Path)),
    request_body = SetPermissions,
    responses((status = 200, body = MemberView), (status = 409, body = ErrorBody)))]
async fn set_permissions(mut call: Call) -> HandlerResult {
    let body: SetPermissions = call.body()?;
    call.only(&[])?;
    let permissions = bodies::permissions(body.permissions)?;
    let row = members::set_permissions(call.actor()?, call.path("id"), &permissions).await?;
    Ok(Json(detailed(&call, row).await?).into_response())
}

/// View of a member with its teams and its effective permissions.
async fn detailed(call: &Call, row: MemberRow) -> Result<MemberView, ApiError> {
    Ok(MemberView::from(members::details(call.actor()?, row).await?))
}

/// Creates a code with which a member can set a new password. A caller who is read-only or lacks a
/// permission of that member cannot do this.
#[utoipa::path(post, path = "/v1/members/{id}/password-reset", operation_id = "create_password_reset",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Members)),
        ("x-confirmation" = json!(Action::ManageMembers))),
    params(("id" = String, Path)),
    responses((status = 201, body = ResetView)))]
async fn reset(mut call: Call) -> HandlerResult {
    let Reset { confirmation_token } = call.body()?;
    call.only(&[])?;
    let confirmation = call.confirmation(confirmation_token.as_ref());
    let code = members::reset(call.actor()?, &confirmation, call.path("id")).await?;
    Ok((StatusCode::CREATED, Json(ResetView::from(code))).into_response())
}

/// Sets a new password, once, and ends the member's sessions. A code becomes invalid when the
/// permissions of its creator or of the member change, or when either is deleted; then the answer
/// is 404, as for an unknown code.
#[utoipa::path(post, path = "/v1/password-resets/{code}", operation_id = "complete_password_reset",
    extensions(("x-right" = json!(Anyone)), ("x-scope" = json!(Family::None))),
    params(("code" = String, Path)),
    request_body = Complete,
    responses((status = 204)))]
async fn complete(mut call: Call) -> HandlerResult {
    let body: Complete = call.body()?;
    call.only(&[])?;
    let password = bodies::password(body.password)?;
    members::complete_reset(call.origin(), call.path("code"), password).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Invites a person. The invitation ends when the permissions of the inviting member change or that
/// member is deleted.
#[utoipa::path(post, path = "/v1/invitations", operation_id = "create_invitation",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Members))),
    request_body = Invite,
    responses((status = 201, body = InvitationView)))]
async fn invite(mut call: Call) -> HandlerResult {
    let body: Invite = call.body()?;
    call.only(&[])?;
    let (email, permissions) = (bodies::email(&body.email)?, bodies::permissions(body.permissions)?);
    let code = members::invite(call.actor()?, email, &permissions).await?;
    Ok((StatusCode::CREATED, Json(InvitationView::from(code))).into_response())
}

/// Accepts an invitation, once: of several concurrent attempts, one succeeds. If the e-mail address
/// has an account in the meantime, the invitation is used up too.
#[utoipa::path(post, path = "/v1/invitations/{code}/accept", operation_id = "accept_invitation",
    extensions(("x-right" = json!(Anyone)), ("x-scope" = json!(Family::None))),
    params(("code" = String, Path)),
    request_body = Accept,
    responses((status = 201, body = MemberView), (status = 409, body = ErrorBody)))]
async fn accept(mut call: Call) -> HandlerResult {
    let body: Accept = call.body()?;
    call.only(&[])?;
    let row = members::accept(call.origin(), call.path("code"), body.acceptance()?).await?;
    Ok((StatusCode::CREATED, Json(MemberView::from(&row))).into_response())
}
