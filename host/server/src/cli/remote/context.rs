//! Context of a command that calls a management API: the client and the options of the output.

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{ApiClient, text};
use crate::cli::accounts::{CommandOutput, render};
use crate::cli::print;

/// Client of a server, and the global options of a command.
#[derive(Debug)]
pub(in crate::cli) struct RemoteContext {
    pub(in crate::cli) api: ApiClient,
    json: bool,
}

impl RemoteContext {
    /// Checks that `org`, if given, is the organization of the API token.
    pub(in crate::cli) async fn new(
        api: ApiClient,
        org: Option<String>,
        json: bool,
    ) -> anyhow::Result<RemoteContext> {
        if let Some(org) = org {
            let own = api.get(&["organization"]).await?;
            ensure!(
                org == text(&own, "name") || org == text(&own, "id"),
                "the API token belongs to the organization {:?}, not to {org:?}",
                text(&own, "name")
            );
        }
        Ok(RemoteContext { api, json })
    }

    /// Returns all repositories that the API token's owner may see.
    pub(in crate::cli) async fn repositories(&self) -> anyhow::Result<Vec<Value>> {
        self.api.list(&["repositories"]).await
    }

    /// Finds a repository by its name.
    pub(in crate::cli) async fn repository(&self, name: &str) -> anyhow::Result<Value> {
        let found = self.repositories().await?.into_iter().find(|found| text(found, "name") == name);
        found.with_context(|| format!("there is no repository {name:?} on {}", self.api.address()))
    }

    /// Finds a member by the e-mail address.
    pub(in crate::cli) async fn member(&self, email: &str) -> anyhow::Result<Value> {
        let members = self.api.list(&["members"]).await?;
        let found = members.into_iter().find(|member| text(member, "email").eq_ignore_ascii_case(email));
        found.with_context(|| format!("{email} is not a member of the organization"))
    }

    /// Prints the output of the command.
    pub(in crate::cli) fn finish(&self, columns: &[&str], items: CommandOutput) -> anyhow::Result<()> {
        print(&render(self.json, columns, items))
    }
}

/// Returns the ids of the repositories with these names, in order. `all` are the repositories of
/// the server.
pub(in crate::cli) fn ids_of(all: &[Value], names: &[String]) -> anyhow::Result<Vec<String>> {
    let id = |name: &String| {
        let found = all.iter().find(|repository| text(repository, "name") == name);
        let found = found.with_context(|| format!("there is no repository {name:?}"))?;
        Ok(text(found, "id").to_owned())
    };
    names.iter().map(id).collect()
}

/// Returns the names of the repositories in a JSON list of ids, in order.
pub(in crate::cli) fn names_of(all: &[Value], ids: &Value) -> Vec<String> {
    let name = |id: &Value| {
        let found = all.iter().find(|repository| repository.get("id") == Some(id));
        found.map(|repository| text(repository, "name").to_owned())
    };
    ids.as_array().into_iter().flatten().filter_map(name).collect()
}
