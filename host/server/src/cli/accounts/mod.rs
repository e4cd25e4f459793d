//! `packhouse org`, `member`, `token` and `repo`: commands for setup and recovery. They work
//! directly on the database, with or without a running server. They check no permissions, because
//! the caller can read the database anyway. The audit log records each change.
//!
//! With `--server`, most of them call the API of a running server instead ([`CommandTarget`]). Each
//! command checks its arguments and prints its output for both; the modules named `remote` make the
//! calls.

mod member;
mod org;
mod repo;
mod token;

pub(super) use member::MemberCommand;
pub(super) use org::OrgCommand;
pub(super) use repo::RepoCommand;
pub(super) use token::TokenCommand;

use std::io::BufRead;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use packhouse_store::{AuditEvent, MemberRow, OrganizationId, OrganizationRow, RepositoryRow, Store};
use serde_json::Value;

use super::remote::{RemoteContext, ServerFlags};
use super::{SettingFlags, print, settings};
use packhouse_api::error::ApiError;
use packhouse_config::Config;
use packhouse_identity::{self as identity, Secret, random_password};

/// Arguments of all these commands.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// Name of the organization; required if there are several
    #[arg(long, value_name = "NAME")]
    org: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    settings: SettingFlags,
}

/// API fields and the command-line arguments with the same meaning.
const FLAGS: [(&str, &str); 10] = [
    ("`format`", "--format"),
    ("`kind`", "--kind"),
    ("`upstream`", "--upstream"),
    ("`members`", "--member"),
    ("`public`", "--public"),
    ("`settings`", "SETTING=VALUE"),
    ("`name`", "--name"),
    ("`scope`", "--scope"),
    ("`expires_at`", "--expires-in"),
    ("`backing`", "--service-key"),
];

/// Replaces the API's field names in an error with command-line arguments.
fn in_flags(error: ApiError) -> anyhow::Error {
    let ApiError::Refused { message, .. } = error else { return error.for_command() };
    anyhow::Error::msg(FLAGS.iter().fold(message, |message, (field, flag)| message.replace(field, flag)))
}

/// Opened store and global options of a command.
pub(super) struct CliContext {
    pub(super) store: Store,
    pub(super) config: Config,
    org: Option<String>,
    json: bool,
}

/// Target of a command: a database, or a running server.
pub(super) enum CommandTarget {
    Database(Box<CliContext>),
    Server(RemoteContext),
}

impl CommandTarget {
    /// Opens the database of the settings, or connects to the server of `--server`.
    pub(super) async fn open(common: Common) -> anyhow::Result<CommandTarget> {
        match common.server.connect(&common.settings)? {
            Some(api) => RemoteContext::new(api, common.org, common.json).await.map(CommandTarget::Server),
            None => Ok(CommandTarget::Database(Box::new(CliContext::open(common).await?))),
        }
    }

    /// Closes the store, if any, and prints the output.
    pub(super) async fn finish(self, columns: &[&str], items: CommandOutput) -> anyhow::Result<()> {
        match self {
            CommandTarget::Database(context) => context.finish(columns, items).await,
            CommandTarget::Server(server) => server.finish(columns, items),
        }
    }
}

impl CliContext {
    /// Opens the database of the settings. Fails with `--server`, for commands without an API.
    pub(super) async fn open(common: Common) -> anyhow::Result<CliContext> {
        let Common { org, json, server, settings: flags } = common;
        server.refuse()?;
        let config = settings(flags)?;
        let store = Store::open(config.store.clone()).await.context("failed to open the store")?;
        Ok(CliContext { store, config, org, json })
    }

    /// Returns the organization that `--org` names, or the only one.
    pub(super) async fn organization(&self) -> anyhow::Result<OrganizationRow> {
        let all = self.store.organizations().await?;
        if let Some(named) = &self.org {
            let found = all.into_iter().find(|row| row.name == *named || row.id.to_string() == *named);
            return found.with_context(|| format!("there is no organization {named:?}"));
        }
        let mut all = all.into_iter();
        match (all.next(), all.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => {
                bail!(
                    "there is no organization in this database yet; the first start of the server creates one. If \
                     the server uses another data folder or configuration, name it with --data or --config"
                )
            }
            (Some(_), Some(_)) => bail!("there are several organizations: name one with --org"),
        }
    }

    async fn member(&self, organization: &OrganizationRow, email: &str) -> anyhow::Result<MemberRow> {
        let address = email_address(email)?;
        let found = self.store.members_by_email(&address).await?;
        let found = found.into_iter().find(|row| row.organization == organization.id);
        found.with_context(|| format!("{address} is not a member of {}", organization.name))
    }

