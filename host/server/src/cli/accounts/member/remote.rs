//! The commands about members, through the API of a server. Output has the fields of the commands
//! on a database.

use crate::cli::json::Members as _;
use anyhow::Context;
use packhouse_identity::Secret;
use packhouse_identity::permissions::Permissions;
use serde_json::{Value, json};

use super::Granted;
use crate::cli::remote::{RemoteContext, ids_of, pick, text};

const FIELDS: &[&str] = &["id", "email", "name", "created_at", "active", "permissions"];

pub(super) async fn create(
    server: &RemoteContext,
    email: &str,
    name: &str,
    password: &Secret,
    granted: &Granted,
) -> anyhow::Result<Value> {
    let nothing = json!({"organization": [], "repositories": []});
    let permissions = added(server, nothing, granted).await?;
    let mut body = json!({"email": email, "password": password.reveal(), "permissions": permissions});
    if let Some(fields) = body.as_object_mut().filter(|_| !name.is_empty()) {
        fields.insert("name".to_owned(), json!(name));
    }
    Ok(view(&server.api.post(&["members"], &body).await?))
}

pub(super) async fn list(server: &RemoteContext) -> anyhow::Result<Vec<Value>> {
    Ok(server.api.list(&["members"]).await?.iter().map(view).collect())
}

/// Sets a password through a reset code, which is used at once.
pub(super) async fn set_password(
    server: &RemoteContext,
    email: &str,
    password: &Secret,
) -> anyhow::Result<Value> {
    let member = server.member(email).await?;
    let reset = server.api.post(&["members", text(&member, "id"), "password-reset"], &json!({})).await?;
    let body = json!({"password": password.reveal()});
    server.api.post(&["password-resets", text(&reset, "reset_code")], &body).await?;
    Ok(view(&member))
}

pub(super) async fn remove_second_factor(server: &RemoteContext, email: &str) -> anyhow::Result<Value> {
    let member = server.member(email).await?;
    server.api.delete(&["members", text(&member, "id"), "totp"]).await?;
    Ok(view(&member))
}

pub(super) async fn grant(server: &RemoteContext, email: &str, granted: &Granted) -> anyhow::Result<Value> {
    let member = server.member(email).await?;
    let permissions = added(server, member.at("permissions").clone(), granted).await?;
    let body = json!({"permissions": permissions});
    Ok(view(&server.api.put(&["members", text(&member, "id"), "permissions"], &body).await?))
}

/// Adds what the flags grant to the permissions of a member. The API checks the names.
async fn added(server: &RemoteContext, before: Value, granted: &Granted) -> anyhow::Result<Value> {
    if granted.owner {
        return Ok(serde_json::to_value(Permissions::everything())?);
    }
    let all = if granted.repositories.is_empty() { Vec::new() } else { server.repositories().await? };
    let list = |name: &str| before.at(name).as_array().cloned().unwrap_or_default();
    let mut organization = list("organization");
    for name in granted.permissions.iter().map(|name| json!(name)) {
        if !organization.contains(&name) {
            organization.push(name);
        }
    }
    let mut repositories = list("repositories");
    for granted in &granted.repositories {
        let (name, actions) = granted
            .split_once('=')
            .context("--repository must be NAME=ACTIONS, such as libs=read,publish,delete")?;
        let repository = match name {
            "*" => name.to_owned(),
            name => ids_of(&all, &[name.to_owned()])?.concat(),
        };
        let actions: Vec<&str> = actions.split(',').map(str::trim).collect();
        repositories.push(json!({"repository": repository, "actions": actions}));
    }
    Ok(json!({"organization": organization, "repositories": repositories}))
}

fn view(member: &Value) -> Value {
    pick(member, FIELDS)
}
