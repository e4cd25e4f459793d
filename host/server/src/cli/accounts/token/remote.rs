//! The commands about tokens, through the API of a server. Output has the fields of the commands on
//! a database. The API does not list tokens that were imported without an owner.

use crate::cli::json::Members as _;
use anyhow::ensure;
use packhouse_store::{TokenId, now_ms};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{New, body, with};
use crate::cli::remote::{ApiRefusal, RemoteContext, ids_of, names_of, text};

/// Backings of service keys, as a query parameter of the list.
const BACKINGS: [&str; 3] = ["org", "repo", "publisher"];

/// Lists every token that the owner of the API token may see, in the order of their ids.
pub(super) async fn list(server: &RemoteContext) -> anyhow::Result<Vec<Value>> {
    let repositories = server.repositories().await?;
    Ok(all(server).await?.iter().map(|token| view(token, &repositories)).collect())
}

async fn all(server: &RemoteContext) -> anyhow::Result<Vec<Value>> {
    let mut tokens = server.api.list(&["tokens"]).await?;
    for backing in BACKINGS {
        tokens.append(&mut visible(server, ("backing", backing)).await?);
    }
    let own = server.api.get(&["me"]).await?;
    for member in permitted(server.api.list(&["members"]).await)? {
        if member.at("id") != own.at("id") {
            tokens.append(&mut visible(server, ("member", text(&member, "email"))).await?);
        }
    }
    tokens.sort_by_key(|token| text(token, "id").parse::<TokenId>().map_or(i64::MAX, |id| id.0));
    tokens.dedup_by(|one, other| one.at("id") == other.at("id"));
    Ok(tokens)
}

async fn visible(server: &RemoteContext, query: (&str, &str)) -> anyhow::Result<Vec<Value>> {
    permitted(server.api.list_with(&["tokens"], &[query]).await)
}

/// Returns an empty list if the owner of the API token may not see these tokens.
fn permitted(listed: anyhow::Result<Vec<Value>>) -> anyhow::Result<Vec<Value>> {
    match listed {
        Err(error) if ApiRefusal::has_status(&error, StatusCode::FORBIDDEN) => Ok(Vec::new()),
        listed => listed,
    }
}

pub(super) async fn create(server: &RemoteContext, new: &New) -> anyhow::Result<Value> {
    if let Some(member) = &new.member {
        let own = server.api.get(&["me"]).await?;
        let email = text(&own, "email");
        ensure!(
            member.eq_ignore_ascii_case(email),
            "the API makes tokens only for the owner of the API token, {email}, and not for {member}"
        );
    }
    let repositories = server.repositories().await?;
    let ids = ids_of(&repositories, &new.repositories)?;
    let made = server.api.post(&["tokens"], &body(new, &ids, now_ms())).await?;
    Ok(with(view(&made, &repositories), "secret", text(&made, "secret")))
}

pub(super) async fn revoke(server: &RemoteContext, id: TokenId) -> anyhow::Result<Value> {
    let id = id.to_string();
    server.api.delete(&["tokens", &id]).await?;
    let repositories = server.repositories().await?;
    let found = all(server).await?.into_iter().find(|token| text(token, "id") == id);
    Ok(found.map_or_else(|| json!({"id": id, "state": "revoked"}), |token| view(&token, &repositories)))
}

fn view(token: &Value, repositories: &[Value]) -> Value {
    json!({
        "id": token.at("id"), "name": token.at("name"), "scope": token.at("scope"), "format": token.at("format"),
        "repositories": names_of(repositories, token.at("repositories")), "owner": token.at("owner"),
        "backing": token.at("backing").at("kind"), "created_by": token.at("created_by"),
        "created_at": token.at("created_at"), "expires_at": token.at("expires_at"),
        "last_used_at": token.at("last_used_at"), "state": token.at("state"),
    })
}
