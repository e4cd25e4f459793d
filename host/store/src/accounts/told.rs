//! What hooks are told of accounts: tokens that come and go, and who is invited. No secret, and no part of one, is ever in it.

use serde_json::{Value as Json, json};

use crate::accounts::rows::token::TokenRow;
use crate::accounts::{AuditEvent, InvitationRow};
use crate::db::{Transaction, values};
use crate::error::StoreError;
use crate::ids::{TokenId, WebhookId};
use crate::webhooks::{EventKind, Listeners, Telling, tell};

/// Tells of a token that was made, in the place of another where `replaced` says so.
pub(crate) async fn created(
    transaction: &mut Transaction,
    listeners: &Listeners,
    row: &TokenRow,
    replaced: Option<TokenId>,
    audit: Option<&AuditEvent>,
) -> Result<Vec<WebhookId>, StoreError> {
    let scope = [("read", row.scope.read), ("write", row.scope.write)];
    let scope: Vec<&str> = scope.into_iter().filter(|(_, held)| *held).map(|(name, _)| name).collect();
    let repositories: Vec<String> = row.repositories.iter().map(ToString::to_string).collect();
    let token = json!({"id": row.id.to_string(), "name": row.name, "scope": scope, "format": row.format,
        "repositories": repositories, "expires_at": row.expires_at, "backing": row.backing});
    let data =
        json!({"token": token, "replaced": replaced.map(|id| id.to_string()), "created_by": by(audit)});
    listeners.tell(transaction, of_token(EventKind::TokenCreated, row.id, &row.name, data)).await
}

/// Tells of tokens that were revoked.
pub(crate) async fn revoked(
    transaction: &mut Transaction,
    listeners: &Listeners,
    ids: &[TokenId],
    audit: Option<&AuditEvent>,
) -> Result<Vec<WebhookId>, StoreError> {
    let mut hooks = Vec::new();
    for id in ids.iter().filter(|_| !listeners.is_empty()) {
        let row = transaction.fetch_one("SELECT name FROM tokens WHERE id = $1", values![id.0]).await?;
        let name = row.map_or(Ok(None), |row| row.columns().opt_text("name"))?.unwrap_or_default();
        let data = json!({"token": {"id": id.to_string(), "name": name}, "revoked_by": by(audit)});
        let telling = of_token(EventKind::TokenRevoked, *id, &name, data);
        hooks.extend(listeners.tell(transaction, telling).await?);
    }
    Ok(hooks)
}

/// Tells of somebody who was invited: not of the code.
pub(super) async fn invited(
    transaction: &mut Transaction,
    row: &InvitationRow,
    audit: Option<&AuditEvent>,
) -> Result<Vec<WebhookId>, StoreError> {
    let telling = Telling {
        kind: EventKind::MemberInvited,
        repository: None,
        about: ("invitations", row.organization.0),
        subject: row.email.clone(),
        data: json!({"email": row.email, "expires_at": row.expires_at, "invited_by": by(audit)}),
    };
    tell(transaction, row.organization, telling).await
}

fn of_token(kind: EventKind, id: TokenId, name: &str, data: Json) -> Telling {
    Telling { kind, repository: None, about: ("token", id.0), subject: name.to_owned(), data }
}

fn by(audit: Option<&AuditEvent>) -> &str {
    audit.map_or("", |event| event.actor.as_str())
}