    pub(super) async fn repository(
        &self,
        organization: &OrganizationRow,
        name: &str,
    ) -> anyhow::Result<RepositoryRow> {
        let found = self.store.look_up(organization.id, name, None).await?.repository.clone();
        found.with_context(|| format!("there is no repository {name:?} in {}", organization.name))
    }

    /// Audit log entry for a change by this command.
    pub(super) fn event(
        &self,
        organization: &OrganizationRow,
        action: &str,
        subject: &str,
    ) -> Option<AuditEvent> {
        self.event_in(organization.id, action, subject)
    }

    fn event_in(&self, organization: OrganizationId, action: &str, subject: &str) -> Option<AuditEvent> {
        Some(event(organization, action, subject))
    }

    /// Closes the store and prints the output.
    pub(super) async fn finish(self, columns: &[&str], items: CommandOutput) -> anyhow::Result<()> {
        self.store.close().await;
        print(&render(self.json, columns, items))
    }
}

/// Audit log entry for a change by a command.
pub(super) fn event(organization: OrganizationId, action: &str, subject: &str) -> AuditEvent {
    AuditEvent {
        organization,
        actor: ACTOR.to_owned(),
        action: action.to_owned(),
        subject: subject.to_owned(),
        ..AuditEvent::default()
    }
}

/// Actor in the audit log.
pub(super) const ACTOR: &str = "command line";

pub(super) enum CommandOutput {
    One(Value),
    List(Vec<Value>),
    /// A list with a header line of column names.
    Table(Vec<Value>),
    /// A single item with one line per field.
    Fields(Value),
}

/// Renders JSON, or a line for each item with tab-separated columns.
pub(super) fn render(json: bool, columns: &[&str], items: CommandOutput) -> String {
    let line = |item: &Value| {
        let cells: Vec<String> = columns.iter().map(|column| cell(&item[*column])).collect();
        cells.join("\t")
    };
    match (json, items) {
        (true, CommandOutput::One(item) | CommandOutput::Fields(item)) => item.to_string(),
        (true, CommandOutput::List(items) | CommandOutput::Table(items)) => Value::Array(items).to_string(),
        (false, CommandOutput::One(item)) => line(&item),
        (false, CommandOutput::List(items)) => items.iter().map(line).collect::<Vec<_>>().join("\n"),
        (false, CommandOutput::Table(items)) => {
            let header = columns.join("\t").to_uppercase();
            std::iter::once(header).chain(items.iter().map(line)).collect::<Vec<_>>().join("\n")
        }
        (false, CommandOutput::Fields(item)) => fields("", &item).join("\n"),
    }
}

/// Renders a line for each field. Fields of nested objects are prefixed with the object's name.
fn fields(prefix: &str, item: &Value) -> Vec<String> {
    let Value::Object(members) = item else { return vec![format!("{prefix}\t{}", cell(item))] };
    let below = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
    members.iter().flat_map(|(name, value)| fields(&below(name), value)).collect()
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// Adds a field to an object.
fn with(mut object: Value, name: &str, text: &str) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(name.to_owned(), Value::from(text));
    }
    object
}

fn email_address(text: &str) -> anyhow::Result<String> {
    identity::email(text).with_context(|| format!("{text:?} is not a valid e-mail address"))
}

/// Reads a password from the first line of standard input, or generates one. The flag is true for a
/// generated password, which the caller prints. Passwords are never arguments, because every user
/// of the machine can read arguments.
fn password(from_stdin: bool) -> anyhow::Result<(Secret, bool)> {
    if !from_stdin {
        return Ok((random_password(), true));
    }
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("failed to read the password")?;
    let password = line.trim_end_matches(['\r', '\n']);
    let password = identity::new_password(password);
    Ok((password.map_err(|reason| anyhow!("the password {reason}"))?, false))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_a_line_each_or_json() {
        let items = || {
            CommandOutput::List(vec![json!({"b": ["x", "y"], "a": null, "c": 1}), json!({"a": "z", "b": []})])
        };
        assert_eq!(render(false, &["a", "b"], items()), "-\tx,y\nz\t");
        let table = || CommandOutput::Table(vec![json!({"a": "z", "b": 1})]);
        assert_eq!(render(false, &["a", "b"], table()), "A\tB\nz\t1");
        let one = CommandOutput::Fields(json!({"a": "z", "b": {"c": null}}));
        assert_eq!(render(false, &[], one), "a\tz\nb.c\t-");
        let json: Value = serde_json::from_str(&render(true, &["a"], items())).unwrap();
        assert_eq!(json[0]["c"], 1);
    }
}
