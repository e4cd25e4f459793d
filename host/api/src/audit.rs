//! `GET /v1/audit-events`: who did what, when, from where, and whether it was allowed.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_store::{AuditFilter, AuditRow};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error::ApiError;
use crate::operations::audit;
use crate::paging::{self, Page};
use crate::scope::Family;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(list)]
}

/// Outcome of an event.
#[derive(Clone, Copy, Eq, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// The action was performed.
    Allowed,
    /// The credential was refused.
    Refused,
}

/// An event.
#[derive(Serialize, ToSchema)]
pub(crate) struct EventView {
    id: String,
    /// Unix time in ms. For aggregated refusals: the time of the last one.
    at: i64,
    /// An e-mail address, or a token's name; empty if the credential is unknown.
    actor: String,
    /// `token:ID`, `session:…`, `member:ID` (by password), …; empty if the credential is unknown.
    credential: String,
    /// The action: `create_token`, `publish`, …; `refused` if a credential was refused.
    action: String,
    /// Subject of the action.
    subject: String,
    /// Address of the caller; empty for the command line on the server's machine.
    address: String,
    /// The X-Request-Id of the response; null for refusals, which are counted together.
    request_id: Option<String>,
    outcome: Outcome,
    /// The code of the refusal.
    code: Option<String>,
    /// Number of times within one minute; 1 for performed actions.
    times: u64,
    /// Further details.
    #[schema(value_type = Object)]
    detail: Map<String, Value>,
}

impl From<AuditRow> for EventView {
    fn from(row: AuditRow) -> EventView {
        let AuditRow { id, at, event, refused, times } = row;
        EventView {
            id: id.to_string(),
            at,
            actor: event.actor,
            credential: event.credential,
            action: event.action,
            subject: event.subject,
            address: event.address,
            request_id: Some(event.request_id).filter(|id| !id.is_empty()),
            outcome: if refused.is_some() { Outcome::Refused } else { Outcome::Allowed },
            code: refused,
            times,
            detail: serde_json::from_str(&event.detail).unwrap_or_default(),
        }
    }
}

/// Lists events of the caller's organization, newest first. Refusals of credentials are aggregated:
/// one event for each credential, address, code and minute. Those of other servers of the same
/// database appear up to 20 s later.
#[utoipa::path(get, path = "/v1/audit-events", operation_id = "list_audit_events",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-scope" = json!(Family::Members))),
    params(("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page"),
        ("actor" = Option<String>, Query, description = "Only events of this actor"),
        ("action" = Option<String>, Query, description = "Only events of this action"),
        ("credential" = Option<String>, Query, description = "Only events of this credential"),
        ("outcome" = Option<String>, Query, description = "`allowed` or `refused`"),
        ("since" = Option<i64>, Query, description = "Only events at or after this time, in ms since 1970"),
        ("until" = Option<i64>, Query, description = "Only events before this time, in ms since 1970")),
    responses((status = 200, body = Page<EventView>)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["limit", "after", "actor", "action", "credential", "outcome", "since", "until"])?;
    let page = paging::request(&call)?;
    let filter = filter(&call)?;
    let listed = audit::list(call.actor()?, &filter, page).await?;
    Ok(Json(Page::of(listed, |row| row.id.to_string(), EventView::from)).into_response())
}

fn filter(call: &Call) -> Result<AuditFilter, ApiError> {
    let text = |name: &str| match call.query(name) {
        Some(text) if text.contains('\0') => {
            Err(ApiError::invalid(&format!("`{name}` must not contain a NUL character.")))
        }
        text => Ok(text.map(str::to_owned)),
    };
    let refused = match call.query("outcome") {
        None => None,
        Some("allowed") => Some(false),
        Some("refused") => Some(true),
        Some(_) => return Err(ApiError::invalid("`outcome` must be `allowed` or `refused`.")),
    };
    Ok(AuditFilter {
        actor: text("actor")?,
        action: text("action")?,
        credential: text("credential")?,
        refused,
        since: time(call, "since")?,
        until: time(call, "until")?,
    })
}

fn time(call: &Call, name: &str) -> Result<Option<i64>, ApiError> {
    let time = call.query(name).map(str::parse).transpose();
    time.map_err(|_| {
        ApiError::invalid(&format!("`{name}` must be a time in milliseconds since 1970-01-01 UTC."))
    })
}
