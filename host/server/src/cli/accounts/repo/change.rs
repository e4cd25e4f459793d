//! `packhouse repo show`, `set` and `members`: inspects and changes repositories.

use anyhow::{Context, bail, ensure};
use clap::Args;
use packhouse_api::operations::repositories::{RepositoryChange, judge_change, leads_elsewhere};
use packhouse_config::repository_settings::{self, Form, FormSetting};
use packhouse_runtime::Description;
use packhouse_store::{OrganizationRow, RepositoryRow};
use serde_json::{Map, Value, json};

use super::{COLUMNS, GROUP, all, formats, members_of, remote, view};
use crate::cli::accounts::{CliContext, CommandOutput, CommandTarget, in_flags};

/// Number of attempts to write a change while other processes change the same repository.
const ATTEMPTS: usize = 10;

/// Arguments of `packhouse repo set`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Changes {
    /// Name of the repository
    pub(super) name: String,
    /// Settings with their values; lists are comma-separated, and an empty value resets a setting
    /// to its default
    #[arg(value_name = "SETTING=VALUE")]
    pub(super) settings: Vec<String>,
    /// New upstream address (proxies only)
    #[arg(long, value_name = "URL")]
    pub(super) upstream: Option<String>,
}

/// Arguments of `packhouse repo members`.
#[derive(Debug, Args)]
pub(in crate::cli) struct MemberChanges {
    /// Name of the group
    pub(super) name: String,
    /// Replace all members with these, in this order
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with_all = ["add", "remove"])]
    set: Vec<String>,
    /// Append these members
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    add: Vec<String>,
    /// Remove these members
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    remove: Vec<String>,
}

/// Prints a repository with one line per field.
pub(super) async fn show(target: CommandTarget, name: &str) -> anyhow::Result<()> {
    let item = match &target {
        CommandTarget::Database(context) => details(context, name).await?,
        CommandTarget::Server(server) => remote::show(server, name).await?,
    };
    target.finish(&[], CommandOutput::Fields(item)).await
}

/// Returns a repository with the names of its members and all effective settings.
async fn details(context: &CliContext, name: &str) -> anyhow::Result<Value> {
    let organization = context.organization().await?;
    let row = context.repository(&organization, name).await?;
    let description = description(context, &row).await?;
    let mut item = view(&row);
    let settings = repository_settings::effective(&row.settings, row.public, Some(&description));
    if let Some(fields) = item.as_object_mut() {
        fields.insert("members".to_owned(), json!(names(context, &organization, &row).await?));
        fields.insert("settings".to_owned(), Value::Object(settings));
    }
    Ok(item)
}

/// Changes settings or the upstream of a repository.
pub(super) async fn set(target: CommandTarget, changes: &Changes) -> anyhow::Result<()> {
    let name = &changes.name;
    ensure!(
        !changes.settings.is_empty() || changes.upstream.is_some(),
        "name a setting to change, such as `packhouse repo set {name} offline=true`; `packhouse repo show {name}` lists the settings"
    );
    let changed = match &target {
        CommandTarget::Database(context) => set_in_database(context, changes).await?,
        CommandTarget::Server(server) => remote::set(server, changes).await?,
    };
    target.finish(COLUMNS, CommandOutput::One(changed)).await
}

async fn set_in_database(context: &CliContext, changes: &Changes) -> anyhow::Result<Value> {
    let organization = context.organization().await?;
    let row = context.repository(&organization, &changes.name).await?;
    let description = description(context, &row).await?;
    let settings = read(&changes.settings, &repository_settings::form_settings(Some(&description)))?;
    let change = RepositoryChange {
        settings: (!settings.is_empty()).then_some(Value::Object(settings)),
        upstream: changes.upstream.as_ref().map(|url| json!({"url": url})),
        members: None,
    };
    write(context, &organization, row, &change, &description).await.map(|changed| view(&changed))
}

/// Applies changes of a group's members, if any, and prints the members.
pub(super) async fn members(target: CommandTarget, changes: &MemberChanges) -> anyhow::Result<()> {
    let members = match &target {
        CommandTarget::Database(context) => members_in_database(context, changes).await?,
        CommandTarget::Server(server) => remote::members(server, changes).await?,
    };
    target.finish(COLUMNS, CommandOutput::Table(members)).await
}

async fn members_in_database(context: &CliContext, changes: &MemberChanges) -> anyhow::Result<Vec<Value>> {
    let organization = context.organization().await?;
    let mut row = context.repository(&organization, &changes.name).await?;
    ensure_group(&row.name, &row.kind)?;
    if let Some(members) = changes.applied_to(names(context, &organization, &row).await?)? {
        let ids = members_of(context, &organization, &members, &row.format).await?;
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let change = RepositoryChange { members: Some(json!(ids)), ..RepositoryChange::default() };
        let description = description(context, &row).await?;
        row = write(context, &organization, row, &change, &description).await?;
    }
    let all = all(context, &organization).await?;
    let members = row.members.iter().filter_map(|id| all.iter().find(|member| member.id == *id));
    Ok(members.map(view).collect())
}

