//! `packhouse token`: tokens and service keys, the import of another server's tokens, and the
//! removal of old rows.

mod remote;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use packhouse_store::{NewToken, OrganizationRow, RepositoryId, Scope, TokenId, TokenRow, now_ms};
use serde::Deserialize;
use serde_json::{Value, json};

use super::repo::formats;
use super::{CliContext, CommandOutput, CommandTarget, Common, in_flags, with};
use packhouse_api::operations::tokens::TokenRequest;
use packhouse_api::tokens;
use packhouse_identity::access::CredentialState;
use packhouse_identity::{self as identity, Minted};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum TokenCommand {
    /// List all tokens, including expired and revoked ones
    List {
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Create a token and print its secret
    Create {
        #[command(flatten)]
        new: New,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Revoke a token: every server refuses the next request with it
    Revoke {
        /// Id of the token
        id: TokenId,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Import tokens of another server by the SHA-256 of their secrets; they have no owner and
    /// cannot be rotated
    Import {
        /// File with one JSON object a line: name, sha256, scope, repositories (names), expires_at
        /// (ms since 1970, or null)
        #[arg(long, value_name = "FILE")]
        legacy: PathBuf,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Delete tokens that expired, ended or were revoked long ago
    Purge {
        /// Minimum age in days
        #[arg(long, value_name = "DAYS", default_value = "30", value_parser = days)]
        older_than: u32,
        #[command(flatten)]
        common: Box<Common>,
    },
}

/// Arguments for a new token.
#[derive(Debug, Args)]
pub(in crate::cli) struct New {
    /// Name of the token
    #[arg(long)]
    name: String,
    /// E-mail address of the token's owner; for a service key, of the member who creates it. With
    /// --server, it is always the owner of the API token
    #[arg(long, value_name = "EMAIL", required_unless_present = "server")]
    member: Option<String>,
    /// Permitted actions: read, write or both
    #[arg(long, value_delimiter = ',', default_value = "read")]
    scope: Vec<String>,
    /// Names of the repositories that it gives access to
    #[arg(long = "repository", value_name = "NAME", value_delimiter = ',', required = true)]
    repositories: Vec<String>,
    /// Token format: generic, or the format of a plugin with its own tokens
    #[arg(long, default_value = "generic")]
    format: String,
    /// Create a service key, backed by the organization (org) or by the only repository (repo)
    #[arg(long, value_name = "BACKING")]
    service_key: Option<String>,
    /// Days until it expires; at most 90 for a service key
    #[arg(long, value_name = "DAYS", value_parser = days, conflicts_with = "never", required_unless_present = "never")]
    expires_in: Option<u32>,
    /// Create a token that never expires; not for service keys
    #[arg(long)]
    never: bool,
}

const COLUMNS: &[&str] = &["id", "state", "name", "scope", "format", "owner", "repositories"];
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl TokenCommand {
    pub(in crate::cli) async fn run(self) -> anyhow::Result<()> {
        match self {
            TokenCommand::List { common } => list(CommandTarget::open(*common).await?).await,
            TokenCommand::Create { new, common } => create(CommandTarget::open(*common).await?, &new).await,
            TokenCommand::Revoke { id, common } => revoke(CommandTarget::open(*common).await?, id).await,
            TokenCommand::Import { legacy, common } => {
                import(CliContext::open(*common).await?, &legacy).await
            }
            TokenCommand::Purge { older_than, common } => {
                purge(CliContext::open(*common).await?, older_than).await
            }
        }
    }
}

/// Parses a number of days, such as `30` or `30d`.
fn days(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('d').unwrap_or(text);
    number.parse().map_err(|_| "must be a number of days, such as 30 or 30d".to_owned())
}

async fn list(target: CommandTarget) -> anyhow::Result<()> {
    let items = match &target {
        CommandTarget::Database(context) => list_in_database(context).await?,
        CommandTarget::Server(server) => remote::list(server).await?,
    };
    target.finish(COLUMNS, CommandOutput::List(items)).await
}

async fn list_in_database(context: &CliContext) -> anyhow::Result<Vec<Value>> {
    let organization = context.organization().await?;
    let mut rows: Vec<TokenRow> = Vec::new();
    loop {
        let page = context.store.all_tokens(organization.id, rows.last().map(|row| row.id), 500).await?;
        let last = page.len() < 500;
        rows.extend(page);
        if last {
            break;
        }
    }
    let mut items = Vec::with_capacity(rows.len());
    for row in &rows {
        items.push(view(context, row).await?);
    }
    Ok(items)
}

async fn create(target: CommandTarget, new: &New) -> anyhow::Result<()> {
    let made = match &target {
        CommandTarget::Database(context) => create_in_database(context, new).await?,
        CommandTarget::Server(server) => remote::create(server, new).await?,
    };
    target.finish(&["id", "secret"], CommandOutput::One(made)).await
}

/// The body with which the API creates the token, from the ids of its repositories.
fn body(new: &New, repositories: &[String], now: i64) -> Value {
    let backing = new.service_key.as_ref().map(|kind| json!({"kind": kind, "id": repositories.first()}));
    json!({
        "name": new.name, "scope": new.scope, "format": new.format, "repositories": repositories,
        "backing": backing, "expires_at": new.expires_in.map(|days| now + i64::from(days) * DAY_MS),
    })
}

async fn create_in_database(context: &CliContext, new: &New) -> anyhow::Result<Value> {
    let organization = context.organization().await?;
    let member = new.member.as_deref().context("name the owner of the token with --member")?;
    let member = context.member(&organization, member).await?;
    let ids = repositories(context, &organization, &new.repositories).await?;
    let named: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let now = now_ms();
    let body = body(new, &named, now);
    // The common token formats need no plugin, so plugins are not read for them: reading one may
    // require a compilation. If plugins cannot be read, only the common formats are accepted.
    let described = if tokens::is_always_there(&new.format) {
        Vec::new()
    } else {
        formats(context, &new.format).await.unwrap_or_default()
    };
    let own: Vec<String> =
        described.into_iter().filter(|format| format.own_tokens).map(|format| format.format).collect();
    let request: TokenRequest = tokens::from_json(body, &own, now).map_err(in_flags)?;
    let Minted { secret, sha256 } = identity::mint();
    let event = context.event(&organization, "create_token", &request.name);
    let row = context.store.create_token(organization.id, request.token(sha256, &member, ids), event).await?;
    Ok(with(view(context, &row).await?, "secret", secret.reveal()))
}

async fn revoke(target: CommandTarget, id: TokenId) -> anyhow::Result<()> {
    let revoked = match &target {
        CommandTarget::Database(context) => revoke_in_database(context, id).await?,
        CommandTarget::Server(server) => remote::revoke(server, id).await?,
    };
    target.finish(&["id", "state", "name"], CommandOutput::One(revoked)).await
}

async fn revoke_in_database(context: &CliContext, id: TokenId) -> anyhow::Result<Value> {
    let organization = context.organization().await?;
    let found = context.store.find_token(organization.id, id).await?;
    let row = found.with_context(|| format!("there is no token {id} in {}", organization.name))?;
    let event = context.event(&organization, "revoke_token", &row.name);
    context.store.revoke_token(organization.id, id, now_ms(), event).await?;
    let row = context.store.find_token(organization.id, id).await?.unwrap_or(row);
    view(context, &row).await
}

async fn purge(context: CliContext, older_than: u32) -> anyhow::Result<()> {
    let organization = context.organization().await?;
    let before = now_ms() - i64::from(older_than) * DAY_MS;
    let event = context.event(&organization, "purge_tokens", &format!("older than {older_than} days"));
    let purged = context.store.purge_tokens(organization.id, before, event).await?;
    context.finish(&["purged"], CommandOutput::One(json!({"purged": purged}))).await
}

/// One line of the import file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Legacy {
    name: String,
    sha256: String,
    scope: Vec<String>,
    repositories: Vec<String>,
    /// The field is required; null means never.
    #[serde(deserialize_with = "Option::deserialize")]
    expires_at: Option<i64>,
}

async fn import(context: CliContext, file: &Path) -> anyhow::Result<()> {
    let organization = context.organization().await?;
    let text = std::fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    let mut tokens = Vec::new();
    for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        let token = legacy(&context, &organization, text).await;
        tokens.push(token.with_context(|| format!("line {line} of {}", file.display()))?);
    }
    let all = tokens.len() as u64;
    let event = context.event(&organization, "import_tokens", &format!("{all} tokens"));
    let imported = context.store.import_tokens(organization.id, tokens, event).await?;
    let item = json!({"imported": imported, "known": all - imported});
    context.finish(&["imported", "known"], CommandOutput::One(item)).await
}

async fn legacy(
    context: &CliContext,
    organization: &OrganizationRow,
    text: &str,
) -> anyhow::Result<NewToken> {
    let Legacy { name, sha256, scope, repositories: names, expires_at } = serde_json::from_str(text)?;
    let mut hash = [0; 32];
    hex::decode_to_slice(&sha256, &mut hash).context("`sha256` must be 64 hexadecimal digits")?;
    ensure!(!names.is_empty(), "`repositories` must name at least one repository");
    let mut held = Scope { read: false, write: false };
    for scope in &scope {
        match scope.as_str() {
            "read" => held.read = true,
            "write" => held.write = true,
            _ => bail!("`scope` must be a list of `read`, `write` or both"),
        }
    }
    ensure!(held.read || held.write, "`scope` is empty");
    Ok(NewToken {
        secret_sha256: hash,
        name,
        scope: held,
        format: packhouse_identity::access::GENERIC.to_owned(),
        owner: None,
        created_by: String::new(),
        backing: Some("legacy".to_owned()),
        backing_repository: None,
        repositories: repositories(context, organization, &names).await?,
        expires_at,
        packages: None,
    })
}

async fn repositories(
    context: &CliContext,
    organization: &OrganizationRow,
    names: &[String],
) -> anyhow::Result<Vec<RepositoryId>> {
    let mut ids = Vec::with_capacity(names.len());
    for name in names {
        ids.push(context.repository(organization, name).await?.id);
    }
    Ok(ids)
}

async fn view(context: &CliContext, row: &TokenRow) -> anyhow::Result<Value> {
    let owner = match row.owner {
        Some(owner) => context.store.find_member(row.organization, owner).await?.map(|member| member.email),
        None => None,
    };
    let reached = context.store.find_repositories(row.organization, &row.repositories).await?;
    let scope = [(row.scope.read, "read"), (row.scope.write, "write")];
    Ok(json!({
        "id": row.id.to_string(),
        "name": row.name,
        "scope": scope.into_iter().filter(|(held, _)| *held).map(|(_, name)| name).collect::<Vec<_>>(),
        "format": row.format,
        "repositories": reached.into_iter().map(|repository| repository.name).collect::<Vec<_>>(),
        "owner": owner,
        "backing": row.backing,
        "created_by": row.created_by,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "last_used_at": row.last_used_at,
        "state": CredentialState::at(now_ms(), row.revoked_at, row.expires_at, row.ends_at).name(),
    }))
}
