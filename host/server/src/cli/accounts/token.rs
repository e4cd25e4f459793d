//! `packhouse token`: tokens and service keys, those of another server brought in, and old rows cleared away.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use packhouse_store::{NewToken, OrganizationRow, RepositoryId, Scope, TokenId, TokenRow, now_ms};
use serde::Deserialize;
use serde_json::{Value, json};

use super::repo::formats;
use super::{Common, Desk, Shown, in_flags, with};
use packhouse_api::operations::tokens::TokenRequest;
use packhouse_api::tokens;
use packhouse_identity::access::State;
use packhouse_identity::{self as identity, Minted};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum TokenCommand {
    /// List the tokens, whatever their state
    List {
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Make a token, and print its secret
    Create {
        #[command(flatten)]
        new: New,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Revoke a token: the next request with it is refused, on every server
    Revoke {
        /// Its id
        id: TokenId,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Bring in tokens of another server, by the SHA-256 of their secrets; they have no owner and cannot be rotated
    Import {
        /// A file with a JSON object a line: name, sha256, scope, repositories (names), expires_at (ms since 1970, or null)
        #[arg(long, value_name = "FILE")]
        legacy: PathBuf,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Delete the rows of tokens that expired, ended or were revoked long ago
    Purge {
        /// How long ago at least, in days
        #[arg(long, value_name = "DAYS", default_value = "30", value_parser = days)]
        older_than: u32,
        #[command(flatten)]
        common: Box<Common>,
    },
}

/// A token to be made.
#[derive(Debug, Args)]
pub(in crate::cli) struct New {
    /// Its name
    #[arg(long)]
    name: String,
    /// Whose it is, by e-mail; of a service key, who makes it
    #[arg(long, value_name = "EMAIL")]
    member: String,
    /// What it may do: read, write or both
    #[arg(long, value_delimiter = ',', default_value = "read")]
    scope: Vec<String>,
    /// The repositories it reaches, by name
    #[arg(long = "repository", value_name = "NAME", value_delimiter = ',', required = true)]
    repositories: Vec<String>,
    /// Its format
    #[arg(long, default_value = "generic")]
    format: String,
    /// A service key, of the organization (org) or of its one repository (repo)
    #[arg(long, value_name = "BACKING")]
    service_key: Option<String>,
    /// In how many days it expires; a service key lives 90 days at most
    #[arg(long, value_name = "DAYS", value_parser = days, conflicts_with = "never", required_unless_present = "never")]
    expires_in: Option<u32>,
    /// It never expires; not for a service key
    #[arg(long)]
    never: bool,
}

const COLUMNS: &[&str] = &["id", "state", "name", "scope", "format", "owner", "repositories"];
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl TokenCommand {
    /// Does it.
    pub(in crate::cli) async fn run(self) -> anyhow::Result<()> {
        match self {
            TokenCommand::List { common } => list(Desk::open(*common).await?).await,
            TokenCommand::Create { new, common } => create(Desk::open(*common).await?, new).await,
            TokenCommand::Revoke { id, common } => revoke(Desk::open(*common).await?, id).await,
            TokenCommand::Import { legacy, common } => import(Desk::open(*common).await?, &legacy).await,
            TokenCommand::Purge { older_than, common } => purge(Desk::open(*common).await?, older_than).await,
        }
    }
}

/// Days, as `30` or `30d`.
fn days(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('d').unwrap_or(text);
    number.parse().map_err(|_| "write a number of days, as in 30 or 30d".to_owned())
}

async fn list(desk: Desk) -> anyhow::Result<()> {
    let organization = desk.organization().await?;
    let mut rows: Vec<TokenRow> = Vec::new();
    loop {
        let page = desk.store.all_tokens(organization.id, rows.last().map(|row| row.id), 500).await?;
        let last = page.len() < 500;
        rows.extend(page);
        if last {
            break;
        }
    }
    let mut items = Vec::with_capacity(rows.len());
    for row in &rows {
        items.push(view(&desk, row).await?);
    }
    desk.done(COLUMNS, Shown::List(items)).await
}

async fn create(desk: Desk, new: New) -> anyhow::Result<()> {
    let organization = desk.organization().await?;
    let member = desk.member(&organization, &new.member).await?;
    let ids = repositories(&desk, &organization, &new.repositories).await?;
    let named: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let backing = new.service_key.map(|kind| json!({"kind": kind, "id": named.first()}));
    let now = now_ms();
    let body = json!({
        "name": new.name, "scope": new.scope, "format": new.format, "repositories": named, "backing": backing,
        "expires_at": new.expires_in.map(|days| now + i64::from(days) * DAY_MS),
    });
    // To ask the plugins means compiling them, and the usual formats of tokens need none. Where they cannot be asked, there are no others.
    let described = if tokens::is_always_there(&new.format) {
        Vec::new()
    } else {
        formats(&desk, &new.format).await.unwrap_or_default()
    };
    let own: Vec<String> =
        described.into_iter().filter(|format| format.own_tokens).map(|format| format.format).collect();
    let request: TokenRequest = tokens::from_json(body, &own, now).map_err(in_flags)?;
    let Minted { secret, sha256 } = identity::mint();
    let event = desk.event(&organization, "create_token", &request.name);
    let row = desk.store.create_token(organization.id, request.token(sha256, &member, ids), event).await?;
    let shown = with(view(&desk, &row).await?, "secret", secret.reveal());
    desk.done(&["id", "secret"], Shown::One(shown)).await
}

async fn revoke(desk: Desk, id: TokenId) -> anyhow::Result<()> {
    let organization = desk.organization().await?;
    let found = desk.store.find_token(organization.id, id).await?;
    let row = found.with_context(|| format!("there is no token {id} in {}", organization.name))?;
    let event = desk.event(&organization, "revoke_token", &row.name);
    desk.store.revoke_token(organization.id, id, now_ms(), event).await?;
    let row = desk.store.find_token(organization.id, id).await?.unwrap_or(row);
    let shown = view(&desk, &row).await?;
    desk.done(&["id", "state", "name"], Shown::One(shown)).await
}

async fn purge(desk: Desk, older_than: u32) -> anyhow::Result<()> {
    let organization = desk.organization().await?;
    let before = now_ms() - i64::from(older_than) * DAY_MS;
    let event = desk.event(&organization, "purge_tokens", &format!("older than {older_than} days"));
    let purged = desk.store.purge_tokens(organization.id, before, event).await?;
    desk.done(&["purged"], Shown::One(json!({"purged": purged}))).await
}

/// A line of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Legacy {
    name: String,
    sha256: String,
    scope: Vec<String>,
    repositories: Vec<String>,
    /// Must be stated: null for never.
    #[serde(deserialize_with = "Option::deserialize")]
    expires_at: Option<i64>,
}

async fn import(desk: Desk, file: &Path) -> anyhow::Result<()> {
    let organization = desk.organization().await?;
    let text = std::fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    let mut tokens = Vec::new();
    for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        let token = legacy(&desk, &organization, text).await;
        tokens.push(token.with_context(|| format!("line {line} of {}", file.display()))?);
    }
    let all = tokens.len() as u64;
    let event = desk.event(&organization, "import_tokens", &format!("{all} tokens"));
    let imported = desk.store.import_tokens(organization.id, tokens, event).await?;
    let shown = json!({"imported": imported, "known": all - imported});
    desk.done(&["imported", "known"], Shown::One(shown)).await
}

async fn legacy(desk: &Desk, organization: &OrganizationRow, text: &str) -> anyhow::Result<NewToken> {
    let Legacy { name, sha256, scope, repositories: names, expires_at } = serde_json::from_str(text)?;
    let mut hash = [0; 32];
    hex::decode_to_slice(&sha256, &mut hash).context("`sha256` is 64 hexadecimal digits")?;
    ensure!(!names.is_empty(), "`repositories` names at least one repository");
    let mut held = Scope { read: false, write: false };
    for scope in &scope {
        match scope.as_str() {
            "read" => held.read = true,
            "write" => held.write = true,
            _ => bail!("`scope` is a list of one or both of `read` and `write`"),
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
        repositories: repositories(desk, organization, &names).await?,
        expires_at,
    })
}

async fn repositories(
    desk: &Desk,
    organization: &OrganizationRow,
    names: &[String],
) -> anyhow::Result<Vec<RepositoryId>> {
    let mut ids = Vec::with_capacity(names.len());
    for name in names {
        ids.push(desk.repository(organization, name).await?.id);
    }
    Ok(ids)
}

async fn view(desk: &Desk, row: &TokenRow) -> anyhow::Result<Value> {
    let owner = match row.owner {
        Some(owner) => desk.store.find_member(row.organization, owner).await?.map(|member| member.email),
        None => None,
    };
    let reached = desk.store.find_repositories(row.organization, &row.repositories).await?;
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
        "state": State::at(now_ms(), row.revoked_at, row.expires_at, row.ends_at).name(),
    }))
}
