//! The commands about repositories, through the API of a server. Output has the fields of the
//! commands on a database.

use crate::cli::json::Members as _;
use anyhow::ensure;
use packhouse_config::repository_settings::{self, Form, FormSetting};
use serde_json::{Map, Value, json};

use super::change::{Changes, MemberChanges, ensure_group, read};
use super::{New, body};
use crate::cli::remote::{RemoteContext, ids_of, names_of, text};

pub(super) async fn create(server: &RemoteContext, new: &New) -> anyhow::Result<Value> {
    let members = match new.members.as_slice() {
        [] => Vec::new(),
        names => ids_of(&server.repositories().await?, names)?,
    };
    let made = server.api.post(&["repositories"], &body(new, &members)).await?;
    Ok(view(&made))
}

pub(super) async fn list(server: &RemoteContext) -> anyhow::Result<Vec<Value>> {
    Ok(server.repositories().await?.iter().map(view).collect())
}

pub(super) async fn show(server: &RemoteContext, name: &str) -> anyhow::Result<Value> {
    let found = server.repository(name).await?;
    let members = names_of(&server.repositories().await?, found.at("members"));
    let mut item = view(&found);
    if let Some(fields) = item.as_object_mut() {
        fields.insert("members".to_owned(), json!(members));
        fields.insert("settings".to_owned(), found.at("settings").clone());
    }
    Ok(item)
}

pub(super) async fn set(server: &RemoteContext, changes: &Changes) -> anyhow::Result<Value> {
    let found = server.repository(&changes.name).await?;
    let settings = read(&changes.settings, &known(found.at("settings")))?;
    let mut body = Map::new();
    if !settings.is_empty() {
        body.insert("settings".to_owned(), Value::Object(settings));
    }
    if let Some(url) = &changes.upstream {
        body.insert("upstream".to_owned(), json!({"url": url}));
    }
    let changed = server.api.patch(&["repositories", text(&found, "id")], &Value::Object(body)).await?;
    Ok(view(&changed))
}

/// Returns every setting of a repository. The type of a setting that only a plugin declares follows
/// from its value.
fn known(settings: &Value) -> Vec<(String, FormSetting)> {
    let mut known = repository_settings::form_settings(None);
    for (name, value) in settings.as_object().into_iter().flatten() {
        let shape = match value {
            Value::Bool(_) => Form::Switch,
            Value::Number(_) => Form::Number,
            Value::Array(_) => Form::List,
            _ => Form::Text,
        };
        if !known.iter().any(|(other, _)| other == name) {
            known.push((name.clone(), FormSetting::named(name, shape)));
        }
    }
    known
}

pub(super) async fn members(server: &RemoteContext, changes: &MemberChanges) -> anyhow::Result<Vec<Value>> {
    let all = server.repositories().await?;
    let mut group = server.repository(&changes.name).await?;
    ensure_group(&changes.name, text(&group, "kind"))?;
    if let Some(members) = changes.applied_to(names_of(&all, group.at("members")))? {
        for name in &members {
            let is_group = all.iter().any(|one| text(one, "name") == name && text(one, "kind") == "group");
            ensure!(!is_group, "{name} is a group itself: name its members instead");
        }
        let body = json!({"members": ids_of(&all, &members)?});
        group = server.api.patch(&["repositories", text(&group, "id")], &body).await?;
    }
    let ids = group.at("members").as_array().into_iter().flatten();
    let members = ids.filter_map(|id| all.iter().find(|member| member.at("id") == id));
    Ok(members.map(view).collect())
}

pub(super) async fn delete(server: &RemoteContext, name: &str) -> anyhow::Result<Value> {
    let found = server.repository(name).await?;
    server.api.delete(&["repositories", text(&found, "id")]).await?;
    Ok(view(&found))
}

fn view(repository: &Value) -> Value {
    json!({
        "id": repository.at("id"), "name": repository.at("name"), "format": repository.at("format"),
        "kind": repository.at("kind"), "public": repository.at("settings").at("public"),
        "upstream": repository.at("upstream").at("url"), "members": repository.at("members"),
        "created_at": repository.at("created_at"),
    })
}
