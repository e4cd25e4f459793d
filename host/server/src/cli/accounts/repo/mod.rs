//! `packhouse repo`: creates, lists, changes and deletes repositories of an organization.

mod change;
mod remote;

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use packhouse_runtime::{Description, component_files, component_name};
use packhouse_store::{OrganizationRow, RepositoryId, RepositoryRow};
use serde_json::{Map, Value, json};

use super::{CliContext, CommandOutput, CommandTarget, Common, in_flags};
use crate::cli::compiled::{inspected, inspected_stored};
use crate::cli::remote::text;
use packhouse_api::repositories;

const GROUP: &str = "group";
const PROXY: &str = "proxy";

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum RepoCommand {
    /// Create a repository
    Create {
        #[command(flatten)]
        new: New,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Show a repository with all effective settings
    Show {
        /// Name of the repository
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
    /// List the members of a group in order, or change them
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
    /// Delete a repository with all its contents
    Delete {
        /// Name of the repository
        name: String,
        #[command(flatten)]
        common: Box<Common>,
    },
}

/// Arguments for a new repository.
#[derive(Debug, Args)]
pub(in crate::cli) struct New {
    /// Name of the repository
    name: String,
    /// Format of its packages; a plugin must serve it
    #[arg(long)]
    format: String,
    /// Kind: one of those that the plugin supports
    #[arg(long, default_value = "hosted")]
    kind: String,
    /// Upstream address (proxies only)
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// Names of the members, in order (groups only)
    #[arg(long = "member", value_name = "NAME", value_delimiter = ',')]
    members: Vec<String>,
    /// Allow reads without a token
    #[arg(long)]
    public: bool,
}

const COLUMNS: &[&str] = &["id", "name", "format", "kind"];

impl RepoCommand {
    pub(in crate::cli) async fn run(self) -> anyhow::Result<()> {
        match self {
            RepoCommand::Create { new, common } => create(CommandTarget::open(*common).await?, &new).await,
            RepoCommand::Show { name, common } => {
                change::show(CommandTarget::open(*common).await?, &name).await
            }
            RepoCommand::Set { changes, common } => {
                change::set(CommandTarget::open(*common).await?, &changes).await
            }
            RepoCommand::Members { changes, common } => {
                change::members(CommandTarget::open(*common).await?, &changes).await
            }
            RepoCommand::List { common } => list(CommandTarget::open(*common).await?).await,
            RepoCommand::Delete { name, common } => delete(CommandTarget::open(*common).await?, &name).await,
        }
    }
}

async fn create(target: CommandTarget, new: &New) -> anyhow::Result<()> {
    fit_kind(new)?;
    let made = match &target {
        CommandTarget::Database(context) => create_in_database(context, new).await?,
        CommandTarget::Server(server) => remote::create(server, new).await?,
    };
    target.finish(COLUMNS, CommandOutput::One(made)).await
}

async fn create_in_database(context: &CliContext, new: &New) -> anyhow::Result<Value> {
    let organization = context.organization().await?;
    let members = members_of(context, &organization, &new.members, &new.format).await?;
    let members: Vec<String> = members.iter().map(ToString::to_string).collect();
    let formats = formats(context, &new.format).await?;
    let body = body(new, &members);
    let judged = repositories::from_json(&formats.iter().collect::<Vec<_>>(), body).map_err(in_flags)?;
    let event = context.event(&organization, "create_repository", &new.name);
    let made = context.store.create_repository(organization.id, judged, event).await?;
    let row = made.with_context(|| format!("there is already a repository {:?}", new.name))?;
    Ok(view(&row))
}

/// The body with which the API creates the repository. `members` are ids.
fn body(new: &New, members: &[String]) -> Value {
    let fields = [
        ("name", Some(json!(new.name))),
        ("format", Some(json!(new.format))),
        ("kind", Some(json!(new.kind))),
        ("upstream", new.upstream.as_ref().map(|url| json!({"url": url}))),
        ("members", (!members.is_empty()).then(|| json!(members))),
        ("settings", new.public.then(|| json!({"public": true}))),
    ];
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(fields.collect::<Map<String, Value>>())
}

/// Rejects flags that do not fit the kind of repository, and requires the flags that this kind
/// needs.
fn fit_kind(new: &New) -> anyhow::Result<()> {
    let (is_proxy, is_group) = (new.kind == PROXY, new.kind == GROUP);
    match (&new.upstream, is_proxy) {
        (None, true) => bail!("a proxy needs an upstream: add --upstream URL"),
        (Some(_), false) => bail!("--upstream is only for proxies: add --kind proxy, or remove it"),
        _ => {}
    }
    ensure!(
        new.members.is_empty() || is_group,
        "--member is only for groups: add --kind group, or remove it"
    );
    Ok(())
}

/// Finds repositories by name and checks that they can be members of a group of this format.
async fn members_of(
    context: &CliContext,
    organization: &OrganizationRow,
    names: &[String],
    format: &str,
) -> anyhow::Result<Vec<RepositoryId>> {
    let mut members = Vec::with_capacity(names.len());
    for name in names {
        let member = context.repository(organization, name).await?;
        ensure!(
            member.format == format,
            "{name} has the format {}, but the group has the format {format}",
            member.format
        );
        ensure!(member.kind != GROUP, "{name} is a group itself: name its members instead");
        ensure!(!members.contains(&member.id), "{name} is named twice");
        members.push(member.id);
    }
    Ok(members)
}

/// Returns plugin descriptions; if a plugin for `format` exists, its description is the last. The
/// function then reads no further plugin, because reading one may require a compilation. It first
/// looks for the active component in the database, then for a file with the name of the format,
/// then in the other files.
pub(super) async fn formats(context: &CliContext, format: &str) -> anyhow::Result<Vec<Description>> {
    let state = context.store.plugin_state().await?;
    let active = |format: &str| state.of(format).and_then(|row| row.active.clone());
    if let Some(digest) = active(format) {
        let found = inspected_stored(&context.config, &context.store, &digest).await?;
        return Ok(vec![found.description]);
    }
    let mut formats = of_folder(context, format).await?;
    if formats.iter().any(|found| found.format == format) {
        return Ok(formats);
    }
    // The error message lists these formats if `format` is not found.
    for row in &state.formats {
        if let Some(digest) = active(&row.format)
            && !formats.iter().any(|found| found.format == row.format)
        {
            formats.push(inspected_stored(&context.config, &context.store, &digest).await?.description);
        }
    }
    Ok(formats)
}

async fn of_folder(context: &CliContext, format: &str) -> anyhow::Result<Vec<Description>> {
    let folder = &context.config.runtime.plugins;
    let mut files = component_files(folder)
        .with_context(|| format!("failed to read the plugin folder {}", folder.display()))?;
    files.sort_by_key(|path| component_name(path).is_none_or(|name| name != format));
    let mut formats: Vec<Description> = Vec::new();
    for file in files {
        if formats.iter().any(|found| found.format == format) {
            break;
        }
        formats.push(inspected(&context.config, file).await??.description);
    }
    Ok(formats)
}

async fn list(target: CommandTarget) -> anyhow::Result<()> {
    let mut items: Vec<Value> = match &target {
        CommandTarget::Database(context) => {
            all(context, &context.organization().await?).await?.iter().map(view).collect()
        }
        CommandTarget::Server(server) => remote::list(server).await?,
    };
    items.sort_by(|one, other| text(one, "name").cmp(text(other, "name")));
    target.finish(COLUMNS, CommandOutput::Table(items)).await
}

async fn all(context: &CliContext, organization: &OrganizationRow) -> anyhow::Result<Vec<RepositoryRow>> {
    let mut rows: Vec<RepositoryRow> = Vec::new();
    loop {
        let page =
            context.store.list_repositories(organization.id, rows.last().map(|row| row.id), 500).await?;
        let last = page.len() < 500;
        rows.extend(page);
        if last {
            return Ok(rows);
        }
    }
}

async fn delete(target: CommandTarget, name: &str) -> anyhow::Result<()> {
    let deleted = match &target {
        CommandTarget::Database(context) => delete_in_database(context, name).await?,
        CommandTarget::Server(server) => remote::delete(server, name).await?,
    };
    target.finish(COLUMNS, CommandOutput::One(deleted)).await
}

async fn delete_in_database(context: &CliContext, name: &str) -> anyhow::Result<Value> {
    let organization = context.organization().await?;
    let row = context.repository(&organization, name).await?;
    let groups = context.store.groups_of(organization.id, row.id).await?;
    ensure!(groups.is_empty(), "{name} is a member of a group; remove it from the group first");
    let event = context.event(&organization, "delete_repository", name);
    context.store.delete_repository(organization.id, row.id, event).await?;
    Ok(view(&row))
}

fn view(row: &RepositoryRow) -> Value {
    json!({
        "id": row.id.to_string(), "name": row.name, "format": row.format, "kind": row.kind, "public": row.public,
        "upstream": row.upstream, "members": row.members.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "created_at": row.created_at,
    })
}
