//! `packhouse org`: organizations. Requests find an organization by its public address.

use anyhow::{Context, anyhow, ensure};
use clap::Subcommand;
use packhouse_store::{NewOrganization, OrganizationId, OrganizationRow};
use serde_json::{Value, json};
use url::Url;

use super::{CliContext, CommandOutput, CommandTarget, Common};
use crate::cli::remote::{RemoteContext, pick};
use packhouse_app::public_url;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum OrgCommand {
    /// Create an organization; `packhouse member create --owner` then adds its first member
    Create {
        /// Name of the organization
        name: String,
        /// Public address of its repositories; its host must not belong to another organization
        #[arg(long, value_name = "URL")]
        base_url: Url,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Change the public address of an organization
    Move {
        /// Name of the organization
        name: String,
        /// New public address
        #[arg(long, value_name = "URL")]
        base_url: Url,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// List the organizations; with --server, only the organization of the API token
    List {
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Show an organization with its quota
    Show {
        #[command(flatten)]
        common: Box<Common>,
    },
}

const COLUMNS: &[&str] = &["id", "name", "base_url"];
/// Fields of an organization in JSON output.
const LISTED: &[&str] = &["id", "name", "base_url", "created_at"];

impl OrgCommand {
    pub(in crate::cli) async fn run(self) -> anyhow::Result<()> {
        match self {
            OrgCommand::Create { name, base_url, common } => {
                create(CliContext::open(*common).await?, name, &base_url).await
            }
            OrgCommand::Move { name, base_url, common } => {
                relocate(CliContext::open(*common).await?, name, &base_url).await
            }
            OrgCommand::List { common } => list(CommandTarget::open(*common).await?).await,
            OrgCommand::Show { common } => show(CommandTarget::open(*common).await?).await,
        }
    }
}

async fn create(context: CliContext, name: String, base_url: &Url) -> anyhow::Result<()> {
    ensure!(is_name(&name), "a name must have 1 to 64 letters, digits, `.`, `_` or `-`");
    let (text, host) = public(base_url)?;
    let new = NewOrganization { name: name.clone(), base_url: Some(text), host: Some(host) };
    let event = context.event_in(OrganizationId::default(), "create_organization", &name);
    let made = context.store.create_organization(new, event).await?;
    let row = made.with_context(|| format!("the name {name:?} or the host of {base_url} is in use"))?;
    context.finish(COLUMNS, CommandOutput::One(view(&row))).await
}

async fn relocate(context: CliContext, name: String, base_url: &Url) -> anyhow::Result<()> {
    let (text, host) = public(base_url)?;
    let context = CliContext { org: Some(name), ..context };
    let row = context.organization().await?;
    let event = context.event(&row, "move_organization", &text);
    let moved = context.store.set_base_url(row.id, Some(&text), Some(&host), event).await?;
    ensure!(moved, "the host of {base_url} belongs to another organization");
    let row = OrganizationRow { base_url: Some(text), host: Some(host), ..row };
    context.finish(COLUMNS, CommandOutput::One(view(&row))).await
}

async fn list(target: CommandTarget) -> anyhow::Result<()> {
    let items = match &target {
        CommandTarget::Database(context) => context.store.organizations().await?.iter().map(view).collect(),
        CommandTarget::Server(server) => vec![pick(&own(server).await?, LISTED)],
    };
    target.finish(COLUMNS, CommandOutput::List(items)).await
}

async fn show(target: CommandTarget) -> anyhow::Result<()> {
    let item = match &target {
        CommandTarget::Database(context) => {
            let row = context.organization().await?;
            let mut item = view(&row);
            if let Some(fields) = item.as_object_mut() {
                fields.insert("quota_bytes".to_owned(), json!(row.quota_bytes));
            }
            item
        }
        CommandTarget::Server(server) => pick(&own(server).await?, &[LISTED, &["quota_bytes"]].concat()),
    };
    target.finish(&[], CommandOutput::Fields(item)).await
}

/// Returns the organization of the API token.
async fn own(server: &RemoteContext) -> anyhow::Result<Value> {
    server.api.get(&["organization"]).await
}

fn view(row: &OrganizationRow) -> Value {
    json!({"id": row.id.to_string(), "name": row.name, "base_url": row.base_url, "created_at": row.created_at})
}

fn public(base_url: &Url) -> anyhow::Result<(String, String)> {
    let base_url = &packhouse_config::addresses::base_url(base_url.as_str())
        .map_err(|reason| anyhow!("the base URL {base_url} {reason}"))?;
    let host = public_url::host(base_url).context("the base URL has no host")?;
    Ok((public_url::text(base_url), host))
}

fn is_name(name: &str) -> bool {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-');
    (1..=64).contains(&name.chars().count()) && name.chars().all(plain)
}
