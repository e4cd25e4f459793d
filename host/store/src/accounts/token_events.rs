//! Webhook events about tokens that are created or revoked, and about invitations. The events never
//! contain a secret or a part of one.

use serde_json::{Value as Json, json};

use crate::accounts::rows::token::TokenRow;
use crate::accounts::{AuditEvent, InvitationRow};
use crate::db::{Transaction, values};
use crate::error::StoreError;
use crate::ids::{TokenId, WebhookId};
use crate::webhooks::{EventKind, Listeners, NewWebhookEvent, write_event};

/// Sends the event for a created token. `replaced` is the token that it succeeds, if any.
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
    listeners.write_event(transaction, of_token(EventKind::TokenCreated, row.id, &row.name, data)).await
}

/// Sends the events for revoked tokens.
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
        hooks.extend(listeners.write_event(transaction, telling).await?);
    }
    Ok(hooks)
}

/// Sends the event for an invitation, without its code.
pub(super) async fn invited(
    transaction: &mut Transaction,
    row: &InvitationRow,
    audit: Option<&AuditEvent>,
) -> Result<Vec<WebhookId>, StoreError> {
    let telling = NewWebhookEvent {
        kind: EventKind::MemberInvited,
        repository: None,
        about: ("invitations", row.organization.0),
        subject: row.email.clone(),
        data: json!({"email": row.email, "expires_at": row.expires_at, "invited_by": by(audit)}),
    };
    write_event(transaction, row.organization, telling).await
}

fn of_token(kind: EventKind, id: TokenId, name: &str, data: Json) -> NewWebhookEvent {
    NewWebhookEvent { kind, repository: None, about: ("token", id.0), subject: name.to_owned(), data }
}

fn by(audit: Option<&AuditEvent>) -> &str {
    audit.map_or("", |event| event.actor.as_str())
}
