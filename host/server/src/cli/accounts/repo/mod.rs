//! `packhouse repo`: repositories of an organization.

mod change;

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use packhouse_runtime::{Description, component_files, component_name};
use packhouse_store::{OrganizationRow, RepositoryId, RepositoryRow};
use serde_json::{Map, Value, json};

use super::{Common, Desk, Shown, in_flags};
use crate::cli::compiled::{inspected, inspected_stored};
use packhouse_api::repositories;

const GROUP: &str = "group";
const PROXY: &str = "proxy";

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum RepoCommand {
    /// Make a repository
    Create {
        #[command(flatten)]
        new: New,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Show a repository with every setting that is in force
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Change settings of a repository, or the upstream of a proxy
    Set {
        #[command(flatten)]
        changes: change::Changes,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// List the members of a group in their order, or change them
    Members {
        #[command(flatten)]
        changes: change::MemberChanges,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// List the repositories, sorted by name
    List {
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Delete a repository with all that it holds
    Delete {
        /// Its name
        name: String,
        #[command(flatten)]
        common: Box<Common>,
    },
}

/// A repository to be made.
#[derive(Debug, Args)]
pub(in crate::cli) struct New {
    /// Its name
    name: String,
    /// That of a plugin
    #[arg(long)]
    format: String,
    /// One that the plugin lists
    #[arg(long, default_value = "hosted")]
    kind: String,
    /// Of a proxy: the address that it fetches from
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// Of a group: the repositories that it shows, by name and in their order
    #[arg(long = "member", value_name = "NAME", value_delimiter = ',')]
    members: Vec<String>,
    /// Anyone may read it
    #[arg(long)]
    public: bool,
}

const COLUMNS: &[&str] = &["id", "name", "format", "kind"];

impl RepoCommand {
    /// Does it.
    pub(in crate::cli) async fn run(self) -> anyhow::Result<()> {
        match self {
            RepoCommand::Create { new, common } => create(Desk::open(*common).await?, new).await,
            RepoCommand::Show { name, common } => change::show(Desk::open(*common).await?, &name).await,
            RepoCommand::Set { changes, common } => change::set(Desk::open(*common).await?, changes).await,
            RepoCommand::Members { changes, common } => {
                change::members(Desk::open(*common).await?, changes).await
            }
            RepoCommand::List { common } => list(Desk::open(*common).await?).await,
            RepoCommand::Delete { name, common } => delete(Desk::open(*common).await?, &name).await,
        }
    }
}

async fn create(desk: Desk, new: New) -> anyhow::Result<()> {
    fit_kind(&new)?;
    let organization = desk.organization().await?;
    let members = members_of(&desk, &organization, &new.members, &new.format).await?;
    let members: Vec<String> = members.iter().map(ToString::to_string).collect();
    let mut body = json!({"name": new.name, "format": new.format, "kind": new.kind});
    let fields = body.as_object_mut().context("an object")?;
    let mut add = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    if let Some(url) = new.upstream {
        add("upstream", json!({"url": url}));
    }
    if !members.is_empty() {
        add("members", json!(members));
    }
    if new.public {
        add("settings", Value::Object(Map::from_iter([("public".to_owned(), Value::Bool(true))])));
    }
    let formats = formats(&desk, &new.format).await?;
    let judged = repositories::from_json(&formats.iter().collect::<Vec<_>>(), body).map_err(in_flags)?;
    let event = desk.event(&organization, "create_repository", &new.name);
    let made = desk.store.create_repository(organization.id, judged, event).await?;
    let row = made.with_context(|| format!("there is a repository {:?} already", new.name))?;
    desk.done(COLUMNS, Shown::One(view(&row))).await
}

/// Refuses flags that do not fit the kind of repository, and asks for those that it needs.
fn fit_kind(new: &New) -> anyhow::Result<()> {
    let (is_proxy, is_group) = (new.kind == PROXY, new.kind == GROUP);
    match (&new.upstream, is_proxy) {
        (None, true) => bail!("a proxy needs the address that it fetches from: name it with --upstream URL"),
        (Some(_), false) => bail!("--upstream is for proxies alone: add --kind proxy, or leave it out"),
        _ => {}
    }
    ensure!(
        new.members.is_empty() || is_group,
        "--member is for groups alone: add --kind group, or leave it out"
    );
    Ok(())
}

/// The repositories of these names, which can be members of a group of this format.
async fn members_of(
    desk: &Desk,
    organization: &OrganizationRow,
    names: &[String],
    format: &str,
) -> anyhow::Result<Vec<RepositoryId>> {
    let mut members = Vec::with_capacity(names.len());
    for name in names {
        let member = desk.repository(organization, name).await?;
        ensure!(
            member.format == format,
            "{name} is of the format {}, and the group of the format {format}",
            member.format
        );
        ensure!(member.kind != GROUP, "{name} is a group itself: name its members");
        ensure!(!members.contains(&member.id), "{name} is named twice");
        members.push(member.id);
    }
    Ok(members)
}

/// What the plugins say of themselves, up to the one that is wanted: to ask one may mean compiling it. Mostly its file has its name.
/// Components of the database come first where the format runs one.
pub(super) async fn formats(desk: &Desk, wanted: &str) -> anyhow::Result<Vec<Description>> {
    let state = desk.store.plugin_state().await?;
    let active = |format: &str| state.of(format).and_then(|row| row.active.clone());
    if let Some(digest) = active(wanted) {
        let found = inspected_stored(&desk.config, &desk.store, &digest).await?;
        return Ok(vec![found.description]);
    }
    let mut formats = of_folder(desk, wanted).await?;
    if formats.iter().any(|found| found.format == wanted) {
        return Ok(formats);
    }
    // They are named where the wanted one is refused.
    for row in &state.formats {
        if let Some(digest) = active(&row.format)
            && !formats.iter().any(|found| found.format == row.format)
        {
            formats.push(inspected_stored(&desk.config, &desk.store, &digest).await?.description);
        }
    }
    Ok(formats)
}

async fn of_folder(desk: &Desk, wanted: &str) -> anyhow::Result<Vec<Description>> {
    let folder = &desk.config.runtime.plugins;
    let mut files = component_files(folder)
        .with_context(|| format!("failed to read the plugin folder {}", folder.display()))?;
    files.sort_by_key(|path| component_name(path).is_none_or(|name| name != wanted));
    let mut formats: Vec<Description> = Vec::new();
    for file in files {
        if formats.iter().any(|found| found.format == wanted) {
            break;
        }
        formats.push(inspected(&desk.config, file).await??.description);
    }
    Ok(formats)
}

async fn list(desk: Desk) -> anyhow::Result<()> {
    let organization = desk.organization().await?;
    let mut rows = all(&desk, &organization).await?;
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    desk.done(COLUMNS, Shown::Table(rows.iter().map(view).collect())).await
}

async fn all(desk: &Desk, organization: &OrganizationRow) -> anyhow::Result<Vec<RepositoryRow>> {
    let mut rows: Vec<RepositoryRow> = Vec::new();
    loop {
        let page = desk.store.list_repositories(organization.id, rows.last().map(|row| row.id), 500).await?;
        let last = page.len() < 500;
        rows.extend(page);
        if last {
            return Ok(rows);
        }
    }
}

async fn delete(desk: Desk, name: &str) -> anyhow::Result<()> {
    let organization = desk.organization().await?;
    let row = desk.repository(&organization, name).await?;
    let groups = desk.store.groups_of(organization.id, row.id).await?;
    ensure!(groups.is_empty(), "{name} is a member of a group; take it out first");
    let event = desk.event(&organization, "delete_repository", name);
    desk.store.delete_repository(organization.id, row.id, event).await?;
    desk.done(COLUMNS, Shown::One(view(&row))).await
}

fn view(row: &RepositoryRow) -> Value {
    json!({
        "id": row.id.to_string(), "name": row.name, "format": row.format, "kind": row.kind, "public": row.public,
        "upstream": row.upstream, "members": row.members.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "created_at": row.created_at,
    })
}
