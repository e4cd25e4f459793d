//! `packhouse repo show`, `set` and `members`.

use anyhow::{Context, bail, ensure};
use clap::Args;
use packhouse_api::operations::repositories::{RepositoryChange, judge_change, leads_elsewhere};
use packhouse_config::repository_settings::{self, Form};
use packhouse_runtime::Description;
use packhouse_store::{OrganizationRow, RepositoryRow};
use serde_json::{Map, Value, json};

use super::{COLUMNS, GROUP, all, formats, members_of, view};
use crate::cli::accounts::{Desk, Shown, in_flags};

/// How often a change is made again because somebody else changed the repository meanwhile.
const ATTEMPTS: usize = 10;

/// What is to change.
#[derive(Debug, Args)]
pub(in crate::cli) struct Changes {
    /// The repository's name
    name: String,
    /// Settings with their values; a list is parted by commas, and an empty value takes a setting back to its default
    #[arg(value_name = "SETTING=VALUE")]
    settings: Vec<String>,
    /// Of a proxy: the address that it fetches from
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
}

/// What is to become of the members.
#[derive(Debug, Args)]
pub(in crate::cli) struct MemberChanges {
    /// The group's name
    name: String,
    /// All members from now on, in their order
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with_all = ["add", "remove"])]
    set: Vec<String>,
    /// Members that come behind the others
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    add: Vec<String>,
    /// Members that go
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    remove: Vec<String>,
}

/// Prints a repository, a line for each thing.
pub(super) async fn show(desk: Desk, name: &str) -> anyhow::Result<()> {
    let organization = desk.organization().await?;
    let row = desk.repository(&organization, name).await?;
    let description = description(&desk, &row).await?;
    let mut shown = view(&row);
    let settings = repository_settings::effective(&row.settings, row.public, Some(&description));
    if let Some(fields) = shown.as_object_mut() {
        fields.insert("members".to_owned(), json!(names(&desk, &organization, &row).await?));
        fields.insert("settings".to_owned(), Value::Object(settings));
    }
    desk.done(&[], Shown::Fields(shown)).await
}

/// Changes settings.
pub(super) async fn set(desk: Desk, changes: Changes) -> anyhow::Result<()> {
    let Changes { name, settings, upstream } = changes;
    ensure!(
        !settings.is_empty() || upstream.is_some(),
        "name what is to change, as `packhouse repo set {name} offline=true`; `packhouse repo show {name}` lists the settings"
    );
    let organization = desk.organization().await?;
    let row = desk.repository(&organization, &name).await?;
    let description = description(&desk, &row).await?;
    let settings = read(&settings, &description)?;
    let change = RepositoryChange {
        settings: (!settings.is_empty()).then_some(Value::Object(settings)),
        upstream: upstream.map(|url| json!({"url": url})),
        members: None,
    };
    let changed = write(&desk, &organization, row, &change, &description).await?;
    desk.done(COLUMNS, Shown::One(view(&changed))).await
}

/// Prints the members, once they are changed.
pub(super) async fn members(desk: Desk, changes: MemberChanges) -> anyhow::Result<()> {
    let organization = desk.organization().await?;
    let mut row = desk.repository(&organization, &changes.name).await?;
    ensure!(row.kind == GROUP, "{} is a {} repository, and only groups have members", row.name, row.kind);
    let MemberChanges { set, add, remove, .. } = &changes;
    if !set.is_empty() || !add.is_empty() || !remove.is_empty() {
        let wanted = if set.is_empty() {
            let mut wanted = names(&desk, &organization, &row).await?;
            if let Some(absent) = remove.iter().find(|name| !wanted.contains(name)) {
                bail!("{absent} is not a member of {}", row.name);
            }
            wanted.retain(|name| !remove.contains(name));
            wanted.extend(add.iter().cloned());
            wanted
        } else {
            set.clone()
        };
        let ids = members_of(&desk, &organization, &wanted, &row.format).await?;
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let change = RepositoryChange { members: Some(json!(ids)), ..RepositoryChange::default() };
        let description = description(&desk, &row).await?;
        row = write(&desk, &organization, row, &change, &description).await?;
    }
    let all = all(&desk, &organization).await?;
    let members = row.members.iter().filter_map(|id| all.iter().find(|member| member.id == *id));
    let members = members.map(view).collect();
    desk.done(COLUMNS, Shown::Table(members)).await
}

async fn description(desk: &Desk, row: &RepositoryRow) -> anyhow::Result<Description> {
    let found = formats(desk, &row.format).await?;
    let found = found.into_iter().find(|description| description.format == row.format);
    found.with_context(|| format!("no plugin of the format {} is here", row.format))
}

/// The names of a group's members, in their order.
async fn names(
    desk: &Desk,
    organization: &OrganizationRow,
    row: &RepositoryRow,
) -> anyhow::Result<Vec<String>> {
    if row.members.is_empty() {
        return Ok(Vec::new());
    }
    let all = all(desk, organization).await?;
    let name = |id| all.iter().find(|member| member.id == id).map(|member| member.name.clone());
    Ok(row.members.iter().filter_map(|id| name(*id)).collect())
}

/// Writes a change; again where somebody else changed the repository meanwhile.
async fn write(
    desk: &Desk,
    organization: &OrganizationRow,
    mut row: RepositoryRow,
    change: &RepositoryChange,
    description: &Description,
) -> anyhow::Result<RepositoryRow> {
    for _ in 0..ATTEMPTS {
        let changed = judge_change(row.clone(), change, Some(description)).map_err(in_flags)?;
        let event = desk.event(organization, "change_repository", &changed.name);
        if desk.store.update_repository(&changed, leads_elsewhere(&row, &changed), event).await? {
            return Ok(changed);
        }
        row = desk.repository(organization, &changed.name).await?;
    }
    bail!("others change the repository {} at this moment: try again", row.name)
}

/// Settings as the command line has them: `NAME=VALUE`.
fn read(settings: &[String], description: &Description) -> anyhow::Result<Map<String, Value>> {
    let known = repository_settings::wanted(Some(description));
    let mut read = Map::new();
    for setting in settings {
        let (name, text) =
            setting.split_once('=').with_context(|| format!("{setting:?} is not SETTING=VALUE"))?;
        let Some((_, wanted)) = known.iter().find(|(known, _)| known == name) else {
            let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
            bail!("there is no setting {name}; there are {}", names.join(", "));
        };
        read.insert(name.to_owned(), value(name, text, &wanted.shape)?);
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
                    .with_context(|| format!("{name} is true or false, not {text:?}"))?
            )
        }
        Form::Number => json!(
            text.parse::<u64>().ok().with_context(|| format!("{name} is a whole number, not {text:?}"))?
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
