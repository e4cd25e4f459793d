//! `packhouse org`: organizations, each with a public address by which requests find it.

use anyhow::{Context, anyhow, ensure};
use clap::Subcommand;
use packhouse_store::{NewOrganization, OrganizationId, OrganizationRow};
use serde_json::{Value, json};
use url::Url;

use super::{Common, Desk, Shown};
use packhouse_app::public_url;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum OrgCommand {
    /// Make an organization; `packhouse member create --owner` then gives it a member
    Create {
        /// Its name
        name: String,
        /// The public address of its repositories, whose host no other organization has
        #[arg(long, value_name = "URL")]
        base_url: Url,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Give an organization another public address
    Move {
        /// Its name
        name: String,
        /// The new address
        #[arg(long, value_name = "URL")]
        base_url: Url,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// List the organizations
    List {
        #[command(flatten)]
        common: Box<Common>,
    },
}

const COLUMNS: &[&str] = &["id", "name", "base_url"];

impl OrgCommand {
    /// Does it.
    pub(in crate::cli) async fn run(self) -> anyhow::Result<()> {
        match self {
            OrgCommand::Create { name, base_url, common } => {
                create(Desk::open(*common).await?, name, &base_url).await
            }
            OrgCommand::Move { name, base_url, common } => {
                relocate(Desk::open(*common).await?, name, &base_url).await
            }
            OrgCommand::List { common } => list(Desk::open(*common).await?).await,
        }
    }
}

async fn create(desk: Desk, name: String, base_url: &Url) -> anyhow::Result<()> {
    ensure!(is_name(&name), "a name has 1 to 64 letters, digits, `.`, `_` or `-`");
    let (text, host) = public(base_url)?;
    let new = NewOrganization { name: name.clone(), base_url: Some(text), host: Some(host) };
    let event = desk.event_in(OrganizationId::default(), "create_organization", &name);
    let made = desk.store.create_organization(new, event).await?;
    let row = made.with_context(|| format!("the name {name:?} or the host of {base_url} is in use"))?;
    desk.done(COLUMNS, Shown::One(view(&row))).await
}

async fn relocate(desk: Desk, name: String, base_url: &Url) -> anyhow::Result<()> {
    let (text, host) = public(base_url)?;
    let desk = Desk { org: Some(name), ..desk };
    let row = desk.organization().await?;
    let event = desk.event(&row, "move_organization", &text);
    let moved = desk.store.set_base_url(row.id, Some(&text), Some(&host), event).await?;
    ensure!(moved, "the host of {base_url} is another organization's");
    let row = OrganizationRow { base_url: Some(text), host: Some(host), ..row };
    desk.done(COLUMNS, Shown::One(view(&row))).await
}

async fn list(desk: Desk) -> anyhow::Result<()> {
    let rows = desk.store.organizations().await?;
    desk.done(COLUMNS, Shown::List(rows.iter().map(view).collect())).await
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
