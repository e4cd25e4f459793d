//! `packhouse repo`: repositories of an organization.

use anyhow::{Context, ensure};
use clap::{Args, Subcommand};
use packhouse_runtime::{Description, component_files, component_name};
use packhouse_store::RepositoryRow;
use serde_json::{Map, Value, json};

use super::{Common, Desk, Shown};
use crate::cli::compiled::inspected;
use packhouse_api::repositories;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum RepoCommand {
    /// Make a repository
    Create {
        #[command(flatten)]
        new: New,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// List the repositories
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
    /// Of a group: a repository that it shows, by name; several in their order
    #[arg(long = "member", value_name = "NAME")]
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
            RepoCommand::List { common } => list(Desk::open(*common).await?).await,
            RepoCommand::Delete { name, common } => delete(Desk::open(*common).await?, &name).await,
        }
    }
}

async fn create(desk: Desk, new: New) -> anyhow::Result<()> {
    let organization = desk.organization().await?;
    let mut members = Vec::with_capacity(new.members.len());
    for name in &new.members {
        let member = desk.repository(&organization, name).await?;
        ensure!(member.format == new.format, "{name} is of the format {}", member.format);
        ensure!(member.members.is_empty() && member.kind != "group", "{name} is a group itself");
        members.push(member.id.to_string());
    }
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
    let judged = repositories::from_json(&formats.iter().collect::<Vec<_>>(), body)
        .map_err(|error| error.for_command())?;
    let event = desk.event(&organization, "create_repository", &new.name);
    let made = desk.store.create_repository(organization.id, judged, event).await?;
    let row = made.with_context(|| format!("there is a repository {:?} already", new.name))?;
    desk.done(COLUMNS, Shown::One(view(&row))).await
}

/// What the plugins say of themselves, up to the one that is wanted: to ask one may mean compiling it. Mostly its file has its name.
pub(super) async fn formats(desk: &Desk, wanted: &str) -> anyhow::Result<Vec<Description>> {
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
    let mut rows: Vec<RepositoryRow> = Vec::new();
    loop {
        let page = desk.store.list_repositories(organization.id, rows.last().map(|row| row.id), 500).await?;
        let last = page.len() < 500;
        rows.extend(page);
        if last {
            break;
        }
    }
    desk.done(COLUMNS, Shown::List(rows.iter().map(view).collect())).await
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