/// Fails for a repository that is not a group.
pub(super) fn ensure_group(name: &str, kind: &str) -> anyhow::Result<()> {
    ensure!(kind == GROUP, "{name} is a {kind} repository, and only groups have members");
    Ok(())
}

impl MemberChanges {
    /// Returns the new members of a group that has these, or `None` without a change.
    pub(super) fn applied_to(&self, mut members: Vec<String>) -> anyhow::Result<Option<Vec<String>>> {
        let MemberChanges { name, set, add, remove } = self;
        if !set.is_empty() {
            return Ok(Some(set.clone()));
        }
        if add.is_empty() && remove.is_empty() {
            return Ok(None);
        }
        if let Some(absent) = remove.iter().find(|name| !members.contains(name)) {
            bail!("{absent} is not a member of {name}");
        }
        members.retain(|name| !remove.contains(name));
        members.extend(add.iter().cloned());
        Ok(Some(members))
    }
}

async fn description(context: &CliContext, row: &RepositoryRow) -> anyhow::Result<Description> {
    let found = formats(context, &row.format).await?;
    let found = found.into_iter().find(|description| description.format == row.format);
    found.with_context(|| format!("there is no plugin for the format {}", row.format))
}

/// Returns the names of a group's members, in order.
async fn names(
    context: &CliContext,
    organization: &OrganizationRow,
    row: &RepositoryRow,
) -> anyhow::Result<Vec<String>> {
    if row.members.is_empty() {
        return Ok(Vec::new());
    }
    let all = all(context, organization).await?;
    let name = |id| all.iter().find(|member| member.id == id).map(|member| member.name.clone());
    Ok(row.members.iter().filter_map(|id| name(*id)).collect())
}

/// Writes a change. Retries if another process changed the repository meanwhile.
async fn write(
    context: &CliContext,
    organization: &OrganizationRow,
    mut row: RepositoryRow,
    change: &RepositoryChange,
    description: &Description,
) -> anyhow::Result<RepositoryRow> {
    for _ in 0..ATTEMPTS {
        let changed = judge_change(row.clone(), change, Some(description)).map_err(in_flags)?;
        let event = context.event(organization, "change_repository", &changed.name);
        if context.store.update_repository(&changed, leads_elsewhere(&row, &changed), event).await? {
            return Ok(changed);
        }
        row = context.repository(organization, &changed.name).await?;
    }
    bail!("the repository {} is being changed by others; try again", row.name)
}

/// Parses `NAME=VALUE` settings from the command line. `known` are all settings of the repository.
pub(super) fn read(
    settings: &[String],
    known: &[(String, FormSetting)],
) -> anyhow::Result<Map<String, Value>> {
    let mut read = Map::new();
    for setting in settings {
        let (name, text) = setting
            .split_once('=')
            .with_context(|| format!("{setting:?} must have the form SETTING=VALUE"))?;
        let Some((_, declared)) = known.iter().find(|(known, _)| known == name) else {
            let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
            bail!("there is no setting {name}; the settings are {}", names.join(", "));
        };
        read.insert(name.to_owned(), value(name, text, &declared.shape)?);
    }
    Ok(read)
}

fn value(name: &str, text: &str, shape: &Form) -> anyhow::Result<Value> {
    if text.is_empty() {
        return Ok(Value::Null);
    }
    Ok(match shape {
        Form::Switch => {
            json!(
                text.parse::<bool>()
                    .ok()
                    .with_context(|| format!("{name} must be true or false, not {text:?}"))?
            )
        }
        Form::Number => json!(
            text.parse::<u64>()
                .ok()
                .with_context(|| format!("{name} must be a whole number, not {text:?}"))?
        ),
        Form::List => json!(text.split(',').map(str::trim).collect::<Vec<_>>()),
        Form::Text | Form::Lines | Form::Choice(_) => json!(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_by_the_shape_of_its_setting() {
        let read = |text: &str, shape: Form| value("x", text, &shape);
        assert_eq!(read("true", Form::Switch).unwrap(), json!(true));
        assert_eq!(read("5", Form::Number).unwrap(), json!(5));
        assert_eq!(read("a, b", Form::List).unwrap(), json!(["a", "b"]));
        assert_eq!(read("5", Form::Text).unwrap(), json!("5"));
        assert_eq!(read("", Form::Number).unwrap(), Value::Null);
        assert!(read("yes", Form::Switch).is_err() && read("five", Form::Number).is_err());
    }
}
